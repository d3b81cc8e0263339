"""The archive of what is known of a topology: sent as it is made, without secrets, one at a time."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
import threading

import pytest

from ardea.console import downloads
from ardea.console.downloads import Download
from ardea.scheduler.bundle import Bundle
from tests.unit.cli import memory
from tests.unit.console.conftest import ACT, VIEW

SECRET = "kept-from-everybody"
PATH = "/topologies/Endless/bundle"


def test_it_has_what_the_command_line_packs_and_no_secret(browser, submit, monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", SECRET)
    topology = submit()
    memory.entry(topology).printed["numbers-0"] = [f"connects as {SECRET}"]
    newest = lambda paper, label, most: "\n".join(paper.entry.printed[label]).encode()[-most:]  # noqa: E731
    monkeypatch.setattr(memory.Paper, "newest", newest)
    told = browser.get(PATH, ACT)
    assert (told.status_code, told.headers["content-type"]) == (200, "application/gzip")
    assert told.headers["content-disposition"] == f'attachment; filename="{topology}-bundle.tar.gz"'
    assert told.headers["cache-control"] == "no-store"
    with tarfile.open(fileobj=io.BytesIO(told.content)) as tar:
        files = {m.name.partition("/")[2]: tar.extractfile(m).read() for m in tar.getmembers()}
    assert files["logs/numbers-0.log"] == b"connects as [redacted]"
    assert json.loads(files["manifest.json"])["topology"] == topology
    assert {"plan.json", "configuration.json", "topology.json", "status.json"} <= files.keys()
    assert not any(SECRET.encode() in data for data in files.values())


def test_one_at_a_time(browser, submit, monkeypatch):
    submit()
    going, go_on, write = threading.Event(), threading.Event(), Bundle.write

    def slow(made, out):
        going.set()
        assert go_on.wait(20)
        return write(made, out)

    monkeypatch.setattr(Bundle, "write", slow)
    answers = []
    client = browser.client  # begins here, for both threads
    first = threading.Thread(target=lambda: answers.append(browser.get(PATH, ACT)))
    first.start()
    try:
        assert going.wait(20)
        refused = browser.get(PATH, ACT)
    finally:
        go_on.set()
        first.join(20)
    assert client is browser.client
    assert (refused.status_code, refused.json()["what"]) == (409, "a bundle is being made already")
    assert answers[0].status_code == 200
    assert browser.get(PATH, ACT).status_code == 200, "another one may be made then"


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [(PATH, None, 401), (PATH, VIEW, 403), (f"{PATH}?log_mib=65", ACT, 400), ("/topologies/No/bundle", ACT, 404)],
)
def test_who_may_not_and_what_cannot_be(browser, submit, path, token, status):
    submit()
    assert browser.get(path, token).status_code == status


async def _waits():
    await asyncio.Event().wait()


def test_a_viewer_who_is_gone_ends_the_thread_that_writes():
    """A viewer who stays, and does not read, is in ``test_streams``."""

    async def gone(message):
        raise OSError("the viewer is gone")

    ended = threading.Event()

    def make(out):
        try:
            while True:
                out.write(bytes(downloads.CHUNK))
        finally:
            ended.set()

    async def serve():
        await Download("a", "b/c", make)({"type": "http", "asgi": {"spec_version": "2.4"}}, _waits, gone)
        assert await asyncio.to_thread(ended.wait, 20)

    asyncio.run(serve())


def test_what_making_it_raises_breaks_it_off():
    def make(out):
        out.write(b"begun")
        raise ValueError("a disk")

    async def serve():
        sent = []

        async def send(message):
            sent.append(message)

        with pytest.raises(ValueError, match="a disk"):
            await Download("a", "b/c", make)({"type": "http", "asgi": {"spec_version": "2.4"}}, _waits, send)
        assert not any(each.get("more_body") is False for each in sent), "nobody takes it for whole"

    asyncio.run(serve())

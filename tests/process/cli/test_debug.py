"""`ardea debug bundle`, `stacks` and `profile` of tasks that are busy, and of one that stands still."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import tarfile
import time

import pytest

from ardea.errors import ExitCode
from tests.process.cli.verbs import describe, topology

pytestmark = pytest.mark.cluster


@pytest.fixture
def burning(ardea, daemons):
    told = ardea("submit", "local", topology("Burning"))
    assert told.returncode == 0, told.stderr
    yield
    assert ardea("kill", "Burning", "--wait-secs", 0).returncode == 0


def walk(node):
    yield node
    for child in node["children"]:
        yield from walk(child)


@pytest.mark.usefixtures("burning")
def test_what_a_busy_task_does_and_all_that_is_known_of_it(ardea, tmp_path):
    profile = json.loads(ardea("debug", "profile", "Burning", "burns:0", "--seconds", 1, "-o", "json").stdout)
    (executor,) = (thread for thread in profile["root"]["children"] if thread["name"] == "executor burns-0")
    (hot,) = (node for node in walk(executor) if node["name"] == "Burns.hot_loop")
    assert hot["samples"] > 0
    assert (profile["task"], profile["life"]) == ("burns-0", 1)
    stacks = ardea("debug", "stacks", "Burning", "burns").stdout
    assert "executor burns-0:\n" in stacks
    assert "in Executor.run\n" in stacks

    file = tmp_path / "it.tar.gz"
    packed = ardea("debug", "bundle", "Burning", "-o", file)
    assert packed.returncode == 0, packed.stderr
    with tarfile.open(file) as tar:
        found = {m.name.partition("/")[2]: tar.extractfile(m).read() for m in tar.getmembers()}
    assert json.loads(found["manifest.json"])["missing"] == {}
    assert {
        "status.json",
        "exits.json",
        "metrics/container-1.prom",
        "logs/container-1.stream-manager.log",
    } < found.keys()
    assert b"logs in with [redacted]\n" in found["logs/burns-0.log"]
    assert b"hunter2" not in b"".join(found.values())
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.thorough
@pytest.mark.usefixtures("burning")
def test_who_stands_still_is_one_message_in_time(ardea):
    (pid,) = (row["pid"] for row in describe(ardea, "Burning")["processes"] if row["name"] == "burns-0")
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        told = ardea("debug", "profile", "Burning", "burns:0", "--seconds", 1)
        assert time.monotonic() - began < 30
    finally:
        with contextlib.suppress(ProcessLookupError):  # its supervisor has missed it, too
            os.kill(pid, signal.SIGCONT)
    assert (told.returncode, told.stdout) == (ExitCode.TIMED_OUT, "")
    message, *hint = told.stderr.splitlines()
    why = "(its process stands still, or a call in C keeps the interpreter|it was started again meanwhile; repeat it)"
    assert re.fullmatch(rf"error: burns-0 has not given a profile within 6 s: {why}", message)
    assert [line.partition(":")[0] for line in hint] == ["hint"]

"""A bundle has what can be had, says what cannot, is bounded, and has no secret that was planted anywhere."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea.errors import NotFound, Unreachable
from ardea.health import ProcessRow
from ardea.scheduler import bundle
from ardea.scheduler.bundle import Bundle, Limits
from ardea.scheduler.control import Status, StoryEvent
from ardea.scheduler.schedulers import Description, Evidence, LogLine, Logs
from ardea.scheduler.submission import Submission
from ardea.state.manager import Unavailable
from ardea.state.records import ExecutionState, RunState
from ardea.state.topologies import TopologyStatus

WORD_COUNT = str(Path(__file__).parents[3] / "examples" / "word_count.py")
SUBMISSION = Submission.of(WORD_COUNT, {}, "/nowhere")
ID = SUBMISSION.definition.topology


class Place:
    """Scheduler, handle and logs of one topology; what a test plants stands in its attributes."""

    def __init__(self):
        self.submission, self.id = SUBMISSION, ID
        self.printed = {"count-0": b"2026 INFO hello\n"}
        self.error, self.silence, self.token = "", "", ""
        self.more = []
        self.unknown = None  # why `find` fails
        self.logless = False
        self.topology = TopologyStatus(ID, SUBMISSION.record(), ExecutionState(RunState.RUNNING), running=True)

    def find(self, name):
        if self.unknown is not None:
            raise self.unknown
        return self

    def logs(self, name):
        if self.logless:
            raise NotFound(f"{name} has no logs")
        return self

    def definition(self):
        return self.submission.definition

    def describe(self):
        status = Status(ID, "RUNNING", "", 1, 1, [], [], 0, [self.error], None, {}, {}, [])
        status.stories["count-0"] = [StoryEvent(1.0, f"said {self.error}", 1)]
        row = ProcessRow(1, "count-0", "running", 4711, 1, 0, None, self.error, "")
        there = None if self.silence else status
        return Description(
            topology=self.topology, status=there, silence=self.silence, kept_by=None, processes=[row], pods=[]
        )

    def secrets(self):
        yield self.token

    def evidence(self):
        yield from self.more

    def names(self, selection=None):
        return list(self.printed)

    def newest(self, label, most):
        return self.printed[label][-most:]

    def close(self):
        pass


@pytest.fixture
def place():
    return Place()


def packed(place, limits=Limits(), **options) -> dict[str, bytes]:  # noqa: B008
    out = io.BytesIO()
    with contextlib.closing(Bundle(place, "WordCount", limits, **options)) as made:
        made.write(out)
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as tar:
        return {m.name.partition("/")[2]: tar.extractfile(m).read() for m in tar.getmembers()}


def test_what_is_in_it(place):
    place.more = [Evidence("exits.json", dict), Evidence("metrics/container-1.prom", lambda: b"up 1\n")]
    files = packed(place)
    assert {name.partition("/")[0] for name in files} == {
        "README.md", "manifest.json", "topology.json", "status.json", "stories.txt", "processes.json", "exits.json",
        "configuration.json", "plan.json", "versions.json", "logs", "metrics", "kubernetes",
    }  # fmt: skip
    assert all(f"`{name}`" in files["README.md"].decode() for name in files if "/" not in name and name != "README.md")
    assert json.loads(files["processes.json"])[0]["pid"] == 4711
    assert files["stories.txt"] == b"story of count-0:\n  1.0 s ago: said \n"
    assert {c["name"] for c in json.loads(files["plan.json"])["components"]} >= {"count", "split"}
    manifest = json.loads(files["manifest.json"])
    assert (manifest["topology"], manifest["missing"], manifest["cut"]) == (ID, {}, [])
    assert manifest["files"]["logs/count-0.log"] == len(files["logs/count-0.log"])


def test_the_page_lists_the_same_files():
    page = (Path(WORD_COUNT).parents[1] / "docs" / "debugging.md").read_text()
    for row in bundle.README.splitlines():
        if row.startswith("| `"):
            assert row.split("`")[1].replace("*", "container-N") in page


def test_without_a_master_the_rest_is_there(place):
    place.silence = f"the master of {ID} did not answer `status` within 5 s"
    files = packed(place)
    assert json.loads(files["manifest.json"])["missing"] == {"status.json": place.silence, "stories.txt": place.silence}
    assert "processes.json" in files


@pytest.mark.parametrize("unknown", [NotFound("no topology is called so"), Unavailable("no server answers")])
def test_of_a_topology_that_is_gone_or_whose_state_is_silent_the_logs_are_left(place, unknown):
    place.unknown = unknown
    files = packed(place)
    assert files["logs/count-0.log"] == b"2026 INFO hello\n"
    assert json.loads(files["manifest.json"])["missing"] == {"topology.json": unknown.message}
    place.logless = True
    with pytest.raises(type(unknown), match=unknown.message):
        packed(place)


def test_what_fails_keeps_nothing_else_away(place):
    def refuse():
        raise Unreachable("the cluster does not answer")

    def broken():
        raise RuntimeError("\x1b[31m")

    place.more = [Evidence("a.json", refuse), Evidence("b.json", broken), Evidence("c.json", lambda: [1])]
    files = packed(place)
    assert json.loads(files["manifest.json"])["missing"] == {
        "a.json": "the cluster does not answer", "b.json": "RuntimeError: \\x1b[31m"
    }  # fmt: skip
    assert json.loads(files["c.json"]) == [1]


def test_what_does_not_come_is_given_up(place):
    never = threading.Event()
    place.more = [Evidence("slow.json", never.wait), Evidence("quick.json", list)]
    try:
        files = packed(place, Limits(file_seconds=2.0))
    finally:
        never.set()
    assert list(json.loads(files["manifest.json"])["missing"]) == ["slow.json"]
    assert "quick.json" in files


def test_after_a_minute_nothing_more_is_begun(place):
    now = [0.0]

    def long():
        now[0] += 61.0
        return []

    place.more = [Evidence("long.json", long), Evidence("late.json", list)]
    files = packed(place, clock=lambda: now[0])
    assert json.loads(files["manifest.json"])["missing"] == {"late.json": "the 60 s that all files have were over"}


def test_a_log_is_cut_at_the_beginning_of_a_line_and_stays_bytes(place):
    place.printed["count-0"] = b"lost\n" * 100 + b"half a line\n\xff\xfe\x1b[2J kept\n"
    files = packed(place, Limits(log_bytes=18))
    assert files["logs/count-0.log"] == b"\xff\xfe\x1b[2J kept\n"
    assert json.loads(files["manifest.json"])["cut"] == ["logs/count-0.log"]


def test_a_log_may_be_longer_than_another_file(place, monkeypatch):
    monkeypatch.setattr(bundle, "MOST_FILE", 100)
    place.printed["count-0"] = b"old\n" * 100 + b"new\n"
    place.more = [Evidence("metrics/container-1.prom", lambda: b"up 1\n" * 100)]
    files = packed(place, Limits(log_bytes=200))
    assert files["logs/count-0.log"] == b"old\n" * 49 + b"new\n"
    assert len(files["metrics/container-1.prom"]) == 100
    cut = json.loads(files["manifest.json"])["cut"]
    assert [cut.count(file) for file in ("logs/count-0.log", "metrics/container-1.prom")] == [1, 1]


def test_many_logs_share_what_there_is(place, monkeypatch):
    monkeypatch.setattr(bundle, "MOST_LOGS", 1000)
    place.printed = {f"count-{i}": b"x" * 99 + b"\n" + b"y" * 99 + b"\n" for i in range(10)}
    files = packed(place)
    assert {len(data) for name, data in files.items() if name.startswith("logs/")} == {100}


SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30).map(lambda text: f"Zq7{text}9pL")


def plant(place: Place, patch: pytest.MonkeyPatch, where: str, secret: str) -> None:
    definition = place.submission.definition
    if where == "environment":
        patch.setenv("MY_API_KEY", secret)
    elif where == "token":
        place.token = secret
    elif where == "component":
        patch.setitem(definition.shape.components[0].config, "author", [{"db.password": secret}])
    elif where == "address":
        patch.setitem(definition.shape.config, "author", {"url": f"x://me:{quote(secret, safe='')}@db"})
    else:
        patch.setitem(definition.shape.config, "author", {"deep": {"db.password": secret}})


@given(SECRETS, st.sampled_from(["configuration", "component", "environment", "token", "address"]))
@settings(max_examples=40)
def test_a_secret_that_was_planted_anywhere_is_nowhere(secret, where):
    place = Place()
    place.error = f"it failed with {secret} (or {secret!r})"
    place.printed = {f"{secret}-0": secret.encode() + b"\n" + json.dumps({"message": secret}).encode() + b"\n"}
    place.more = [Evidence(f"metrics/{secret}.prom", lambda: f'up{{x="{secret}"}} 1\n'.encode())]
    with pytest.MonkeyPatch.context() as patch:
        plant(place, patch, where, secret)
        files = packed(place)
    written = b"\n".join((*map(str.encode, files), *files.values())).decode(errors="replace")
    assert len(files) > 10
    assert [form for form in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]) if form in written] == []
    assert "Zq7" not in written


def test_the_working_folder_is_no_secret(place, monkeypatch):
    monkeypatch.setenv("PWD", "/home/ann/streams")
    monkeypatch.setenv("MYSQL_PWD", "hunter22")
    place.printed["count-0"] = b"loads /home/ann/streams/words.py, and logs in with hunter22\n"
    assert packed(place)["logs/count-0.log"] == b"loads /home/ann/streams/words.py, and logs in with [redacted]\n"


def test_half_a_secret_is_not_left_where_a_log_is_cut(place):
    place.token = "hunter2" * 10
    place.printed["count-0"] = b"x" * 50 + place.token.encode() + b"y" * 30 + b"\n"
    files = packed(place, Limits(log_bytes=60))
    assert b"hunter2" not in files["logs/count-0.log"]


@pytest.fixture
def lines(place):
    """A scheduler that knows lines only."""

    class Lines(Logs):
        def names(self, selection=None):
            return ["a-0"]

        def lines(self, selection=None, *, follow=False, tail=None, since=None):
            yield from (LogLine("a-0", text) for text in ("one", "two", "\udcff"))

    return Lines()


def test_by_default_the_newest_bytes_are_those_of_lines(lines):
    assert lines.newest("a-0", 100) == b"one\ntwo\n\\udcff\n"
    assert lines.newest("a-0", 9) == b"o\n\\udcff\n"

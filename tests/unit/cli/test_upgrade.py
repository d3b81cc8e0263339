"""Verbs for a topology that another version has submitted: what it left in its state, recorded from a real run."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from ardea import __version__
from ardea.cli.verbs import app
from ardea.documents.topologies import REFUSED
from ardea.errors import ExitCode
from ardea.protocol.wire_pb2 import Answer
from ardea.scheduler import kill as killing
from ardea.scheduler.control import Unreadable, status_in
from ardea.scheduler.home import Home
from ardea.scheduler.kill import Killing
from ardea.state import paths, records
from ardea.state.records import SchedulerLocation, TopologyRecord
from ardea.state.topologies import find
from ardea.versions import FORMAT, PROTOCOL, UNNUMBERED

RECORDED = Path(__file__).parents[2] / "fixtures"


class Former(NamedTuple):
    """A version that was, and its numbers."""

    commit: str
    version: str
    format: int
    protocol: int

    @property
    def recorded(self):
        return RECORDED / f"state-{self.commit}"

    @property
    def both(self):
        this = f"this is Ardea {__version__} (format {FORMAT})"
        return f"was submitted by Ardea {self.version} (format {self.format}), and {this}"


@pytest.fixture(
    params=[Former("72bfe26", "0.1.0.dev0", UNNUMBERED, UNNUMBERED), Former("549b37d", "0.2.0.dev0", 2, 2)],
    ids=lambda each: f"format-{each.format}",
)
def former(request):
    return request.param


@pytest.fixture
def home(tmp_path, former):
    shutil.copytree(former.recorded / "home", tmp_path / "home")
    return Home(tmp_path / "home")


@pytest.fixture
def topology(home):
    """Its id."""
    (folder,) = home.folders()
    return folder.name


@pytest.fixture
def ardea(home):
    def run(*args: object):
        command = [*map(str, args), "--state", str(home.root)]
        return CliRunner().invoke(app, command, prog_name="ardea", env={"COLUMNS": "200"})

    return run


@pytest.fixture
def kept(home, topology):
    """Somebody keeps it, so that it counts as running; its master does not answer."""
    location = SchedulerLocation(scheduler="local", host=socket.gethostname(), pid=os.getpid())
    with home.open_state() as state:
        yield state.lease(paths.scheduler(topology), records.encode(location))


def test_it_is_listed_and_both_versions_are_named(ardea, topology, former):
    (row,) = json.loads(ardea("list", "-o", "json").stdout)["topologies"]
    assert (row["id"], row["name"], row["running"], row["problem"]) == (topology, "words", False, None)
    assert row["other_version"] == f"{topology} {former.both}; {REFUSED}"
    assert "DEAD" in ardea("list").stdout


def test_it_is_described_and_both_versions_are_named(ardea, former):
    told = json.loads(ardea("describe", "words", "-o", "json").stdout)
    assert (told["topology_class"], told["submitted_from"], told["version"]) == ("WordCount", "host", former.version)
    assert {process["name"] for process in told["processes"]} >= {"words-0", "count-0", "topology-master"}
    assert former.both in ardea("describe", "words").stdout


def test_its_logs_are_there(ardea):
    told = ardea("logs", "words", "stream-manager")
    assert told.exit_code == ExitCode.OK
    assert "plan received" in told.stdout


def test_it_is_killed(ardea, home, topology):
    told = ardea("kill", "words")
    assert told.exit_code == ExitCode.OK, told.stderr
    with home.open_state() as state:
        assert [path for path in (*paths.every(topology), paths.name("words")) if state.exists(path)] == []
    assert json.loads(ardea("list", "-o", "json").stdout)["topologies"] == []


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("verb", ["update", "restart"])
def test_what_starts_processes_is_refused(ardea, verb, topology, former):
    """Before its master is asked: it would obey."""
    told = ardea(verb, "words", *(["--component-parallelism", "count:2"] if verb == "update" else []))
    assert told.exit_code == ExitCode.FAILED
    said = " ".join(told.stderr.split())
    assert f"{topology} {former.both}: `ardea {verb}` cannot go on with it; nothing was changed" in said
    assert "use the version that submitted it, or `ardea kill words` and submit it again" in said


def test_a_topology_of_this_version_is_another_matter(home, topology, ardea):
    with home.open_state() as state:
        path = paths.topology(topology)
        held = state.get(path)
        document = json.loads(held.data)
        document["value"]["format"] = FORMAT
        state.set(path, json.dumps(document).encode(), held.version)
    assert json.loads(ardea("list", "-o", "json").stdout)["topologies"][0]["other_version"] is None
    assert "submitted by Ardea" not in ardea("describe", "words").stdout


def test_a_newer_one_is_named_alike(home, topology, ardea):
    with home.open_state() as state:
        path = paths.topology(topology)
        held = state.get(path)
        document = json.loads(held.data)
        document["value"] |= {"format": FORMAT + 1, "ardea_version": "9.0", "unheard": ["of"]}
        state.set(path, json.dumps(document).encode(), held.version)
        assert records.decode(state.get(path).data, TopologyRecord, path).format == FORMAT + 1
    assert f"Ardea 9.0 (format {FORMAT + 1})" in ardea("describe", "words").stdout


def test_what_its_master_answers_can_be_read(topology, former):
    """Recorded as it came; that of another version says what the verb can do without it."""
    answer = Answer.FromString((former.recorded / "answer.bin").read_bytes())
    status = status_in(answer, former.protocol, topology)
    assert (status.topology, status.state, sorted(status.tasks)) == (topology, "RUNNING", ["count-0", "words-0"])


def test_an_answer_of_another_version_that_cannot_be_read_is_named(topology):
    with pytest.raises(Unreadable) as refusal:
        status_in(Answer(ok=True, body=b'{"topology": 7}'), 0, topology)
    assert refusal.value.message == (
        f"the master of {topology} speaks protocol {UNNUMBERED}, this verb speaks protocol {PROTOCOL} "
        f"(Ardea {__version__}); what it answers cannot be read"
    )


@pytest.mark.usefixtures("kept")
def test_a_master_whose_answer_cannot_be_read_drains_even_so(home, monkeypatch):
    """It has taken the order: SIGTERM would cut it short."""
    monkeypatch.setattr(
        killing.MasterClient, "ask", lambda *_, **__: (_ for _ in ()).throw(Unreadable("it speaks protocol 1"))
    )
    said: list[str] = []
    with home.open_state() as state:
        work = Killing(state, home, find(state, "words"), said.append)
        assert work._ordered(10.0)
    assert said[-1] == "it speaks protocol 1; it ends the topology"

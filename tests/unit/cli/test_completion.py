"""What a shell is given after TAB: by the command itself, called as the shell's completion calls it."""

from __future__ import annotations

import threading

import pytest
from typer.testing import CliRunner

from ardea.cli import completion
from ardea.cli.verbs import app
from ardea.scheduler.schedulers import Scheduler
from ardea.testing.schedulers import TOPOLOGIES
from tests.unit.cli import memory
from tests.unit.cli.memory import Memory

SHELF = ("--scheduler", "memory")


@pytest.fixture(autouse=True)
def endless(tmp_path, monkeypatch):
    """A scheduler ``memory`` is installed, and keeps the topology Endless."""
    info = tmp_path / "their_scheduler-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-scheduler\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[ardea.schedulers]\nmemory = tests.unit.cli.memory:Memory\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ARDEA_STATE", str(tmp_path / "state"))
    path = tmp_path / f"completed_{abs(hash(tmp_path))}.py"
    path.write_text(TOPOLOGIES)
    monkeypatch.setattr(completion, "WITHIN", 60.0)  # a busy machine is no place that does not answer
    memory.RUNNING.clear()
    made = Memory().prepare(f"{path}:Endless", {})
    memory.RUNNING[made.name] = made
    yield
    memory.RUNNING.clear()


def completed(*words: str) -> list[str]:
    """What bash may put in place of the last word."""
    variables = {
        "_ARDEA_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["ardea", *words]),
        "COMP_CWORD": str(len(words)),
    }
    run = CliRunner().invoke(app, [], prog_name="ardea", env=variables)
    return run.stdout.split()


@pytest.mark.parametrize("verb", ["describe", "top", "debug", "logs", "activate", "update", "restart", "kill"])
def test_every_verb_knows_the_topologies(verb):
    assert completed(verb, *SHELF, "E") == ["Endless"]
    assert completed(verb, *SHELF, "X") == []


def test_the_place_is_the_one_that_the_line_names():
    assert completed("logs", "E") == [], "there is none in the state directory"
    assert completed("logs", "--shelf", "top", "E") == ["Endless"], "an option of that scheduler"


def test_components_of_the_topology_that_is_named():
    known = [component.name for component in memory.entry("Endless").submission.definition.shape.components]
    assert len(known) > 1
    first = known[0]
    for verb in ("logs", "debug"):
        assert completed(verb, *SHELF, "Endless", first[:2]) == [name for name in known if name.startswith(first[:2])]
    assert completed("logs", *SHELF, "Nothing", first[:2]) == []
    assert completed("update", *SHELF, "Endless", "--component-parallelism", first) == [f"{first}:"]


def test_verbs_and_options():
    assert completed("deb") == ["debug"]
    assert "--follow" in completed("logs", "--fo")


@pytest.mark.parametrize("error", [OSError("no"), RuntimeError("no")])
def test_a_place_that_fails_completes_nothing(monkeypatch, error):
    def fails(self):
        raise error

    monkeypatch.setattr(Memory, "topologies", fails)
    assert completed("logs", *SHELF, "E") == []


def test_a_place_that_does_not_answer_completes_nothing(monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(completion, "WITHIN", 0.01)
    monkeypatch.setattr(Memory, "topologies", lambda self: answers.wait(30) and Scheduler.topologies(self))
    try:
        assert completed("logs", *SHELF, "E") == []
    finally:
        answers.set()

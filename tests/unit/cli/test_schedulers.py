"""``ardea submit NAME``: which schedulers there are, what they add to the command line, how it ends."""

from __future__ import annotations

import dataclasses
import json
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ardea.cli.verbs import app
from ardea.code import Code, Source
from ardea.errors import ExitCode
from ardea.scheduler import registry
from ardea.scheduler.schedulers import Verdict
from ardea.state.records import RunState
from ardea.testing.schedulers import TOPOLOGIES, check_scheduler
from tests.unit.cli import memory
from tests.unit.cli.memory import Entry, Found, Memory

ROOT = Path(__file__).parents[3]


def ardea(*args: object):
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="ardea")


@pytest.fixture(autouse=True)
def nothing_runs():
    memory.RUNNING.clear()


@pytest.fixture
def file(tmp_path) -> str:
    path = tmp_path / f"conforms_{abs(hash(tmp_path))}.py"
    path.write_text(TOPOLOGIES)
    return str(path)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A package with one scheduler, as pip would leave it."""

    def installed(value="tests.unit.cli.memory:Memory", text=""):
        info = tmp_path / "their_scheduler-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-scheduler\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[ardea.schedulers]\nmemory = {value}\n")
        if text:
            (tmp_path / f"{value.partition(':')[0]}.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))

    return installed


def test_the_built_in_ones_are_registered_as_any():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    offered = project["entry-points"]["ardea.schedulers"]
    assert set(offered) == {"kubernetes", "local"}
    for name, value in offered.items():
        module, _, called = value.partition(":")
        assert registry.load(name) is getattr(import_module(module), called)


def test_an_unknown_name_lists_those_that_are_installed(install):
    install()
    told = ardea("submit", "slurm", "x.py", "--partition", "long")
    assert told.exit_code == ExitCode.INVALID
    assert "error: no scheduler is called slurm; installed are kubernetes, local, memory\nhint: install" in told.stderr


def test_whoever_forgets_the_scheduler_is_told_the_command(tmp_path):
    told = ardea("submit", "x.py:Words")
    assert told.exit_code == ExitCode.USAGE
    assert "hint: `ardea submit local x.py:Words` starts it" in told.stderr
    file = tmp_path / "topology"
    file.touch()
    assert f"`ardea submit local {file}`" in ardea("submit", file).stderr.replace("\n", "")


def test_the_options_of_its_constructor_are_options_of_the_verb(install, file):
    install()
    assert "memory" in ardea("submit", "--help").stdout
    shown = ardea("submit", "memory", "--help").stdout
    assert "Start nothing at all." in shown
    assert [option for option in ("--shelf", "--copies", "--containers", "--no-wait") if option not in shown] == []
    told = ardea("submit", "memory", f"{file}:Endless", "--shelf", "low", "--copies", 2, "-o", "json", "--name", "Mine")
    assert told.exit_code == 0, told.stderr
    document = json.loads(told.stdout)
    assert document.pop("id") == memory.RUNNING["Mine"].id
    assert document == {"topology": "Mine", "state": "RUNNING", "reason": "", "shelf": "low", "copies": "2"}
    assert "it is dusty here" in told.stderr
    assert "is submitted to shelf low" in told.stderr
    assert "--shelf top` shows it" in told.stderr


def test_a_dry_run_submits_nothing(install, file, monkeypatch):
    install()
    document = json.loads(ardea("submit", "memory", f"{file}:Endless", "--dry-run", "-o", "json").stdout)
    assert document["topology"] == "Endless"
    preview = Memory.preview

    def shown(*asked):
        found = preview(*asked)
        return dataclasses.replace(found, manifests=[{"kind": "Shelf", "books": 3}], before="a\nb", after="c")

    monkeypatch.setattr(Memory, "preview", shown)
    told = ardea("submit", "memory", f"{file}:Endless", "--dry-run")
    assert told.stdout == "# a\n# b\nkind: Shelf\nbooks: 3\n# c\n"
    told = ardea("submit", "memory", f"{file}:Endless", "--dry-run", "-o", "json")
    assert json.loads(told.stdout)["items"] == [{"kind": "Shelf", "books": 3}]
    assert told.stderr == "a\n  b\nc\n"
    assert memory.RUNNING == {}


@pytest.mark.parametrize(
    ("verdict", "code", "says"),
    [
        (Verdict(RunState.SUCCEEDED), ExitCode.OK, "has SUCCEEDED; `ardea describe"),
        (Verdict(RunState.FAILED, "no water", "look outside"), ExitCode.FAILED, "FAILED: no water\nhint: look outside"),
        (Verdict(RunState.KILLED, "by hand"), ExitCode.INTERRUPTED, "was killed: by hand"),
        (Verdict(RunState.KILLED), ExitCode.INTERRUPTED, "was killed\n"),
    ],
    ids=["succeeded", "failed", "killed", "killed without a reason"],
)
def test_the_exit_code_is_the_verdicts(install, file, monkeypatch, verdict, code, says):
    install()
    asked = []
    monkeypatch.setattr(Entry, "wait", lambda _, patience, *, ended, show: asked.append((patience, ended)) or verdict)
    told = ardea("submit", "memory", f"{file}:Bounded", "--wait", "-o", "json")
    assert (told.exit_code, asked) == (code, [(None, True)])
    assert says in told.stderr
    assert json.loads(told.stdout)["state"] == verdict.state


@pytest.mark.parametrize(
    ("options", "asked"),
    [([], (5.0, False)), (["--wait-secs", "0"], (0.0, False)), (["--wait", "--wait-secs", "9"], (9.0, True))],
    ids=["until-it-runs", "not-at-all", "until-it-has-ended"],
)
def test_how_long_is_waited(install, file, monkeypatch, options, asked):
    install()
    seen = []

    def wait(_, patience, *, ended, show):
        seen.append((patience, ended))
        return Verdict(RunState.RUNNING)

    monkeypatch.setattr(Entry, "wait", wait)
    assert ardea("submit", "memory", f"{file}:Endless", *options).exit_code == 0
    assert seen == [asked]


def test_nobody_waits_who_does_not_want_to(install, file, monkeypatch):
    install()
    monkeypatch.setattr(Entry, "wait", None)
    told = ardea("submit", "memory", f"{file}:Endless", "--no-wait", "-o", "json")
    assert (told.exit_code, json.loads(told.stdout)["state"]) == (0, "SUBMITTED")


def test_an_interrupted_submitter_says_how_to_end_it(install, file, monkeypatch):
    install()

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Entry, "wait", interrupted)
    told = ardea("submit", "memory", f"{file}:Endless")
    assert told.exit_code == ExitCode.INTERRUPTED
    assert f"goes on: `ardea kill {memory.RUNNING['Endless'].id} --shelf top` ends it" in told.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("", "ModuleNotFoundError: No module named 'theirs_absent'"),
        ("class Theirs: pass", "theirs_class:Theirs is no subclass of ardea.scheduler.schedulers.Scheduler"),
        (
            "from ardea.scheduler.schedulers import Scheduler\nclass Theirs(Scheduler): pass",
            "theirs_abstract:Theirs has no find, kill, logs, prepare, topologies",
        ),
        (
            "from tests.unit.cli.memory import Memory\nclass Theirs(Memory):\n    def __init__(self, host): pass",
            "the parameter host of theirs_default:Theirs has no default",
        ),
    ],
    ids=["raises", "absent", "class", "abstract", "default"],
)
def test_one_that_cannot_be_used_is_named_and_harms_no_other(install, request, text, says):
    install(f"theirs_{request.node.callspec.id}:Theirs", text)
    told = ardea("submit", "memory", "x.py", "--shelf", "low")
    assert told.exit_code == ExitCode.INVALID
    assert "the scheduler memory of the package their-scheduler cannot be used: " in told.stderr
    assert says in told.stderr
    assert "Traceback" not in told.stderr
    assert "memory" in ardea("submit", "--help").stdout
    assert ardea("submit", "local", "--help").exit_code == 0


# --- the other verbs ----------------------------------------------------------------------------------------------


@pytest.fixture
def endless(install, file):
    """It runs; the command line of a verb for it."""
    install()
    assert ardea("submit", "memory", f"{file}:Endless").exit_code == 0

    def run(*args: object):
        return ardea(*args, "--shelf", "top")

    return run


def test_every_verb_knows_a_third_scheduler(endless, tmp_path):
    """By its own option; it is loaded for none that needs no scheduler."""
    (listed,) = json.loads(endless("list", "-o", "json").stdout)["topologies"]
    assert (listed["name"], listed["running"]) == ("Endless", True)
    described = json.loads(endless("describe", "Endless", "-o", "json").stdout)
    assert sorted(described["status"]["tasks"]) == ["ignore-0", "numbers-0"]
    assert endless("logs", "Endless", "numbers").stdout == "it begins\n"
    assert "numbers-0: it begins" in endless("logs", "Endless").stdout
    assert endless("deactivate", "Endless").exit_code == 0
    assert memory.RUNNING["Endless"].state == "PAUSED"
    assert "Endless-" in endless("restart", "Endless").stderr
    assert memory.RUNNING["Endless"].life == 2
    looked = endless("debug", "stacks", "Endless", "numbers")
    assert ("Current thread" in looked.stdout, "asked by a signal" in looked.stderr) == (True, True)
    packed = endless("debug", "bundle", "Endless", "-o", tmp_path)
    assert (packed.exit_code, len(list(tmp_path.glob("Endless-*-bundle.tar.gz")))) == (0, 1), packed.stderr
    assert json.loads(endless("top", "Endless", "-o", "json", "--interval", "0.2").stdout)["state"] == "PAUSED"
    told = endless("update", "Endless", "--component-parallelism", "ignore:2", "--copies", "3")
    assert told.exit_code == 0, told.stderr
    assert "it is moved" in told.stderr
    assert len(memory.RUNNING["Endless"].tasks) == 3
    assert endless("kill", "Endless").exit_code == 0
    assert memory.RUNNING == {}
    assert endless("kill", "Endless").exit_code == ExitCode.NOT_FOUND


@pytest.mark.parametrize(
    ("where", "verb", "said"),
    [
        ((Entry, "submit"), ["submit", "memory", "FILE:Bounded"], "may have been started: `ardea kill Bounded-"),
        (
            (memory.Pending, "apply"),
            ["update", "Endless", "--component-parallelism", "ignore:2"],
            "the same again finishes",
        ),
        ((Memory, "kill"), ["kill", "Endless"], "until another `ardea kill` has finished"),
        ((Found, "ask"), ["savepoint", "Endless", "--to", "/there"], "it is whole if /there/savepoint.json is there\n"),
        ((Found, "ask"), ["kill", "Endless", "--savepoint", "--to", "/there"], "is there; the topology ends with it\n"),
        ((Found, "restart"), ["restart", "Endless"], "are started again; `ardea describe Endless-"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_an_interrupted_verb_says_what_goes_on(endless, file, monkeypatch, where, verb, said):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(*where, interrupted)
    told = endless(*(word.replace("FILE", file) for word in verb))
    assert told.exit_code == ExitCode.INTERRUPTED
    assert told.stderr.count("interrupted; ") == 1
    assert said in told.stderr


@pytest.mark.parametrize(
    ("verb", "option"),
    [
        (["submit", "memory", "FILE:Endless", "--from"], "--from"),
        (["savepoint", "Endless", "--to"], "--to"),
        (["kill", "Endless", "--savepoint", "--to"], "--to"),
        (["submit", "memory", "FILE:Endless", "--set"], "topology.stateful.storage"),
    ],
)
def test_a_password_in_an_address_of_state_is_refused_and_not_repeated(endless, file, verb, option):
    address = "s3://AKID:SECRET@bucket/folder"
    given = f"topology.stateful.storage={address}" if verb[-1] == "--set" else address
    told = endless(*(word.replace("FILE", file) for word in verb), given)
    assert told.exit_code == ExitCode.INVALID
    assert f"{option} has a password" in told.stderr
    assert "SECRET@" not in told.stderr


def test_the_plan_that_runs_is_drawn_and_not_that_of_the_file(endless, file):
    assert endless("update", "Endless", "--component-parallelism", "ignore:2").exit_code == 0
    Path(file).unlink()
    drawn = endless("describe", "Endless", "--plan", "-o", "json")
    assert drawn.exit_code == 0, drawn.stderr
    assert {row["component"]: row["tasks"] for row in json.loads(drawn.stdout)["components"]} == {
        "ignore": 2,
        "numbers": 1,
    }


@pytest.mark.parametrize(
    ("code", "known"),
    [
        (lambda kept: kept, True),
        (lambda _: None, False),
        (lambda _: Code("gone", "/nowhere", {"gone": Source("/nowhere/gone.py", b"import nothing_here")}), False),
    ],
    ids=["kept", "elsewhere", "cannot be loaded"],
)
def test_operations_of_trident_are_drawn_where_the_submitted_code_can_be_loaded(install, monkeypatch, code, known):
    install()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert ardea("submit", "memory", ROOT / "examples" / "trident_word_count.py").exit_code == 0
    kept = memory.RUNNING["TridentWordCount"].submission.code
    monkeypatch.setattr(Found, "code", lambda _: code(kept))
    drawn = ardea("describe", "TridentWordCount", "--plan", "--shelf", "top")
    assert drawn.exit_code == 0, drawn.stderr
    assert ("persist state1" in drawn.stdout) is known


def test_a_name_says_who_is_asked(endless, tmp_path):
    assert "Endless" in ardea("list", "--scheduler", "memory").stdout
    assert ardea("list", "--scheduler", "memory", "--state", tmp_path).exit_code == ExitCode.USAGE
    assert ardea("kill", "Endless", "--state", tmp_path).exit_code == ExitCode.NOT_FOUND
    told = ardea("kill", "Endless", "--scheduler", "slurm")
    assert (told.exit_code, "no scheduler is called slurm" in told.stderr) == (ExitCode.INVALID, True)
    told = ardea("kill", "Endless", "--shelf", "top", "--state", tmp_path)
    assert told.exit_code == ExitCode.USAGE
    assert "is an option of" in told.stderr


def test_a_place_without_checks_is_in_order(endless):
    assert endless("doctor").exit_code == 0
    assert endless("doctor", "--prune").exit_code == ExitCode.USAGE


def test_a_scheduler_that_cannot_be_used_is_no_obstacle(install, tmp_path):
    install("theirs_broken:Theirs", "raise RuntimeError('no licence')")
    assert ardea("list", "--state", tmp_path).exit_code == 0
    told = ardea("list", "--scheduler", "memory")
    assert (told.exit_code, "RuntimeError: no licence" in told.stderr) == (ExitCode.INVALID, True)


# --- the conformance suite ----------------------------------------------------------------------------------------


def test_a_scheduler_that_keeps_the_contract_passes(tmp_path):
    check_scheduler(Memory, tmp_path)
    assert memory.RUNNING == {}


class Deaf(Memory):
    def kill(self, topology, wait_secs, say):
        pass


class Forgetful(Memory):
    def topologies(self):
        return []


class Blind(Memory):
    """Knows only what it was told at first."""

    def find(self, topology):
        found = super().find(topology)
        asks = found.ask
        found.ask = lambda verb, **options: asks("status" if verb == "deactivate" else verb, **options)
        return found


class Lazy(Memory):
    def find(self, topology):
        found = super().find(topology)
        found.restart = lambda container, patience: [1]
        return found


class Stubborn(Memory):
    def find(self, topology):
        found = super().find(topology)
        updates = found.update

        def update(change, target):
            update = updates(change, target)
            update.apply = lambda patience, say: None
            return update

        found.update = update
        return found


class Mute(Memory):
    def find(self, topology):
        found = super().find(topology)
        found.dump = lambda task: None
        return found


class Hasty(Memory):
    def prepare(self, target, overrides, begins=None):
        entry = super().prepare(target, overrides, begins)
        entry.submit(print)
        return entry


class Careless(Memory):
    def prepare(self, target, overrides, begins=None):
        if "Missing" in target:
            return None
        return super().prepare(target, overrides, begins)


class Sharing(Memory):
    def prepare(self, target, overrides, begins=None):
        entry = super().prepare(target, overrides, begins)
        entry.submit = lambda _: memory.RUNNING.update({entry.name: entry})
        return entry


class Hopeful(Memory):
    def prepare(self, target, overrides, begins=None):
        entry = super().prepare(target, overrides, begins)
        if entry.kind == "Hopeless":
            entry.kind = "Endless"
        return entry


class Silent(Memory):
    def prepare(self, target, overrides, begins=None):
        entry = super().prepare(target, overrides, begins)
        if entry.kind == "Hopeless":
            entry.wait = lambda *_, **__: Verdict(RunState.FAILED, "it went wrong")
        return entry


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (Deaf, "kill of a topology that was only prepared raises nothing, expected NotFound"),
        (Hasty, "kill of a topology that was only prepared raises nothing, expected NotFound"),
        (Careless, "prepare of a class that is not there raises nothing, expected UserError"),
        (Sharing, "submit under a name that runs raises nothing, expected Conflict"),
        (Hopeful, "a process ended with exit code 78, and the topology goes on"),
        (Silent, "the reason of a failure names no task: 'it went wrong'"),
        (Forgetful, "the topologies of this name that run: [], expected [True]"),
        (Blind, "the state that deactivate answers: 'RUNNING', expected"),
        (Lazy, "the tasks with a new life: [], expected ['ignore-0', 'numbers-0']"),
        (Stubborn, "the tasks after an update: ['ignore-0', 'numbers-0'], expected"),
        (Mute, "a stack in the log of ignore-0: not within 0.5 s"),
    ],
)
def test_the_suite_says_what_a_scheduler_does_not_keep(tmp_path, broken, says):
    with pytest.raises(AssertionError) as caught:
        check_scheduler(broken, tmp_path, patience=0.5)
    assert str(caught.value).startswith(says)

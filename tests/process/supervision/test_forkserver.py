"""Processes that are forked with everything loaded are what they would be otherwise."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from ardea.supervision.spec import ProcessSpec
from tests.process.waiting import alive, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each process is started for itself")

PRELOAD = ("numpy", "numpy.random")


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def process(name, module, *args, **options):
    return ProcessSpec(name, (sys.executable, "-P", "-m", module, *args), **{"cores": 1, **options})


def printed(run, name):
    lines = eventually(lambda: [x for x in run.log(name).splitlines() if x.startswith("{")], what=run.everything)
    return json.loads(lines[-1])


def forkserver_of(run):
    """Its pid; None: there is none."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == run.popen.pid and b"ardea.forkserver" in stat.with_name("cmdline").read_bytes():
                return int(stat.parent.name)
        except OSError:
            continue
    return None


def test_a_forked_process_finds_what_a_started_one_finds(supervise, tmp_path):
    plain = supervise(process("a", "shown", "x", "y z"), folder=tmp_path / "plain")
    assert plain.wait() == 0
    run = supervise(process("a", "shown", "x", "y z"), folder=tmp_path / "forked", preload=PRELOAD)
    assert run.wait() == 0
    started, forked = printed(plain, "a"), printed(run, "a")
    assert (started["loaded"], forked["loaded"]) == (False, True)
    assert forked["same"] == started["same"]
    assert (started["parent"], forked["parent"]) == (plain.popen.pid, run.popen.pid)


def test_what_is_forked_begins_as_the_supervisors_child(supervise):
    run = supervise(process("a", "shown"), preload=(*PRELOAD, "ends_slowly"))
    assert run.wait() == 0
    assert printed(run, "a")["loaded"]
    assert printed(run, "a")["parent"] == run.popen.pid


def test_what_is_forked_without_an_answer_never_begins(supervise, tmp_path):
    run = supervise(process("a", "marks", str(tmp_path / "begun")), preload=("says_nothing",))
    assert run.wait() == 0
    assert "forkserver: timed out; processes are started without it" in run.everything()
    assert [line.split()[1] for line in (tmp_path / "begun").read_text().splitlines()] == ["False"]


def test_siblings_draw_different_numbers(supervise):
    run = supervise(process("a", "shown"), process("b", "shown"), preload=PRELOAD)
    assert run.wait() == 0
    drawn = printed(run, "a")["drawn"] + printed(run, "b")["drawn"]
    assert len(set(drawn)) == len(drawn) == 4


@pytest.mark.parametrize("options", [{"env": {"LC_ALL": "C"}}, {"cores": 2}, {"cores": None}])
def test_another_environment_needs_a_start_of_its_own(supervise, options, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    run = supervise(process("a", "shown", **options), process("b", "shown"), preload=PRELOAD)
    assert run.wait() == 0
    assert not printed(run, "a")["loaded"]
    assert printed(run, "b")["loaded"]


def test_ends_are_seen_as_ever(supervise):
    run = supervise(process("a", "child", "once"), process("b", "child", "serve"), preload=PRELOAD)
    eventually(lambda: len(run.exits("a")) == 2, what=run.everything)
    assert [(end.code, end.reason) for end in run.exits("a")] == [(1, "exit 1"), (0, "exit 0")]
    os.kill(run.serving("b"), signal.SIGKILL)
    run.serving("b", life=2)
    assert run.exits("b")[0].signal == "SIGKILL"
    assert run.stop() == 75


@pytest.mark.parametrize("stopped", [False, True])
def test_nothing_outlives_the_supervisor(supervise, stopped):
    run = supervise(process("a", "child", "serve"), process("b", "child", "deaf"), preload=PRELOAD)
    pids = [run.serving("a"), run.serving("b"), forkserver_of(run)]
    assert run.pids() == {run.popen.pid, *pids}, "what is forked, and the forkserver, would be seen as orphans"
    if stopped:
        os.kill(pids[-1], signal.SIGSTOP)
    run.popen.kill()
    run.wait()
    eventually(lambda: not any(map(alive, pids)), what=lambda: f"left: {[p for p in pids if alive(p)]}")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_without_its_forkserver_a_supervisor_starts_processes_itself(supervise, number):
    run = supervise(process("a", "child", "serve"), preload=PRELOAD)
    pid, forkserver = run.serving("a"), forkserver_of(run)
    os.kill(forkserver, number)
    if number == signal.SIGKILL:  # noticed before it is needed: its socket would be readable for ever
        eventually(lambda: "forkserver: it has ended; processes are" in run.everything(), what=run.everything)
    os.kill(pid, signal.SIGKILL)
    run.serving("a", life=2)
    eventually(lambda: not alive(forkserver), what=run.everything)
    assert "processes are started without it" in run.everything()
    assert run.stop() == 75


@pytest.mark.parametrize("module", ["no_such_module", "starts_a_thread"])
def test_a_forkserver_that_does_not_get_ready_is_done_without(supervise, module):
    run = supervise(process("a", "shown"), preload=(module,))
    assert run.wait() == 0
    assert not printed(run, "a")["loaded"]
    assert "processes are started without it" in run.everything()


def test_a_folder_that_the_forkserver_did_not_find_is_found_later(supervise, tmp_path, monkeypatch):
    late = tmp_path / "late"
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{late}")
    run = supervise(process("a", "imports_late", str(late)), preload=PRELOAD)
    assert run.wait() == 0
    assert run.log("a").count("started, pid") == 2, run.everything()

"""The supervisor with real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ardea.supervision import records
from ardea.supervision.spec import Policy, ProcessSpec, dump
from tests.machine import patient
from tests.process.supervision.conftest import CHILD, child
from tests.process.waiting import alive, eventually

MIB = 1 << 20
SILENCE = 2.0
"""Seconds without a beat; on a busy machine even one that is at work may be late for less than that."""


def test_a_killed_process_is_started_again_with_a_higher_life(supervise):
    run = supervise(child("count-1", "serve"), child("count-2", "serve"))
    first, other = run.serving("count-1"), run.serving("count-2")
    os.kill(first, signal.SIGKILL)
    second = run.serving("count-1", life=2)
    assert second != first
    assert run.process("count-2")["pid"] == other
    (exit_,) = run.exits("count-1")
    assert (exit_.life, exit_.pid, exit_.code, exit_.signal) == (1, first, None, "SIGKILL")
    assert "not by its supervisor" in exit_.reason
    assert f"--- life 2 started, pid {second} ---" in run.log("count-1")
    assert run.stop() == 75
    assert not alive(second)


def test_a_stop_is_temporary_although_all_end_with_zero(supervise):
    run = supervise(child("a", "serve"), child("b", "serve"))
    pids = [run.serving("a"), run.serving("b")]
    assert run.stop() == 75
    assert not any(map(alive, pids))
    assert records.read_status(run.folder)["state"] == "ended"


def test_when_the_one_that_leads_has_ended_the_others_are_ended(supervise):
    """One that would wait for ever, one that is deaf to SIGTERM, one that crashes again and again."""
    grace = min(patient(2.5), 8)  # waited for twice, and in which "waits" has to get a core
    run = supervise(
        child("waits", "serve", "75"),
        child("deaf", "deaf"),
        child("crashes", "exit", "1"),
        child("manager", "serve", "0", leads=True),
        grace=grace,
    )
    pids = [run.serving("waits"), run.serving("deaf")]
    os.kill(run.serving("manager"), signal.SIGTERM)
    assert run.wait() == 0
    assert not any(map(alive, pids))
    assert [(end.code, end.again) for end in run.exits("waits")] == [(75, False)]
    assert run.exits("deaf")[-1].reason == f"killed by SIGKILL (did not end within {grace:g} s of SIGTERM)"


@pytest.mark.parametrize("leads", [False, True])
def test_who_exits_with_zero_before_its_work_is_done_is_started_again(supervise, leads):
    """A stranger's SIGTERM, or user code that exits."""
    run = supervise(child("a", "serve", leads=leads))
    os.kill(run.serving("a"), signal.SIGTERM)
    run.serving("a", life=2)
    (end,) = run.exits("a")
    assert (end.code, end.reason) == (75, "exit 0 (before its work was done)")
    assert run.stop() == 75


def test_ctrl_c_reaches_only_the_supervisor(supervise):
    run = supervise(child("a", "serve"))
    pid = run.serving("a")
    assert os.getpgid(pid) == pid != os.getpgid(run.popen.pid)
    os.killpg(run.popen.pid, signal.SIGINT)
    assert run.wait() == 75


def test_who_ignores_sigterm_is_killed_after_the_grace(supervise):
    run = supervise(child("a", "deaf"), grace=0.3)
    run.serving("a")
    assert run.stop() == 75
    assert run.exits("a")[-1].reason == "killed by SIGKILL (did not end within 0.3 s of SIGTERM)"


def test_a_stopped_process_is_killed_and_started_again(supervise):
    run = supervise(child("a", "serve"), silence=SILENCE)
    pid = run.serving("a")
    os.kill(pid, signal.SIGSTOP)
    run.serving("a", life=2)
    assert "it is stopped" in run.exits("a")[0].reason
    assert not alive(pid)


def test_a_process_idle_inside_user_code_is_killed(supervise):
    run = supervise(child("a", "hang"), silence=SILENCE)
    eventually(lambda: run.exits("a"), what=run.everything)
    assert "it is idle" in run.exits("a")[0].reason


def test_user_code_that_holds_the_interpreter_lock_is_reported_not_killed(supervise):
    run = supervise(child("a", "hold"), silence=SILENCE)
    pid = run.running("a")
    eventually(lambda: " in main" in run.log("a"), what=run.everything)  # a stack is written piece by piece
    assert "s; its stack follows ---" in run.log("a")
    eventually(lambda: run.process("a")["state"] == "silent", what=run.everything)
    assert run.process("a")["pid"] == pid
    run.popen.kill()
    run.wait()
    eventually(lambda: not alive(pid), what="the kernel ends what cannot run its parent link")


def test_a_call_of_user_code_that_does_not_return_is_reported_not_killed(supervise):
    run = supervise(child("a", "wait"), report=0.6)
    eventually(lambda: run.log("a").count("in one call of user code for") > 1, what=run.everything)
    eventually(lambda: " in main" in run.log("a"), what=run.everything)  # a stack is written piece by piece
    eventually(lambda: run.process("a")["state"] == "stuck", what=run.everything)  # the status follows the log
    assert run.process("a")["life"] == 1
    run.popen.terminate()
    run.wait()


def test_killing_the_supervisor_ends_all_that_it_or_its_children_started(supervise, tmp_path):
    note = tmp_path / "sleeper"
    run = supervise(child("a", "serve"), child("b", "parent", str(note)), child("c", "deaf"))
    eventually(lambda: note.exists() and note.read_text(), what=run.everything)
    pids = [run.serving("a"), run.running("b"), run.serving("c"), int(note.read_text())]
    assert all(map(alive, pids))
    run.popen.kill()
    run.wait()
    eventually(lambda: not any(map(alive, pids)), what=lambda: f"left: {[p for p in pids if alive(p)]}")


def test_a_killed_process_takes_along_what_it_started(supervise, tmp_path):
    note = tmp_path / "sleeper"
    run = supervise(child("a", "parent", str(note)))
    eventually(lambda: note.exists() and note.read_text(), what=run.everything)
    sleeper = int(note.read_text())
    os.kill(run.running("a"), signal.SIGKILL)
    eventually(lambda: not alive(sleeper), what="the sleeper ends")


@pytest.fixture
def nested(tmp_path):
    """A supervisor of a supervisor of a server."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "spec.json").write_text(dump([child("count-1", "serve")], Policy()))
    command = (sys.executable, "-m", "ardea.supervisor", "--folder", str(inner), "--spec", str(inner / "spec.json"))
    return inner, ProcessSpec("container-1", command)


def serving(inner: Path, life: int = 1) -> int:
    def pid():
        row = records.read_status(inner).get("processes", {}).get("count-1", {})
        log = inner / "logs" / "count-1.log"
        ready = row.get("life") == life and log.exists() and f"pid {row['pid']} ---\nserving" in log.read_text()
        return ready and row["pid"]

    return eventually(pid, what=f"count-1 serves its life {life}")


def test_killing_the_outer_supervisor_ends_the_innermost_process(supervise, nested):
    inner, container = nested
    run = supervise(container)
    pid, middle = serving(inner), run.running("container-1")
    run.popen.kill()
    run.wait()
    eventually(lambda: not alive(middle) and not alive(pid), what="both end")


def test_a_killed_inner_supervisor_is_replaced_and_lives_go_on(supervise, nested):
    inner, container = nested
    run = supervise(container)
    pid, middle = serving(inner), run.running("container-1")
    identity = records.read_status(inner)["supervisor"]
    os.kill(middle, signal.SIGKILL)
    serving(inner, life=2)
    assert not alive(pid)
    assert records.read_status(inner)["supervisor"] != identity
    assert run.stop() == 75


def test_the_reason_of_the_innermost_reaches_the_outermost(supervise, tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "spec.json").write_text(dump([child("count-1", "exit", "78")], Policy()))
    command = (sys.executable, "-m", "ardea.supervisor", "--folder", str(inner), "--spec", str(inner / "spec.json"))
    run = supervise(ProcessSpec("container-1", command))
    assert run.wait() == 78
    reason = run.exits("container-1")[-1].reason
    assert reason == "exit 78 (count-1: exit 78 (the configuration names no topology))"


def test_over_its_memory_it_dies_alone_and_says_why(supervise):
    run = supervise(child("a", "eat", str(200 * MIB), ram=64 * MIB), child("b", "serve"), silence=SILENCE)
    other = run.serving("b")
    eventually(lambda: run.exits("a"), what=run.everything)
    reason = run.exits("a")[0].reason
    assert reason.startswith("killed by SIGKILL (memory limit 64 MiB exceeded: ")
    assert f"life 1 ended: {reason}" in run.log("a")
    assert run.process("b")["pid"] == other


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ({}, "2 2 2"),
        ({"OMP_NUM_THREADS": "7"}, "7 None None"),  # the user's word for all of them
        ({"MKL_NUM_THREADS": "7"}, "2 2 7"),
    ],
)
def test_libraries_for_arrays_start_as_many_threads_as_cores_were_given(supervise, monkeypatch, said, seen):
    for name in ("OMP", "OPENBLAS", "MKL"):
        monkeypatch.delenv(f"{name}_NUM_THREADS", raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    run = supervise(child("given", "threads", cores=2), child("free", "threads"))
    assert run.wait() == 0
    assert f"\n{seen}\n" in run.log("given")
    assert f"\n{seen.replace('2', 'None')}\n" in run.log("free")


def test_exit_78_stops_the_rest_and_is_the_result(supervise):
    run = supervise(child("a", "serve"), child("b", "exit", "78"))
    assert run.wait() == 78
    assert run.exits("b")[-1].reason == "exit 78 (the configuration names no topology)"
    assert run.exits("b")[-1].life == 1


def test_what_ended_with_78_is_not_started_again_but_its_log_is_shown_until_the_leader_ends(supervise, tmp_path):
    """As in a pod, where kubelet starts again whatever ends with an error."""
    leader = supervise(child("manager", "serve", "0"), folder=tmp_path / "leader")
    said = tmp_path / "reason"
    options = ("--stdout", "--reason-file", str(said), "--leader", str(leader.folder), "manager")
    assert supervise(child("a", "exit", "78"), arguments=options).wait() == 78
    said.unlink()
    again = supervise(child("a", "exit", "78"), arguments=options)
    output = again.folder / "supervisor.log"
    eventually(lambda: "waits for the end of the topology" in output.read_text(), what=again.everything)
    assert output.read_text().count("--- life 1 ended: exit 78 (the configuration names no topology)") == 2
    assert "--- life 2" not in output.read_text()
    os.kill(leader.serving("manager"), signal.SIGKILL)
    os.kill(leader.serving("manager", life=2), signal.SIGTERM)
    assert leader.wait() == 0
    assert again.wait() == 0
    assert said.read_text() == "a: exit 78 (the configuration names no topology)\n"


def test_the_end_of_a_leader_elsewhere_ends_one_that_would_wait_for_ever(supervise, tmp_path):
    leader = tmp_path / "leader"
    run = supervise(child("a", "serve", "75"), arguments=("--leader", str(leader), "manager"), grace=0.5)
    pid = run.serving("a")
    assert supervise(child("manager", "exit", "0"), folder=leader).wait() == 0
    assert run.wait() == 0
    assert not alive(pid)


def test_a_leader_elsewhere_that_cannot_go_on_ends_the_others_and_keeps_its_log(supervise, tmp_path):
    """As in a pod, where kubelet starts it again until the tasks have ended, and then ends it."""
    leader = tmp_path / "leader"
    task = supervise(child("a", "serve", "75"), arguments=("--leader", str(leader), "manager"), grace=60)
    pid = task.serving("a")
    assert supervise(child("manager", "exit", "78"), folder=leader, arguments=("--stdout",)).wait() == 78
    assert task.wait() == 0
    assert not alive(pid)
    again = supervise(child("manager", "exit", "78"), folder=leader, arguments=("--stdout",))
    output = again.folder / "supervisor.log"
    eventually(lambda: "waits for the end of the topology" in output.read_text(), what=again.everything)
    assert output.read_text().count("--- life 1 ended: exit 78 (the configuration names no topology)") == 2
    assert again.stop() == 78


def test_a_command_that_does_not_exist_is_permanent(supervise):
    run = supervise(ProcessSpec("a", ("/nonexistent/python",)))
    assert run.wait() == 78
    assert "could not be started" in run.exits("a")[-1].reason


def test_all_exited_zero_after_a_restart_is_zero(supervise):
    run = supervise(child("a", "once"), child("b", "once"))
    assert run.wait() == 0
    assert [(exit_.code, exit_.again) for exit_ in run.exits("a")] == [(1, True), (0, False)]
    assert "life 2 runs\n--- life 2 ended: exit 0; not started again ---\n" in run.log("a")


def test_lives_go_on_under_a_new_supervisor(supervise):
    run = supervise(child("a", "serve"))
    run.serving("a")
    run.stop()
    run = supervise(child("a", "serve"))
    run.serving("a", life=2)
    assert run.stop() == 75
    assert [exit_.life for exit_ in run.exits("a")] == [1, 2]


def test_a_corrupt_life_is_said_and_not_guessed(supervise):
    run = supervise(child("b", "serve"))
    run.serving("b")
    run.stop()
    (run.folder / "lives" / "a").write_text("seven")
    run = supervise(child("a", "serve"))
    assert run.wait() == 78
    assert "holds 'seven', not a number" in run.exits("a")[-1].reason


def test_a_second_supervisor_waits_until_the_first_has_left(supervise):
    first = supervise(child("a", "serve"))
    first.serving("a")
    second = supervise(child("a", "serve"))
    eventually(lambda: _has_opened(second, "lock"), what=second.everything)
    assert first.stop() == 75
    second.serving("a", life=2)
    assert second.stop() == 75
    marks = [line for line in second.log("a").splitlines() if line.startswith("---")]
    assert [mark.split(",")[0].split(":")[0] for mark in marks] == [
        "--- life 1 started",
        "--- life 1 ended",
        "--- life 2 started",
        "--- life 2 ended",
    ]


def _has_opened(run, name: str) -> bool:
    """Whether the supervisor holds that file of its folder open."""
    for link in Path(f"/proc/{run.popen.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since
            if link.readlink() == run.folder / name:
                return True
    return False


def test_the_thread_of_the_parent_link_ends_the_group_where_the_kernel_does_not(tmp_path):
    """A child whose parent link nobody armed, as on macOS."""
    note = tmp_path / "sleeper"
    parent_link, ours = os.pipe()
    beats, theirs = os.pipe()
    popen = subprocess.Popen(
        (sys.executable, CHILD, "parent", str(note)),
        env={**os.environ, "ARDEA_PARENT_LINK": f"{parent_link},{theirs},{theirs}"},
        pass_fds=(parent_link, theirs),
        start_new_session=True,
    )
    os.close(parent_link)
    os.close(theirs)
    assert os.read(beats, 1) == b"u"
    sleeper = int(eventually(lambda: note.exists() and note.read_text(), what="the sleeper sleeps"))
    os.close(ours)
    assert popen.wait(10) == -signal.SIGKILL
    os.close(beats)
    eventually(lambda: not alive(sleeper), what="the sleeper ends")


def test_lines_of_both_streams_keep_their_order_over_rotation(supervise):
    run = supervise(child("a", "print", "20000"), log_bytes=40_000, log_files=50)
    assert run.wait() == 0
    log = run.folder / "logs" / "a.log"
    paths = [log, *(log.with_name(f"a.log.{n}") for n in range(1, 50))]
    paths = [path for path in reversed(paths) if path.exists()]
    assert len(paths) > 4
    assert all(path.stat().st_size <= 40_000 for path in paths)
    lines = "".join(path.read_text() for path in paths).splitlines()
    assert lines[0].startswith("--- life 1 started, pid ")
    assert lines[1:-2] == [f"line {n}" for n in range(20000)]
    assert lines[-2:] == ["half a line", "--- life 1 ended: exit 0; not started again ---"]


def test_a_specification_that_cannot_be_used_is_permanent(tmp_path):
    spec = tmp_path / "spec.json"
    spec.write_text('{"processes": [{"name": "a", "argvs": []}]}')
    command = (sys.executable, "-m", "ardea.supervisor", "--folder", str(tmp_path / "c"), "--spec", str(spec))
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(20), check=False)
    assert done.returncode == 78
    assert f"{spec} cannot be used: no key 'argv'; nothing was started" in done.stderr
    assert not (tmp_path / "c").exists()

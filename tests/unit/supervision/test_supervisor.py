"""What of the supervisor and of the parent link needs no more than one process beside it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import pytest

from ardea import parent_link
from ardea.errors import ConfigError, ExitCode
from ardea.supervision import kernel, records
from ardea.supervision.child import reap_orphans
from ardea.supervision.folder import Folder
from ardea.supervision.spec import Policy, ProcessSpec
from ardea.supervision.supervisor_state import Exited
from ardea.supervisor import Supervisor


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_names_must_differ_and_there_must_be_one(tmp_path, names):
    with pytest.raises(ConfigError, match="different names"):
        Supervisor([ProcessSpec(name, ("x",)) for name in names], tmp_path)


def test_a_supervisor_that_starts_is_not_about_to_be_ended(tmp_path):
    """No container is started in a pod that is deleted; the hook of the one before has run."""
    folder = Folder(tmp_path)
    (tmp_path / records.LEAVING).touch()
    assert folder.take()
    assert not (tmp_path / records.LEAVING).exists()
    folder.close()


def test_a_supervisor_that_starts_many_beats_meanwhile(tmp_path, monkeypatch):
    """It is a child itself: of one that takes ten seconds without a beat for its end."""
    now, beats, touches = 0.0, [0.0], [0.0]

    def start(supervisor, name):  # on a machine that is busy with those that were started before
        nonlocal now
        now += 0.5
        supervisor._handle(Exited(name, ExitCode.OK))

    monkeypatch.setattr(Supervisor, "_start", start)
    monkeypatch.setattr(parent_link, "beat", lambda in_user_code: beats.append(now))
    monkeypatch.setattr(Folder, "beat", lambda folder: touches.append(now))
    processes = [ProcessSpec(f"p{number}", ("x",)) for number in range(120)]
    assert Supervisor(processes, tmp_path, clock=lambda: now).run() is ExitCode.OK
    assert now == 60.0
    for each in (beats, touches):
        assert max(after - before for before, after in itertools.pairwise([*each, now])) < Policy().silence / 2


def test_pid_1_reaps_what_it_inherited_and_leaves_its_own_to_be_read():
    orphan = os.fork()
    if orphan == 0:
        os._exit(3)
    os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT)
    reap_orphans({orphan})
    assert os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT).si_status == 3
    reap_orphans(set())
    with pytest.raises(ChildProcessError):
        os.waitpid(orphan, 0)


def test_without_a_supervisor_the_parent_link_does_nothing(monkeypatch):
    for name in ("ARDEA_PARENT_LINK", "ARDEA_FOLDER", "ARDEA_LIFE"):
        monkeypatch.delenv(name, raising=False)
    parent_link.attach()
    parent_link.beat(in_user_code=True)
    parent_link.report("nobody reads this")
    assert parent_link.life() == 1


def test_a_look_at_oneself_sees_memory_and_work():
    seen = kernel.look(os.getpid())
    assert seen.resident > 1 << 20
    assert seen.cpu > 0
    assert not seen.stopped


@pytest.mark.parametrize("file", ["memory/memory.oom_control", "memory.events"])
def test_a_kill_for_memory_is_seen_once_by_either_version_of_control_groups(tmp_path, file):
    counters = tmp_path / file
    counters.parent.mkdir(exist_ok=True)
    counters.write_text("under_oom 0\noom_kill 2\n")
    kills = kernel.MemoryKills(tmp_path)
    assert not kills.look()
    counters.write_text("under_oom 0\noom_kill 3\n")
    assert kills.look()
    assert not kills.look()


def test_without_control_groups_nobody_was_killed_for_memory(tmp_path):
    (tmp_path / "memory.events").write_text("no counters here")
    assert not kernel.MemoryKills(tmp_path).look()


@pytest.mark.parametrize(("for_memory", "said"), [(True, "out of memory: killed by the kernel"), (False, "or by hand")])
def test_a_process_that_the_kernel_killed_for_its_memory_says_so(tmp_path, monkeypatch, for_memory, said):
    monkeypatch.setattr(kernel.MemoryKills, "look", lambda kills: for_memory)
    dies = (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert Supervisor([ProcessSpec("p", dies, restart="never")], tmp_path).run() is ExitCode.TEMPORARY
    (end,) = records.read_exits(tmp_path, "p")
    assert end.reason.startswith("killed by SIGKILL")
    assert said in end.reason


def test_a_look_at_nobody_is_none():
    assert kernel.look(2**22 + 1) is None


def test_supervisor_and_parent_link_import_nothing_but_the_standard_library():
    code = (
        "import sys; import ardea.supervisor; "
        "print(sorted({m.partition('.')[0] for m in sys.modules} - sys.stdlib_module_names - {'ardea', '__main__'}))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"

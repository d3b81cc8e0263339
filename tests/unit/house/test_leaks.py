"""The leak checks see what they are there to see."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

WAIT_FOR_EVER = "import signal; signal.pause()"


def test_a_living_child_is_a_leak(leaks):
    with subprocess.Popen([sys.executable, "-c", WAIT_FOR_EVER]) as child:
        assert leaks.processes().keys() == {child.pid}
        child.kill()
    assert leaks.processes() == {}


def test_a_dead_child_that_nobody_waited_for_is_a_leak(leaks, deadline):
    child = subprocess.Popen([sys.executable, "-c", ""])
    deadline(lambda: "nobody waited" in leaks.processes()[child.pid], "the child is dead")
    child.wait()
    assert leaks.processes() == {}


def test_a_forked_child_is_a_leak(leaks):
    release = multiprocessing.get_context("fork").Event()
    child = multiprocessing.get_context("fork").Process(target=release.wait)
    child.start()
    assert leaks.processes().keys() == {child.pid}
    release.set()
    child.join()
    child.close()
    assert leaks.processes() == {}


def test_a_process_that_lost_its_parent_is_a_leak(leaks, deadline):
    orphaned = f"[sys.executable, '-c', {WAIT_FOR_EVER!r}], stdout=subprocess.DEVNULL"
    parent = f"import subprocess, sys; print(subprocess.Popen({orphaned}).pid)"
    run = subprocess.run([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, check=True)
    orphan = int(run.stdout)
    assert leaks.processes().keys() == {orphan}
    os.kill(orphan, signal.SIGKILL)
    deadline(lambda: not leaks.processes(), "the orphan is gone")


def test_a_temporary_folder_of_ardea_is_a_leak(leaks):
    with tempfile.TemporaryDirectory(prefix="ardea-") as folder:
        assert leaks.files() == [Path(folder)]
    assert leaks.files() == []


def test_a_socket_is_a_leak_wherever_it_is(leaks, tmp_path):
    (tmp_path / "plain").touch()
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "run" / "gateway"))
    assert leaks.files(tmp_path) == [tmp_path / "run" / "gateway"]
    (tmp_path / "run" / "gateway").unlink()
    assert leaks.files(tmp_path) == []


def test_children_keep_their_temporary_files_in_the_runs_own_folder(leaks):
    script = "import tempfile; print(tempfile.gettempdir())"
    run = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    assert Path(run.stdout.strip()) == leaks.temporary == Path(tempfile.gettempdir())


def test_deadline_returns_what_it_waited_for(deadline):
    values = iter([0, "", "here"])
    assert deadline(lambda: next(values), "something is here") == "here"


def test_deadline_names_what_it_waited_for_in_vain(deadline):
    with pytest.raises(pytest.fail.Exception, match=r"0\.02 s for this: pigs fly; the last value was \[\]"):
        deadline(list, "pigs fly", seconds=0.02)

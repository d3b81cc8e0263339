"""Processes share their supervisor's session, unless it has a terminal (decision 65)."""

from __future__ import annotations

import os
import pty
import signal
import sys

import pytest

from ardea.supervision.spec import ProcessSpec
from tests.process.supervision.conftest import child
from tests.process.waiting import alive, eventually

PRELOADS = [(), *([("json",)] if sys.platform == "linux" else [])]


@pytest.fixture
def terminal():
    """(what types, what is typed into) of a terminal."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    for end in (ours, theirs):
        os.close(end)


def serving(run, *names):
    return [run.serving(name) for name in names]


def forked(name, *args):
    return ProcessSpec(name, (sys.executable, "-P", "-m", "child", *args), cores=1)


@pytest.fixture(autouse=True)
def path(monkeypatch, request):
    monkeypatch.setenv("PYTHONPATH", str(request.path.parent))


@pytest.mark.parametrize("preload", PRELOADS)
def test_without_a_terminal_all_are_in_one_session_each_with_a_group_of_its_own(supervise, preload):
    run = supervise(forked("a", "serve"), forked("b", "serve"), child("c", "serve"), preload=preload)
    pids = serving(run, "a", "b", "c")
    assert [os.getsid(pid) for pid in pids] == [run.popen.pid] * 3
    assert [os.getpgid(pid) for pid in pids] == pids
    assert run.stop() == 75


@pytest.mark.parametrize("preload", PRELOADS)
def test_what_a_terminal_types_reaches_the_supervisor_only(supervise, terminal, preload):
    """They would die of SIGINT, and end with 0 after SIGTERM."""
    keyboard, screen = terminal
    run = supervise(forked("a", "serve"), child("b", "serve"), terminal=screen, preload=preload)
    pids = serving(run, "a", "b")
    assert run.popen.pid not in [os.getsid(pid) for pid in pids]
    os.write(keyboard, b"\x03")
    assert run.wait() == 75
    assert all(run.exits(name)[0].reason.startswith("exit 0") for name in ("a", "b")), run.everything()


@pytest.mark.parametrize("preload", PRELOADS)
def test_a_stopped_process_does_not_outlive_a_supervisor_of_its_session(supervise, preload):
    run = supervise(forked("a", "serve"), child("b", "deaf"), preload=preload)
    pids = serving(run, "a", "b")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    run.popen.kill()
    run.wait()
    eventually(lambda: not any(map(alive, pids)), what=lambda: f"left: {[p for p in pids if alive(p)]}")

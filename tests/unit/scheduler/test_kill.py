"""`ardea kill` of what is not alive any more, and of what will not end."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime

import pytest

from ardea.errors import Conflict, NotFound, TimedOut, Unreachable
from ardea.scheduler import kill as module
from ardea.scheduler.home import Home, hold
from ardea.scheduler.kill import Killing
from ardea.scheduler.local_handle import LocalHandle
from ardea.state import paths, records, topologies
from ardea.state.records import SchedulerLocation, TopologyRecord
from ardea.state.topologies import find, register

NAME, ID = "words", "words-00000000"


class Time:
    """Passes only while somebody pauses."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    home.make_folder(ID)
    return home


@pytest.fixture
def state(home):
    with home.open_state() as state:
        record = TopologyRecord(
            id=ID, name=NAME, location="w.py", topology_class="W", config={}, submitted_by="u",
            submitted_at=datetime.now(UTC), submitted_from="h", ardea_version="0", digest="0", components={},
        )  # fmt: skip
        register(state, record)
        yield state


@pytest.fixture
def kill(home, state):
    """Kills, and returns what was said."""

    def killed(**options: float) -> list[str]:
        said: list[str] = []
        time = Time()
        Killing(state, home, find(state, NAME), said.append, clock=time, pause=time.pause).kill(**options)
        return said

    return killed


def lease(state, host: str):
    location = SchedulerLocation(scheduler="local", host=host, pid=os.getpid())
    return state.lease(paths.scheduler(ID), records.encode(location))


def left(state) -> list[str]:
    return [path for path in (*paths.every(ID), paths.name(NAME)) if state.exists(path)]


def test_what_a_dead_daemon_left_is_removed_and_said(kill, state):
    assert kill(wait_secs=10) == [f"{ID} is dead: nobody keeps its processes any more; what it left is removed"]
    assert left(state) == []


def test_nothing_is_removed_while_a_process_lives(kill, state, home):
    lock = hold(home.folder(ID))
    with pytest.raises(TimedOut, match="a process of it still lives after 10 s"):
        kill(wait_secs=10)
    assert left(state) != []
    os.close(lock)
    kill(wait_secs=10)
    assert left(state) == []


def test_a_keeper_of_another_machine_is_named_and_not_signalled(kill, state, monkeypatch):
    monkeypatch.setattr(module.os, "kill", lambda *_: pytest.fail("signalled"))
    held = lease(state, "elsewhere")
    monkeypatch.setattr(Killing, "_ordered", lambda *_: True)
    with pytest.raises(TimedOut, match=r"process \d+ on elsewhere keeps it"):
        kill(wait_secs=10)
    assert left(state) != []
    held.release()


def test_a_keeper_that_does_not_end_gets_sigterm_and_then_sigkill(kill, state, monkeypatch):
    signals: list[str] = []
    held = lease(state, socket.gethostname())

    def sent(pid: int, number) -> None:
        assert pid == os.getpid()
        signals.append(number.name)
        if number.name == "SIGKILL":
            held.release()

    monkeypatch.setattr(module.os, "kill", sent)
    monkeypatch.setattr(Killing, "_ordered", lambda *_: False)
    kill(wait_secs=10)
    assert signals == ["SIGTERM", "SIGKILL"]
    assert left(state) == []


@pytest.mark.parametrize("garbage", [b"\xff\x00 garbage", b""])
def test_a_damaged_record_of_the_keeper_is_removed_with_the_rest(kill, state, home, garbage):
    file = home.root / "state" / f"{paths.scheduler(ID)[1:]}.node"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(garbage)
    assert kill(wait_secs=10) == [f"{ID} is dead: nobody keeps its processes any more; what it left is removed"]
    assert left(state) == []


def test_a_keeper_whose_record_is_damaged_may_live(kill, state, home, monkeypatch):
    state.create(paths.scheduler(ID), b"garbage")
    lock = hold(home.folder(ID))
    monkeypatch.setattr(Killing, "_ordered", lambda *_: False)
    with pytest.raises(TimedOut, match="a process of it still lives after 10 s"):
        kill(wait_secs=10)
    os.close(lock)
    kill(wait_secs=10)
    assert left(state) == []


def test_somebody_who_removes_it_at_the_same_moment_is_no_error(kill, state, monkeypatch):
    refusals = [Conflict("somebody writes"), Conflict("somebody writes")]
    remove = topologies.remove

    def removing(*args) -> None:
        if refusals:
            raise refusals.pop()
        remove(*args)

    monkeypatch.setattr(topologies, "remove", removing)
    kill(wait_secs=0)
    assert left(state) == []


def test_a_second_kill_points_at_the_logs(home, state, kill):
    kill(wait_secs=0)
    with pytest.raises(NotFound) as refusal:
        home.topology(state, NAME)
    assert refusal.value.message == f"no topology is called {NAME}; {ID} ran here, and is gone from the state"
    assert refusal.value.hint == f"`ardea logs {NAME}` prints its logs; `ardea list` shows those that there are"
    with pytest.raises(NotFound) as refusal:
        home.topology(state, "other")
    assert refusal.value.message == "no topology is called other"


def test_a_dead_topology_is_called_dead_by_all_verbs(home, state):
    with LocalHandle(home, NAME) as found, pytest.raises(Unreachable) as refusal, found.control():
        pass
    assert refusal.value.message == f"{ID} does not run; it is DEAD: nobody keeps its processes any more"
    assert refusal.value.hint == f"`ardea kill {NAME}` removes what is left"

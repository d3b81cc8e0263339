"""The end of a master's process, with which its pod ends, and that it beats until then."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial
from types import SimpleNamespace

import msgspec
import pytest

from ardea import parent_link
from ardea.errors import ExitCode
from ardea.scheduler.kubernetes import master
from ardea.state import Create, open_state, paths, records
from ardea.state.records import ExecutionState
from ardea.supervision.records import Exit, write_exit
from ardea.topology_master.process import MasterProcess


@pytest.fixture(autouse=True)
def signals():
    former = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.fixture
def naps(monkeypatch):
    """What happens while it waits, a nap after the other; then time is over."""
    events = []

    def nap(_):
        events.pop(0)()

    monkeypatch.setattr(master.time, "sleep", nap)
    return events


def ends(folder, code):
    write_exit(folder, Exit("metrics-manager", 1, 7, code, None, "exit", 0.0))


def test_it_waits_until_the_metrics_manager_has_done_its_work(tmp_path, naps):
    naps += [lambda: None, lambda: ends(tmp_path, 75), lambda: ends(tmp_path, 0)]  # 75: it is started again
    master.wait_for_last_scrape(tmp_path)
    assert naps == []


def test_a_deleted_pod_does_not_wait(tmp_path, naps):
    naps += [lambda: None, lambda: os.kill(os.getpid(), signal.SIGTERM)]
    master.wait_for_last_scrape(tmp_path)
    assert naps == []


def test_it_does_not_wait_for_ever(tmp_path, naps, monkeypatch):
    later = time.monotonic() + master.LAST_SCRAPE + master.SPARE + 1
    naps.append(lambda: monkeypatch.setattr(master.time, "monotonic", lambda: later))
    master.wait_for_last_scrape(tmp_path)
    assert naps == []


# --- a cluster that does not answer -------------------------------------------------------------------------------


class Silent:
    """A cluster that says nothing until the process that asks beats again; ``beaten``: whether it did, each time."""

    def __init__(self):
        self.beat = threading.Event()
        self.beaten = []

    def __call__(self):
        self.beat.clear()
        self.beaten.append(self.beat.wait(10.0))
        return False


@pytest.fixture
def silent(monkeypatch):
    asked = Silent()
    monkeypatch.setattr(parent_link, "_say", lambda _: asked.beat.set())
    monkeypatch.setattr(parent_link, "beating", partial(parent_link.beating, every=0.001))
    return asked


@pytest.fixture
def inputs(prepared, tmp_path):
    made = prepared().inputs
    definition = msgspec.structs.replace(made.definition, state=str(tmp_path / "state"), keys={})
    return msgspec.structs.replace(made, definition=definition)


@pytest.mark.parametrize("known", [True, False])
def test_a_standby_beats_while_it_asks_whether_there_is_to_be_a_master(tmp_path, inputs, silent, known):
    """Having got the lease, or while the state manager does not know the topology."""
    definition = inputs.definition
    if known:
        with open_state(definition.state) as state:
            first = records.encode(ExecutionState.first(active=True))
            state.transaction([Create(paths.execution_state(definition.topology), first)])
    process = MasterProcess(definition, "127.0.0.1", "", f"ipc://{tmp_path}/m", silent)
    assert process.run() is ExitCode.TEMPORARY
    assert silent.beaten == [True]


def test_a_master_that_has_ended_beats_while_it_asks_whether_that_is_the_end(tmp_path, inputs, silent, monkeypatch):
    root = SimpleNamespace(wanted=silent, conclude=lambda: None)
    monkeypatch.setattr(master, "RootObject", lambda *_: root)
    monkeypatch.setattr(master.Cluster, "connect", lambda: None)
    assert master.run(inputs.definition, tmp_path, "", "", None) is ExitCode.TEMPORARY
    assert silent.beaten == [True, True]


def test_a_master_that_has_ended_beats_while_its_keeper_asks(tmp_path, inputs, silent, cluster, monkeypatch):
    monkeypatch.setattr(master, "KeeperThread", lambda *_: SimpleNamespace(start=lambda: None, stop=silent))
    process = SimpleNamespace(definition=inputs.definition, address="", run=lambda: ExitCode.OK)
    assert master._act(process, tmp_path, cluster, inputs, SimpleNamespace(name="pod")) is ExitCode.OK
    assert silent.beaten == [True]

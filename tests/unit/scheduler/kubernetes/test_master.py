"""The end of a master's process, with which its pod ends."""

from __future__ import annotations

import os
import signal
import time

import pytest

from ardea.scheduler.kubernetes import master
from ardea.supervision.records import Exit, write_exit


@pytest.fixture(autouse=True)
def sigterm():
    former = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, former)


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

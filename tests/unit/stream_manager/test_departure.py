"""The files through which a pod that is about to be ended asks its stream manager, and is answered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ardea.protocol.wire_pb2 import LEAVE, Order
from ardea.stream_manager.departure import LEAVING, LEFT, LOOK, Departure


class Asks:
    """A registrar that notes whether the master was asked."""

    departs = alone = False

    def depart(self):
        self.departs = True


@pytest.fixture
def registrar():
    return Asks()


@pytest.fixture
def departure(tmp_path, registrar):
    for process in ("stream-manager", "count-0"):
        (tmp_path / process).mkdir()
    return Departure(tmp_path / "stream-manager", 2, registrar)


def left(tmp_path):
    return (tmp_path / "stream-manager" / LEFT).exists()


def test_it_asks_within_a_second_and_leaves_when_it_is_told_to(tmp_path, departure, registrar):
    assert departure.look(10.0) == 10.0 + LOOK
    (tmp_path / "count-0" / LEAVING).touch()
    departure.look(10.5)
    assert not registrar.departs
    departure.look(11.0)
    assert registrar.departs
    departure.ordered(Order(kind=LEAVE, containers=[1, 3]))
    departure.look(11.1)
    assert not left(tmp_path)
    departure.ordered(Order(kind=LEAVE, containers=[2]))
    departure.look(11.2)
    assert left(tmp_path)


def test_it_does_not_wait_where_no_master_answers(tmp_path, departure, registrar):
    registrar.alone = True
    departure.look(10.0)
    assert not left(tmp_path)
    (tmp_path / "count-0" / LEAVING).touch()
    departure.look(11.0)
    assert left(tmp_path)


@pytest.mark.parametrize("fails", ["glob", "touch"])
def test_without_a_free_descriptor_it_looks_again(tmp_path, departure, registrar, monkeypatch, fails):
    """As while somebody opens more connections than the process may have files."""
    (tmp_path / "count-0" / LEAVING).touch()
    registrar.alone = True
    with monkeypatch.context() as patch:
        patch.setattr(Path, fails, lambda *_: os.close(os.open("/none", os.O_RDONLY)))
        assert departure.look(10.0) == 10.0 + LOOK
        assert not left(tmp_path)
    departure.look(10.0 + LOOK)
    assert left(tmp_path)

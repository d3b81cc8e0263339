"""The files through which a pod that is about to be ended asks its stream manager, and is answered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ardea.stream_manager.departure import LEAVING, LEFT, LOOK, Departure


class Asks:
    """A shell that notes whether the master was asked."""

    departs = may_leave = False

    def depart(self):
        self.departs = True

    def stay(self):
        self.departs = self.may_leave = False


@pytest.fixture
def shell():
    return Asks()


@pytest.fixture
def departure(tmp_path, shell):
    for process in ("stream-manager", "count-0"):
        (tmp_path / process).mkdir()
    return Departure(tmp_path / "stream-manager", shell)


def left(tmp_path):
    return (tmp_path / "stream-manager" / LEFT).exists()


def test_it_asks_within_a_second_and_says_at_once_that_it_may_leave(tmp_path, departure, shell):
    assert departure.look(10.0) == 10.0 + LOOK
    (tmp_path / "count-0" / LEAVING).touch()
    departure.look(10.5)
    assert not shell.departs
    departure.look(11.0)
    assert shell.departs
    departure.look(11.1)
    assert not left(tmp_path)
    shell.may_leave = True
    assert departure.look(11.2) == 11.2 + LOOK
    assert left(tmp_path)
    assert departure.look(11.3) == 11.2 + LOOK


def test_a_container_that_is_back_does_not_leave(tmp_path, departure, shell):
    """A probe that took too long has ended one container of the pod, which is emptied when it is deleted later."""
    (tmp_path / "count-0" / LEAVING).touch()
    departure.look(10.0)
    shell.may_leave = True
    departure.look(10.1)
    assert left(tmp_path)
    (tmp_path / "count-0" / LEAVING).unlink()
    departure.look(11.1)
    assert (shell.departs, left(tmp_path)) == (False, False)
    (tmp_path / "count-0" / LEAVING).touch()
    departure.look(12.1)
    assert (shell.departs, left(tmp_path)) == (True, False)


def test_what_a_former_life_has_said_is_taken_back(tmp_path, departure):
    (tmp_path / "stream-manager" / LEFT).touch()
    departure.look(10.0)
    assert not left(tmp_path)


@pytest.mark.parametrize("fails", ["iterdir", "touch"])
def test_without_a_free_descriptor_it_looks_again(tmp_path, departure, shell, monkeypatch, fails):
    """As while somebody opens more connections than the process may have files."""
    (tmp_path / "count-0" / LEAVING).touch()
    shell.may_leave = True
    with monkeypatch.context() as patch:
        patch.setattr(Path, fails, lambda *_: os.close(os.open("/none", os.O_RDONLY)))
        assert departure.look(10.0) == 10.0 + LOOK
        assert not left(tmp_path)
    departure.look(10.0 + LOOK)
    assert left(tmp_path)

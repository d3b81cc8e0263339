"""Which processes a restart waits for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ardea.errors import TimedOut
from ardea.scheduler.restart import LOOK_EVERY, Restart
from ardea.supervision.records import write_status


class Folder:
    """Of a topology, with a client whose waits take time and change what its supervisors say."""

    def __init__(self, path):
        self.path, self.now, self.then = path, 0.0, []
        self.say("", container_0=1, container_1=1, container_2=1)
        self.say("container-0", topology_master=1)
        self.say("container-1", stream_manager=1, count_0=1)
        self.say("container-2", stream_manager=1, count_1=1)

    def say(self, container, **lives):
        (self.path / container).mkdir(exist_ok=True)
        processes = {
            name.replace("_", "-"): {"state": "running", "life": life, "pid": None} for name, life in lives.items()
        }
        write_status(self.path / container, {"processes": processes})

    def wait(self, seconds):
        self.now += seconds
        if self.then:
            self.then.pop(0)()

    def ask(self, verb, *, patience):
        return SimpleNamespace(missing_containers=[], silent_tasks=[], begins="", tasks={})

    def restart(self, *containers):
        Restart(self, self.path, clock=lambda: self.now).restart(containers, 5.0)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_all_of_a_container_are_waited_for(folder):
    folder.then = [
        lambda: folder.say("container-1", stream_manager=2, count_0=1),
        lambda: folder.say("container-1", stream_manager=2, count_0=2),
    ]
    folder.restart(1)
    assert folder.now == pytest.approx(2 * LOOK_EVERY)
    with pytest.raises(TimedOut, match="it waits for stream-manager, count-1 of container 2"):
        folder.restart(2)


def test_what_an_update_removes_meanwhile_is_not(folder):
    """A task of one container, and all of another."""
    folder.then = [
        lambda: folder.say("container-1", stream_manager=2),
        lambda: folder.say("", container_0=1, container_1=1),
    ]
    folder.restart(1, 2)
    assert folder.now == pytest.approx(2 * LOOK_EVERY)


def test_a_container_may_go_before_its_supervisor_is_told(folder, monkeypatch):
    order = Restart._order

    def late(self, number):
        folder.say("", container_0=1, container_1=1)
        order(self, number)

    monkeypatch.setattr(Restart, "_order", late)
    folder.restart(2)

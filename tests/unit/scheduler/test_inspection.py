"""Whoever asks a task gets what it found, or one error, in time."""

from __future__ import annotations

import zlib

import msgspec
import pytest

from ardea.errors import ArdeaError, Conflict, TimedOut, Unreachable
from ardea.plan.resource import Resource
from ardea.protocol.inspection import Answer, Inspection, as_text, pack
from ardea.scheduler.control import Status, TaskStatus
from ardea.scheduler.inspection import WITHIN, inspect

FOUND = Inspection(
    what="stacks", task="count-0", component="count", container=1, host="h", pid=1, life=1, at="now", seconds=0.0
)
NOTHING = Answer("x", "count-0")


class Master:
    """Answers by its script, the last of it again and again; each answer takes a tenth of a second."""

    def __init__(self, *script):
        self.script, self.now, self.asked, self.life = list(script), 0.0, [], 1

    def ask(self, verb, *, patience, **arguments):
        self.asked.append((verb, arguments))
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        self.now += patience if said is None else 0.1
        if said is None:
            raise Unreachable("nobody answers")
        if isinstance(said, ArdeaError):
            raise said
        tasks = {"count-0": TaskStatus("ACTIVE", self.life, 0, Resource(1, 1, 1))}
        return Status("t", "RUNNING", "", 1, 1, [], [], 0, [], None, tasks, {}, [], inspection=said)

    def pause(self, seconds):
        self.now += seconds

    def inspects(self, what="stacks", seconds=0):
        return inspect(self, "count-0", what, seconds, clock=lambda: self.now, pause=self.pause)


def test_it_asks_until_there_is_an_answer():
    master = Master(NOTHING, NOTHING, msgspec.structs.replace(NOTHING, document=as_text(pack(FOUND))))
    assert master.inspects() == FOUND
    assert len({arguments["id"] for _, arguments in master.asked}) == 1
    assert master.asked[0][0] == "inspect"


def test_a_new_master_is_asked_anew():
    master = Master(NOTHING, None, msgspec.structs.replace(NOTHING, document=as_text(pack(FOUND))))
    assert master.inspects("profile", 30) == FOUND


def test_a_task_that_does_not_answer():
    master = Master(NOTHING)
    with pytest.raises(TimedOut, match=r"count-0 has not given a profile within 8 s: its process stands still"):
        master.inspects("profile", 3)
    assert master.now < 3 + WITHIN + 0.2


def test_a_task_that_has_died_meanwhile():
    class Dying(Master):
        def pause(self, seconds):
            super().pause(seconds)
            self.life = 2

    with pytest.raises(TimedOut, match="it was started again meanwhile"):
        Dying(NOTHING).inspects()


def test_no_master():
    master = Master(None)
    with pytest.raises(Unreachable, match="nobody answers"):
        master.inspects()
    assert master.now <= WITHIN + 0.2


def test_a_refusal():
    with pytest.raises(Conflict, match="count-0 refused: another profile"):
        Master(msgspec.structs.replace(NOTHING, refused="another profile of it is under way")).inspects()


@pytest.mark.parametrize(
    "document", ["%", "", as_text(b"no"), as_text(zlib.compress(b"[" * 9000)), as_text(zlib.compress(b"{}"))]
)
def test_a_hostile_answer(document):
    with pytest.raises(ArdeaError, match="cannot be read"):
        Master(msgspec.structs.replace(NOTHING, document=document)).inspects()


def test_a_bomb_is_not_unpacked():
    bomb = zlib.compress(b" " * (17 << 20))
    with pytest.raises(ArdeaError, match="cannot be read"):
        Master(msgspec.structs.replace(NOTHING, document=as_text(bomb))).inspects()

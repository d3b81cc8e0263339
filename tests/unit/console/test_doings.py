"""Verbs in processes of their own: one at a time of a topology, and each of them ends."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest

from ardea.console import doings
from ardea.console.acting import Message, Task
from ardea.console.actions import Activate
from ardea.console.documents import Problem
from ardea.console.doings import Doings, Ended
from ardea.console.problems import Refused
from ardea.scheduler.registry import Place

TASK = Task(place=Place("memory"), topology="T-1", verb="activate", body=b"{}", where="/")
ORDER = Activate(confirm="digest")
DONE, FAILED = (
    Message(done=True),
    Message(problem=Problem(title="Conflict", status=409, what="odd", where="/", hint=None)),
)


class Process:
    """Says these messages, and does not exit until it is killed."""

    def __init__(self, *messages: Message) -> None:
        self._messages, self._killed = messages, asyncio.Event()
        self.returncode: int | None = None
        self.stdin, self.stdout = self, self._said()

    async def _said(self):
        for message in self._messages:
            yield msgspec.json.encode(message) + b"\n"

    def write(self, _: bytes) -> None:
        pass

    def close(self) -> None:
        pass

    def kill(self) -> None:
        self.returncode = -9
        self._killed.set()

    async def wait(self) -> int:
        await self._killed.wait()
        return -9


@pytest.fixture
def started(monkeypatch):
    """What is started says these messages; the processes."""
    processes: list[Process] = []

    def start(*messages: Message) -> list[Process]:
        async def process(*_: object, **__: object) -> Process:
            processes.append(Process(*messages))
            return processes[-1]

        monkeypatch.setattr(asyncio, "create_subprocess_exec", process)
        return processes

    monkeypatch.setattr(doings, "EXITS", 0.0)
    return start


@pytest.mark.parametrize(("end", "state"), [(DONE, "done"), (FAILED, "failed")])
def test_a_process_that_has_said_its_end_and_stays_is_killed_and_the_next_verb_begins(started, end, state):
    processes = started(Message(said="it begins"), end)

    async def twice() -> None:
        all_ = Doings()
        for number in (1, 2):
            with contextlib.suppress(Ended):
                await asyncio.wait_for(all_.perform(TASK, ORDER), 20)
            assert (len(processes), processes[-1].returncode) == (number, -9)
            assert (all_.last("T-1").state, all_.last("T-1").said) == (state, ["it begins"])

    asyncio.run(twice())


def test_of_two_confirmations_at_once_one_is_refused(started):
    processes = started(DONE)

    async def both() -> list[object]:
        all_ = Doings()
        return await asyncio.gather(all_.perform(TASK, ORDER), all_.perform(TASK, ORDER), return_exceptions=True)

    done, refused = asyncio.run(both())
    assert (done.verb, type(refused), refused.status) == ("activate", Refused, 409)
    assert len(processes) == 1


def test_one_too_many_is_refused_and_is_not_under_way(started, monkeypatch):
    started(DONE)
    monkeypatch.setattr(doings, "AT_A_TIME", 0)

    async def one() -> Doings:
        all_ = Doings()
        with pytest.raises(Refused, match="verbs are under way already"):
            await all_.perform(TASK, ORDER)
        return all_

    assert asyncio.run(one()).last("T-1") is None

"""Verbs that are under way, each in a process of its own: how many there are, what they say, how they end."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from ardea.console.acting import Message, Task
from ardea.console.actions import Done, Order, Preview
from ardea.console.documents import Problem
from ardea.console.problems import Refused
from ardea.errors import ArdeaError, TimedOut

AT_A_TIME = 4
SAID = 200
"""Sentences that are kept of one."""
LOOKED = 60.0
"""Seconds that a dry run may take."""
MARGIN = 180.0
"""Seconds beyond its patience after which nobody waits for a verb any more."""
EXITS = 5.0
"""Seconds that a process has to exit after it has said its end; a thread of an author's file may keep it."""
_LINE = 16 << 20


class ActionDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A verb that is under way, or was the last one: ``running``, ``done`` or ``failed``."""

    verb: str
    state: str
    said: list[str]
    problem: Problem | None = None


class Ended(Exception):  # noqa: N818 -- no error of ours
    """A verb has ended with this problem."""

    def __init__(self, found: Problem) -> None:
        super().__init__(found.what)
        self.problem = found


class Doings:
    """Belongs to one event loop.  ``command`` starts what does a verb."""

    def __init__(self, command: tuple[str, ...] = (sys.executable, "-P", "-m", "ardea.console.acting")) -> None:
        self._command = command
        self._under_way = 0
        self._last: dict[str, ActionDocument] = {}
        self._open: set[asyncio.Future[Done]] = set()

    def last(self, topology: str) -> ActionDocument | None:
        """The verb of that topology that is under way, or was the last one of this console."""
        return self._last.get(topology)

    async def preview(self, task: Task) -> Preview:
        """What a verb would do.

        Raises:
            Ended: it cannot be done.
            Refused: too much is under way.
        """
        with self._turn():
            try:
                async with asyncio.timeout(LOOKED):
                    message = await self._run(task, deque(maxlen=1))
            except TimeoutError:
                raise TimedOut(f"`{task.verb}` has not said within {LOOKED:g} s what it would do") from None
        if message.preview is None:
            raise ArdeaError(f"`{task.verb}` has said nothing of what it would do")
        return message.preview

    async def perform(self, task: Task, order: Order) -> Done:
        """Does a verb that was confirmed; the client may be gone meanwhile, and so may this console.

        Raises:
            Ended: it has failed, or would do something else.
            Refused: another verb of the same topology is under way, or too many are.
            TimedOut: it goes on.
        """
        if (last := self._last.get(task.topology)) is not None and last.state == "running":
            raise Refused(
                409, f"`{last.verb}` of {task.topology} is still under way", hint="look at it, and try again then"
            )
        turn, said = contextlib.ExitStack(), deque[str](maxlen=SAID)
        turn.enter_context(self._turn())
        self._become(task, said, "running")  # before anybody else has a turn of the event loop
        doing = asyncio.ensure_future(self._do(task, said))
        self._open.add(doing)
        doing.add_done_callback(self._open.discard)
        doing.add_done_callback(lambda _: turn.close())
        most = float(getattr(order, "wait_secs", None) or 0.0) + MARGIN
        done, _ = await asyncio.wait([doing], timeout=most)
        if not done:
            raise TimedOut(f"`{task.verb}` of {task.topology} has not ended; it goes on")
        return doing.result()

    async def _do(self, task: Task, said: deque[str]) -> Done:
        try:
            await self._run(task, said, lambda: self._become(task, said, "running"))
        except Ended as error:
            self._become(task, said, "failed", error.problem)
            raise
        except BaseException:
            self._become(task, said, "failed")
            raise
        self._become(task, said, "done")
        return Done(verb=task.verb, topology=task.topology, said=list(said))

    def _become(self, task: Task, said: deque[str], state: str, found: Problem | None = None) -> None:
        document = ActionDocument(verb=task.verb, state=state, said=list(said), problem=found)
        self._last.pop(task.topology, None)
        self._last[task.topology] = document
        while len(self._last) > 1000:
            self._last.pop(next(iter(self._last)))

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        if self._under_way >= AT_A_TIME:
            raise Refused(503, f"{AT_A_TIME} verbs are under way already", hint="try again when one has ended")
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    async def _run(self, task: Task, said: deque[str], heard: Callable[[], None] | None = None) -> Message:
        """The last message of a process; each sentence is appended, and ``heard`` called.  None: it only looks."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE,
            start_new_session=True,  # Ctrl-C ends the console, and no verb
        )
        patience = None
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "it is a pipe"
        try:
            process.stdin.write(msgspec.json.encode(task))
            process.stdin.close()
            async for line in process.stdout:
                message = msgspec.json.decode(line, type=Message)
                if message.said is None:
                    patience = EXITS
                    if message.problem is not None:
                        raise Ended(message.problem)
                    return message
                said.append(message.said)
                if heard is not None:
                    heard()
            patience = EXITS
            raise ArdeaError(f"`{task.verb}` has ended without a word", hint="the console's stderr may say why")
        finally:
            if heard is None and process.returncode is None:
                process.kill()  # it has said all, or takes too long
            await _exited(process, patience)


async def _exited(process: asyncio.subprocess.Process, patience: float | None) -> None:
    """It is killed after ``patience`` seconds; None: it is at work."""
    try:
        async with asyncio.timeout(patience):
            await process.wait()
    except TimeoutError:
        if process.returncode is None:
            process.kill()
        await process.wait()

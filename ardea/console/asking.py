"""Asks schedulers and masters on threads, at the pace that the readings say, for all viewers together."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ardea.console.readings import UNDER_WAY, Answer, Key, Look, Pace, Readings, State
from ardea.errors import ArdeaError, NotFound

PATIENCE = 10.0
"""Seconds that a request waits for an answer which is not known yet."""

Question = Callable[[str, Any], Answer]
"""Takes a topology's id, and what the same question has brought before (None: nothing); runs on a thread."""


class Asker:
    """Belongs to one event loop.

    Args:
        questions: by kind.
        paces: of the same kinds.
        clock: steady seconds.
    """

    def __init__(
        self,
        questions: Mapping[str, Question],
        paces: Mapping[str, Pace],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self._questions, self._readings = questions, Readings(paces)
        self._threads = ThreadPoolExecutor(UNDER_WAY, thread_name_prefix="ask")
        self._news, self._wake = asyncio.Event(), asyncio.Event()
        self._open: set[asyncio.Future[None]] = set()

    @property
    def epoch(self) -> float:
        """Unix seconds of the steady clock's zero, as of now: a steady clock stands still while the machine sleeps."""
        return time.time() - self.clock()

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                self._wake.clear()
                for key, before in self._readings.due(self.clock()):
                    asked = asyncio.ensure_future(self._ask(key, before))
                    self._open.add(asked)
                    asked.add_done_callback(self._open.discard)
                await _within(min(1.0, self._readings.wait(self.clock())), self._wake)
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def want(self, key: Key) -> None:
        """Somebody looks at it."""
        if self._readings.want(key, self.clock()):
            self._wake.set()

    def look(self, key: Key) -> Look:
        """What is known now."""
        return self._readings.look(key, self.clock())

    async def news(self, seconds: float) -> None:
        """Returns when anything was answered, or the time has passed."""
        await _within(seconds, self._news)

    async def fresh(self, key: Key) -> Look:
        """What is known, of which nothing is older than the pace; stale if nobody answers.

        Raises:
            ArdeaError: nothing was ever answered, and this is why.
        """
        deadline = self.clock() + PATIENCE
        self.want(key)
        while not self._readings.is_fresh(key, self.clock()) and (left := deadline - self.clock()) > 0:
            await self.news(min(left, 1.0))
            if self.look(key).state is State.STALE:
                break
        look = self.look(key)
        if look.said is None:
            raise look.error or ArdeaError(f"no answer within {PATIENCE:g} s", hint="try again")
        return look

    async def _ask(self, key: Key, before: Any) -> None:
        try:
            answer = await asyncio.get_running_loop().run_in_executor(
                self._threads, self._questions[key.kind], key.topology, before
            )
        except NotFound as error:
            self._readings.failed(key, error, over=True)
        except ArdeaError as error:
            self._readings.failed(key, error)
        except Exception as error:  # of one question: the others go on
            self._readings.failed(key, ArdeaError(f"a fault of Ardea itself: {type(error).__name__}: {error}"))
        else:
            self._readings.answered(key, self.clock(), answer)
        news, self._news = self._news, asyncio.Event()
        news.set()
        self._wake.set()


async def _within(seconds: float, event: asyncio.Event) -> None:
    """``asyncio.wait_for`` of Python 3.11 passes over a cancellation that comes together with the event."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()

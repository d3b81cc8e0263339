"""Lines to one viewer as they come: those of a log, or of a sample."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Generator

import msgspec

from ardea.console.desk import Desk
from ardea.console.documents import Line, Log
from ardea.console.feeds import LineFeed
from ardea.console.problems import problem
from ardea.console.streams import Stream, event
from ardea.errors import ArdeaError

LOOK_EVERY = 0.25

Lines = Generator[Line | None, None, None]
"""None comes now and then, also while there is no line."""


async def followed(desk: Desk, what: str, check: Callable[[], object], lines: Callable[[], Lines]) -> Stream:
    """Events ``lines`` until there are no more, or the viewer leaves; the thread ends within a second of that.

    Args:
        desk: what routes work with.
        what: is followed, for a problem that comes later.
        check: is called on a thread before anything is sent.
        lines: is called on a thread.

    Raises:
        ArdeaError: that of ``check``.
        Refused: there are too many viewers.
    """
    loop, left, feed = asyncio.get_running_loop(), threading.Event(), LineFeed()

    def follow() -> None:
        with contextlib.closing(lines()) as all_:
            for line in all_:
                if left.is_set():
                    return
                if line is not None:
                    feed.put(line)

    async def stream() -> AsyncIterator[bytes]:
        following = loop.run_in_executor(desk.threads, follow)
        try:
            over = False
            while not over:
                over = following.done()
                taken, left_out = feed.take()
                if taken or left_out:
                    yield event("lines", msgspec.json.encode(Log(lines=taken, left_out=left_out)))
                if not over:
                    await asyncio.wait([following], timeout=LOOK_EVERY)
            if (error := following.exception()) is not None:
                told = error if isinstance(error, ArdeaError) else ArdeaError(f"{type(error).__name__}: {error}")
                yield event("problem", msgspec.json.encode(problem(told, what)))
        finally:
            left.set()

    await loop.run_in_executor(desk.threads, check)
    return Stream(desk.readers, stream())

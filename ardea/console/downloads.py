"""A file that is made while it is sent: a thread writes it, and waits for the reader."""

from __future__ import annotations

import asyncio
import contextlib
import io
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, BinaryIO, cast

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

CHUNK, WAITING = 64 << 10, 8
"""Bytes that are sent at a time, and how many such parts wait at most."""
SLOW = 150.0
"""Seconds that the next part may wait: a socket takes more in steps of a megabyte.  Who takes nothing is cut off."""


class _Pipe(io.RawIOBase):
    """From a thread to the event loop that it was made in."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parts: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(WAITING)
        self._left = threading.Event()
        self._held = bytearray()

    def writable(self) -> bool:
        """See :class:`io.RawIOBase`."""
        return True

    def write(self, data: Any) -> int:
        """Raises BrokenPipeError: nobody reads any more, or too slowly."""
        self._held += data
        if len(self._held) >= CHUNK:
            self._put(bytes(self._held))
            self._held.clear()
        return len(data)

    def fill(self, make: Callable[[BinaryIO], object]) -> None:
        """On the thread; returns when all was taken, or nobody reads."""
        end = None
        try:
            make(cast("BinaryIO", self))
            self._put(bytes(self._held))
        except Exception as error:  # the reader tells it
            end = error
        with contextlib.suppress(OSError, RuntimeError):  # the loop may be closed
            self._put(end)

    def _put(self, part: bytes | Exception | None) -> None:
        if self._left.is_set():
            raise BrokenPipeError("nobody reads it any more")
        putting = asyncio.run_coroutine_threadsafe(self._parts.put(part), self._loop)
        try:
            putting.result(SLOW)
        except TimeoutError:
            putting.cancel()
            raise BrokenPipeError("the reader is too slow") from None

    async def parts(self) -> AsyncIterator[bytes]:
        """What was written; raises what ``make`` has raised."""
        while (part := await self._parts.get()) is not None:
            if isinstance(part, Exception):
                raise part
            yield part

    def leave(self) -> None:
        """The next write fails."""
        self._left.set()
        while not self._parts.empty():
            self._parts.get_nowait()


class Download(StreamingResponse):
    """A file of an unknown length.  A connection that takes nothing for 15 s is cut off.

    Args:
        name: what it is called; ASCII.
        media_type: its type.
        make: is called at once on a thread of its own, with what it writes to; OSError there: nobody reads.
    """

    def __init__(self, name: str, media_type: str, make: Callable[[BinaryIO], object]) -> None:
        self._pipe = _Pipe()
        threading.Thread(target=self._pipe.fill, args=(make,), name="download", daemon=True).start()
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        super().__init__(self._pipe.parts(), headers=headers, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI; a viewer who is gone before the first part is one who does not read, too."""
        try:
            await super().__call__(scope, receive, send)
        except ClientDisconnect:
            pass  # the connection is gone
        finally:
            self._pipe.leave()

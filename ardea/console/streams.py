"""Server-sent events to one viewer, who is counted as long as the connection lasts."""

from __future__ import annotations

from collections.abc import AsyncIterator

from sse_starlette import EventSourceResponse
from starlette.types import Receive, Scope, Send

from ardea.console.feeds import Viewers
from ardea.console.problems import Refused

PING = 15
"""Seconds after which a viewer who has heard nothing hears that the console lives."""


class Stream(EventSourceResponse):
    """The events of ``events``, for one of ``viewers``.

    Raises:
        Refused: there are too many.
    """

    def __init__(self, viewers: Viewers, events: AsyncIterator[bytes]) -> None:
        if not viewers.enter():
            raise Refused(503, "too many look at this console", hint="close a page, or wait until somebody else does")
        self._viewers = viewers
        super().__init__(events, ping=PING, sep="\n")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI; a viewer who is gone before the first event is counted no more, too."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._viewers.leave()


def event(kind: str, body: bytes) -> bytes:
    """A document, one line of JSON, as it is sent: a library would look for lines in it, once for each viewer."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), body)

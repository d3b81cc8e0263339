"""The requests of a function, from the call to the answer; thread-safe."""

from __future__ import annotations

import contextlib
import enum
import json
import secrets
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from typing import Any

from ardea.errors import ArdeaError


class DrpcErrorType(enum.StrEnum):
    """What went wrong with a request; Storm's names."""

    INTERNAL_ERROR = "INTERNAL_ERROR"
    """The topology has no answer, or no room for more requests."""

    SERVER_SHUTDOWN = "SERVER_SHUTDOWN"
    """Who answers has ended."""

    SERVER_TIMEOUT = "SERVER_TIMEOUT"
    """There was no answer in time."""

    FAILED_REQUEST = "FAILED_REQUEST"
    """The topology failed on it."""


class DrpcError(ArdeaError):
    """A request without an answer; ``type`` and ``reason`` say why.  It is not repeated: who asks may ask again."""

    def __init__(self, type: DrpcErrorType, message: str) -> None:  # noqa: A002 -- Storm's name
        super().__init__(f"{type}: {message}")
        self.type, self.reason = type, message


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One call.  ``answer`` gets a JSON text, or a :class:`DrpcError`."""

    id: str
    args: str
    answer: Future[str] = field(default_factory=Future)


class Requests:
    """The requests of one function: those that wait for the topology, and those that it works on.

    Args:
        function: its name, for messages.
        most: so many may wait.
    """

    def __init__(self, function: str, most: int) -> None:
        self.function = function
        self._most = most
        self._lock = threading.Lock()
        self._waiting: deque[Request] = deque()
        self._open: dict[str, Request] = {}
        self.closed = False

    def submit(self, args: str) -> Request:
        """A new request.

        Raises:
            DrpcError: too many wait, or the function is closed.
        """
        request = Request(secrets.token_hex(8), args)
        with self._lock:
            if self.closed:
                raise DrpcError(DrpcErrorType.SERVER_SHUTDOWN, f"{self.function} is closed")
            if len(self._waiting) >= self._most:
                message = f"{len(self._waiting)} requests of {self.function} are waiting already"
                raise DrpcError(DrpcErrorType.INTERNAL_ERROR, message)
            self._waiting.append(request)
            self._open[request.id] = request
        return request

    def take(self) -> Request | None:
        """The next request that is still wanted."""
        with self._lock:
            while self._waiting:
                request = self._waiting.popleft()
                if request.id in self._open:
                    return request
        return None

    def answer(self, request_id: str, text: str) -> bool:
        """An answer; False: nobody waits for it any more."""
        return self._settle(request_id, lambda answer: answer.set_result(text))

    def fail(self, request_id: str, type: DrpcErrorType, message: str) -> bool:  # noqa: A002
        """There is none; False: nobody waits for it any more."""
        return self._settle(request_id, lambda answer: answer.set_exception(DrpcError(type, message)))

    def timed_out(self, request: Request, seconds: float) -> DrpcError:
        """Gives the request up, and its place in the queue; the error to raise."""
        with self._lock:
            self._open.pop(request.id, None)
            with contextlib.suppress(ValueError):
                self._waiting.remove(request)
        return DrpcError(DrpcErrorType.SERVER_TIMEOUT, f"{self.function} gave no answer within {seconds:g} s")

    def close(self) -> None:
        """Fails what is open."""
        with self._lock:
            self.closed = True
            left = list(self._open)
        for request_id in left:
            self.fail(request_id, DrpcErrorType.SERVER_SHUTDOWN, f"{self.function} was closed")

    def _settle(self, request_id: str, settle: Callable[[Future[str]], None]) -> bool:
        with self._lock:
            request = self._open.pop(request_id, None)
        if request is None:
            return False
        settle(request.answer)
        return True


class LocalDrpc:
    """Functions of topologies that run in this process, that is in ``ardea.testing``.

    ``close()`` lets a topology end whose other streams have ended.
    """

    def __init__(self, most: int = 128) -> None:
        self._most = most
        self._functions: dict[str, Requests] = {}

    def __deepcopy__(self, memo: Any) -> LocalDrpc:
        return self  # tasks work with copies of what a topology holds, and this is the way into it

    def requests(self, function: str) -> Requests:
        """Those of a function; for the topology."""
        return self._functions.setdefault(function, Requests(function, self._most))

    def submit(self, function: str, args: str) -> Future[str]:
        """Asks; the result is a JSON list of the rows of the answer.

        Raises:
            DrpcError: too many requests wait.
        """
        return self.requests(function).submit(args).answer

    def execute(self, function: str, args: str, timeout: float | None = None) -> list[list[Any]]:
        """Asks and waits, while another thread runs the topology.

        Raises:
            DrpcError: there is no answer.
        """
        requests = self.requests(function)
        request = requests.submit(args)
        try:
            rows: list[list[Any]] = json.loads(request.answer.result(timeout))
        except FutureTimeout:
            raise requests.timed_out(request, timeout or 0.0) from None
        return rows

    def close(self) -> None:
        """No more requests."""
        for requests in self._functions.values():
            requests.close()

"""The HTTP endpoint of a function, in the process of its stream's source.

POST /drpc/FUNCTION            the body is the argument; answers with a JSON list of rows
GET  /drpc/FUNCTION[/ARGS]     the same
POST /answers/ID               an answer from a task of the topology, who knows the token
POST /failures/ID              the same, why there is none
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ardea.drpc.connections import BoundedConnection
from ardea.drpc.requests import DrpcError, DrpcErrorType, Requests
from ardea.errors import StateError

STATUS = {
    DrpcErrorType.INTERNAL_ERROR: 503,
    DrpcErrorType.SERVER_SHUTDOWN: 503,
    DrpcErrorType.SERVER_TIMEOUT: 504,
    DrpcErrorType.FAILED_REQUEST: 500,
}
CALLS = 512
"""That may be open: fewer than connections, for answers need some, too."""
HELD_BYTES = 64 << 20
"""What the arguments of open calls may take in all, if a single one may not take more."""


class _RefusedError(Exception):
    """By its size."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Endpoint:
    """Serves one function on a thread of its own.

    Args:
        requests: where calls wait for the topology.
        host: the interface; 0.0.0.0: all, and the machine's name is published, or the pod's IP (``POD_IP``).
        port: 0: a free one.
        timeout: seconds after which a request fails.
        most_bytes: of an argument, as UTF-8.

    Raises:
        StateError: the port is taken.
    """

    def __init__(self, requests: Requests, host: str, port: int, timeout: float, most_bytes: int) -> None:
        self._requests, self._timeout = requests, timeout
        self._most_bytes, self._most_held = most_bytes, max(HELD_BYTES, most_bytes)
        self._calls = self._held = 0
        self.token = secrets.token_hex(16)
        try:
            self._socket = socket.create_server((host, port))
        except OSError as error:
            raise StateError(
                f"DRPC function {requests.function} cannot listen at {host}:{port}: {error}; the task tries again",
                hint="choose another port in new_drpc_stream(), or 0 for a free one",
            ) from error
        own = os.environ.get("POD_IP") or socket.gethostname()  # pods do not know one another by name
        name = own if host in ("0.0.0.0", "::") else host  # noqa: S104
        self.address = f"{name}:{self._socket.getsockname()[1]}"
        routes = [
            Route("/drpc/{function}", self._call, methods=["GET", "POST"]),
            Route("/drpc/{function}/{args:path}", self._call, methods=["GET"]),
            Route("/answers/{id}", self._answer, methods=["POST"]),
            Route("/failures/{id}", self._failure, methods=["POST"]),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes), http=BoundedConnection, log_level="warning", lifespan="off", access_log=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="drpc", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Fails what is open and ends."""
        self._requests.close()
        self._server.should_exit = True
        self._thread.join(5.0)
        self._socket.close()

    async def _call(self, http: HttpRequest) -> Response:
        if http.method == "HEAD":  # which comes with every GET
            return Response(status_code=405)
        function = http.path_params["function"]
        if function != self._requests.function:
            message = f"there is no function {function} here, only {self._requests.function}"
            return _refusal(404, DrpcErrorType.INTERNAL_ERROR, message)
        if self._calls >= CALLS:
            message = f"{CALLS} calls of {function} are open already"
            return _refusal(503, DrpcErrorType.INTERNAL_ERROR, message)
        self._calls += 1
        body = bytearray()
        try:
            await self._read(http, body)
            args = http.path_params.get("args", "") if http.method == "GET" else body.decode(errors="replace")
            if len(args.encode()) > self._most_bytes:  # a sign in place of each byte that is no text takes three
                raise self._too_large()
            return await self._answered(args)
        except ClientDisconnect:
            return Response(status_code=400)  # for nobody
        except _RefusedError as error:
            return _refusal(error.status, DrpcErrorType.INTERNAL_ERROR, error.message)
        finally:
            self._calls -= 1
            self._held -= len(body)

    async def _read(self, http: HttpRequest, body: bytearray) -> None:
        """The argument, as far as it may go."""
        if int(http.headers.get("content-length", 0)) > self._most_bytes:
            raise self._too_large()
        async for piece in http.stream():
            if len(body) + len(piece) > self._most_bytes:
                raise self._too_large()
            if self._held + len(piece) > self._most_held:
                held = f"the arguments of open calls of {self._requests.function} take {self._held:,} bytes already"
                raise _RefusedError(503, held)
            body += piece
            self._held += len(piece)

    def _too_large(self) -> _RefusedError:
        return _RefusedError(413, f"an argument of {self._requests.function} has {self._most_bytes:,} bytes at most")

    async def _answered(self, args: str) -> Response:
        try:
            request = self._requests.submit(args)
            # Nobody cancels what the topology may be about to settle.
            done, _ = await asyncio.wait([asyncio.wrap_future(request.answer)], timeout=self._timeout)
            if not done:
                raise self._requests.timed_out(request, self._timeout)
            text = done.pop().result()
        except DrpcError as error:
            return _refusal(STATUS[error.type], error.type, error.reason)
        return Response(text, media_type="application/json")

    async def _answer(self, http: HttpRequest) -> Response:
        return await self._replied(http, self._requests.answer)

    async def _failure(self, http: HttpRequest) -> Response:
        def settle(request: str, reason: str) -> bool:
            return self._requests.fail(request, DrpcErrorType.FAILED_REQUEST, reason)

        return await self._replied(http, settle)

    async def _replied(self, http: HttpRequest, settle: Callable[[str, str], bool]) -> Response:
        if not secrets.compare_digest(http.headers.get("x-token", "").encode(), self.token.encode()):
            return _refusal(403, DrpcErrorType.INTERNAL_ERROR, "wrong token")
        wanted = settle(http.path_params["id"], (await http.body()).decode(errors="replace"))
        return Response(status_code=200 if wanted else 410)


def _refusal(status: int, type_: DrpcErrorType, message: str) -> Response:
    return JSONResponse({"type": type_, "error": message}, status_code=status)

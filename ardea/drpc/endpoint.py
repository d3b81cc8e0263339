"""The HTTP endpoint of a function, in the process of its stream's source.

POST /drpc/FUNCTION            the body is the argument; answers with a JSON list of rows
GET  /drpc/FUNCTION[/ARGS]     the same
POST /answers/ID               an answer from a task of the topology, who knows the token
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ardea.drpc.requests import DrpcError, DrpcErrorType, Requests
from ardea.errors import StateError

STATUS = {
    DrpcErrorType.INTERNAL_ERROR: 503,
    DrpcErrorType.SERVER_SHUTDOWN: 503,
    DrpcErrorType.SERVER_TIMEOUT: 504,
    DrpcErrorType.FAILED_REQUEST: 500,
}


class Endpoint:
    """Serves one function on a thread of its own.

    Args:
        requests: where calls wait for the topology.
        host: the interface; 0.0.0.0: all, and the machine's name is published, or the pod's IP (``POD_IP``).
        port: 0: a free one.
        timeout: seconds after which a request fails.

    Raises:
        StateError: the port is taken.
    """

    def __init__(self, requests: Requests, host: str, port: int, timeout: float) -> None:
        self._requests, self._timeout = requests, timeout
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
        ]
        config = uvicorn.Config(Starlette(routes=routes), log_level="warning", lifespan="off", access_log=False)
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
        args = (
            http.path_params.get("args", "") if http.method == "GET" else (await http.body()).decode(errors="replace")
        )
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
        if not secrets.compare_digest(http.headers.get("x-token", "").encode(), self.token.encode()):
            return _refusal(403, DrpcErrorType.INTERNAL_ERROR, "wrong token")
        wanted = self._requests.answer(http.path_params["id"], (await http.body()).decode(errors="replace"))
        return Response(status_code=200 if wanted else 410)


def _refusal(status: int, type_: DrpcErrorType, message: str) -> Response:
    return JSONResponse({"type": type_, "error": message}, status_code=status)

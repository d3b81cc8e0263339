"""The driver's staging folder over HTTP.

PUT /staged/PATH                 a staged file, a report, or how far a partition of a stream is acked, with its
                                 checksum: whole or not at all
GET /staged/PATH                 a staged file, or a range of it
GET /index?after=BYTES&id=ID     what the index has beyond; waits a second for it.  Of another index than ID: all

All of them ask for the driver's token.
"""

from __future__ import annotations

import asyncio
import errno
import re
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvicorn
import xxhash
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from ardea.errors import UserError
from ardea.spark.access import CHECKSUM, INDEX_ID, TOKEN, Access
from ardea.spark.index import INDEX, REPORTS, PresentFile
from ardea.spark.job import PROGRESS

_NAME = re.compile(rf"run-[0-9a-f]+/(part-[0-9-]+\.arrow|{REPORTS}/[0-9]+-[0-9]+\.json)|{PROGRESS}/[0-9]+")
_PATIENCE, _LOOK = 1.0, 0.02
"""Seconds for which a question about the index waits, and between two looks at it."""


class Depot:
    """Serves ``folder`` on a thread of its own; ``access`` is what others need.

    Args:
        folder: the staging folder.
        host: what others call this machine.
        bind: the interface to listen at.

    Raises:
        UserError: there is no such interface here.
    """

    def __init__(self, folder: Path, host: str, bind: str) -> None:
        self._folder = folder
        self._life = secrets.token_hex(4)
        self._index_file = PresentFile(folder / INDEX)
        try:
            self._socket = socket.create_server((bind, 0))
        except OSError as error:
            raise UserError(
                f"the Spark driver cannot listen at {bind}: {error}; the topology ends",
                hint="Correct spark.driver.bindAddress or spark.driver.host.",
            ) from error
        self.access = Access(f"{host}:{self._socket.getsockname()[1]}", secrets.token_hex(16))
        routes = [
            Route("/staged/{path:path}", self._guarded(self._put), methods=["PUT"]),
            Route("/staged/{path:path}", self._guarded(self._get), methods=["GET"]),
            Route("/index", self._guarded(self._index), methods=["GET"]),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes), log_level="warning", lifespan="off", access_log=False, timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="depot", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Ends; what is being answered is broken off after a second."""
        self._server.should_exit = True
        self._thread.join(5.0)
        self._socket.close()

    def _guarded(self, handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            if not secrets.compare_digest(request.headers.get(TOKEN, "").encode(), self.access.token.encode()):
                return PlainTextResponse("wrong token", 403)
            if (name := request.path_params.get("path")) is not None and not _NAME.fullmatch(name):
                return PlainTextResponse(f"nothing is staged at {name}", 404)
            return await handler(request)

        return guarded

    async def _put(self, request: Request) -> Response:
        path = self._folder / request.path_params["path"]
        new = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        digest = xxhash.xxh3_64()
        try:
            with new.open("wb") as file:
                async for piece in request.stream():
                    digest.update(piece)
                    file.write(piece)
            if digest.hexdigest() != request.headers.get(CHECKSUM):
                return PlainTextResponse(f"{path.name} has been damaged on its way", 400)
            new.replace(path)
        except OSError as error:
            status = 507 if error.errno in (errno.ENOSPC, errno.EDQUOT) else 500
            return PlainTextResponse(f"the Spark driver cannot store {path.name}: {error}", status)
        finally:
            new.unlink(missing_ok=True)
        return Response(status_code=201)

    async def _get(self, request: Request) -> Response:
        path = self._folder / request.path_params["path"]
        if not path.is_file():
            return PlainTextResponse(f"{path.name} is gone", 404)
        return FileResponse(path)

    async def _index(self, request: Request) -> Response:
        clock = asyncio.get_running_loop().time
        until = clock() + _PATIENCE
        while True:
            if not self._index_file.look():
                return PlainTextResponse("nothing is staged any more", 404)
            name = f"{self._life}-{self._index_file.number}"
            same = request.query_params.get("id") == name
            text = self._index_file.read(int(request.query_params.get("after", 0)) if same else 0)
            if text or not same or clock() >= until or self._server.should_exit:
                return Response(text, headers={INDEX_ID: name}, media_type="application/jsonl")
            await asyncio.sleep(_LOOK)

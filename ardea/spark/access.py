"""Reaching the driver's folder over HTTP: what Spark tasks and spout tasks on other machines do."""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO

import msgspec

TOKEN = "x-ardea-token"  # noqa: S105 -- the header's name
CHECKSUM = "x-ardea-checksum"
INDEX_ID = "x-ardea-index"
PIECE = 1 << 20
"""Bytes that are read or written at once."""


class RefusedError(OSError):
    """The driver has answered, and not with what was asked for; ``status`` is HTTP's."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text or http.client.responses.get(status, f"HTTP status {status}"))
        self.status = status


class Access(msgspec.Struct, frozen=True):
    """Where the driver listens, ``host:port``, and the token that it asks for."""

    address: str
    token: str

    @contextmanager
    def request(
        self, method: str, path: str, body: BinaryIO | bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer.

        Raises:
            RefusedError: it is none of success.
            OSError: nobody answers, or not to the end.
        """
        connection = http.client.HTTPConnection(self.address, timeout=30.0)
        try:
            connection.request(method, path, body, {TOKEN: self.token, **(headers or {})})
            answer = connection.getresponse()
            if answer.status >= 300:
                raise RefusedError(answer.status, answer.read().decode(errors="replace"))
            yield answer
        except http.client.HTTPException as error:
            raise ConnectionError(f"{self.address} breaks off: {error!r}") from error
        finally:
            connection.close()

    def read(self, path: str, start: int) -> Iterator[bytes]:
        """A staged file from byte ``start`` on, in pieces; raises as :meth:`request`."""
        with self.request("GET", f"/staged/{path}", headers={"Range": f"bytes={start}-"}) as answer:
            while piece := answer.read(PIECE):
                yield piece
            if answer.length:
                raise ConnectionError(f"{self.address} broke off in the middle of {path}")

    def write(self, path: str, body: BinaryIO | bytes, size: int, checksum: str) -> None:
        """Puts a file or a report there, whole or not at all; raises as :meth:`request`."""
        headers = {"Content-Length": str(size), CHECKSUM: checksum}
        with self.request("PUT", f"/staged/{path}", body, headers):
            pass

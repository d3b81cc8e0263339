"""Asks a Prometheus, or what answers like one, for samples of hours and days."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from time import monotonic as clock
from typing import IO, Any
from urllib.parse import urlencode, urlsplit

import msgspec

from ardea.console.past import Line, Span
from ardea.errors import ClusterError, Unreachable, UserError, printable

PATIENCE = 10.0
"""Seconds for an answer, and for each part of it."""
MOST_BYTES = 16 << 20
_SHOWN = 300


class _Data(msgspec.Struct):
    result: list[Line]


class _Answer(msgspec.Struct):
    data: _Data | None = None
    error: str = ""


class _Stays(urllib.request.HTTPRedirectHandler):
    """The token is for the one that was named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None: what it redirects to is not asked."""


class Prometheus:
    """One that was named.

    Args:
        url: its address, with the path before ``/api/v1``.
        token: a file with the token of ``Authorization: Bearer``, read at each question; None: it asks for none.

    Raises:
        UserError: the address is none.
    """

    def __init__(self, url: str, token: Path | None = None) -> None:
        hint = "such as http://prometheus.monitoring:9090"
        try:
            parts = urlsplit(url)
            sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            sound = False
        if not sound or parts.query or parts.fragment:
            raise UserError(f"--prometheus takes an address, not {url[:100]!r}", hint=hint)
        if parts.username is not None or parts.password is not None:
            raise UserError(
                "--prometheus takes an address without a name and a password",
                hint="put a token into a file, and name it in --prometheus-token",
            )
        self._url, self._token = url.rstrip("/"), token
        self._opener = urllib.request.build_opener(_Stays)

    def ask(self, query: str, span: Span) -> list[Line]:
        """The series of a range query.

        Raises:
            ClusterError: it does not answer, or refuses.
        """
        form = {"query": query, "start": span.first, "end": span.last, "step": span.step, "timeout": f"{PATIENCE:g}s"}
        request = urllib.request.Request(  # noqa: S310 -- of one of the two schemes
            f"{self._url}/api/v1/query_range", data=urlencode(form).encode(), headers=self._headers()
        )
        deadline = clock() + PATIENCE
        try:
            try:
                with self._opener.open(request, timeout=PATIENCE) as response:
                    body = _body(response, deadline)
            except urllib.error.HTTPError as error:
                with error:
                    raise self._refused(error.code, _body(error, deadline)) from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = error.reason if isinstance(error, urllib.error.URLError) else error
            raise Unreachable(
                f"Prometheus at {self._url} does not answer: {why}", hint="look at its address"
            ) from error
        if len(body) > MOST_BYTES:
            raise ClusterError(f"Prometheus at {self._url} answers with more than {MOST_BYTES >> 20} MiB")
        answer = _read(body)
        if answer is None or answer.data is None:
            raise ClusterError(f"what answers at {self._url} is no Prometheus", hint="look at --prometheus")
        return answer.data.result

    def _refused(self, status: int, body: bytes) -> ClusterError:
        answer = _read(body)
        said = f": {printable(answer.error, _SHOWN)}" if answer is not None and answer.error else ""
        hint = "look at --prometheus-token" if status in (401, 403) else "look at --prometheus"
        return ClusterError(f"Prometheus at {self._url} refuses with status {status}{said}", hint=hint)

    def _headers(self) -> dict[str, str]:
        if self._token is None:
            return {}
        try:
            return {"Authorization": f"Bearer {self._token.read_text().strip()}"}
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"the file of --prometheus-token cannot be read: {error}") from error


def _body(answer: IO[bytes], deadline: float) -> bytes:
    """At most a byte more than an answer may have; a socket's own patience is for each part of it.

    Raises:
        TimeoutError: it has not come until then.
    """
    body = bytearray()
    while len(body) <= MOST_BYTES and (part := answer.read1(MOST_BYTES + 1 - len(body))):  # type: ignore[attr-defined]
        body += part
        if clock() >= deadline:
            raise TimeoutError(f"not all of its answer has come within {PATIENCE:g} s")
    return bytes(body)


def _read(body: bytes) -> _Answer | None:
    try:
        return msgspec.json.decode(body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None

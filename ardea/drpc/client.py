"""Asks a function of a running topology over HTTP."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

from ardea.drpc.requests import DrpcError, DrpcErrorType
from ardea.errors import NotFound
from ardea.state import open_state

PATIENCE = 10.0
"""Seconds that a topology's task waits for the endpoint to take an answer."""


def published_path(topology: str, function: str) -> str:
    """Where the state manager keeps the address of a function."""
    return f"/drpc/{topology}/{function}"


class DrpcClient:
    """Asks the functions at an address like ``http://127.0.0.1:3774``."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc

    @classmethod
    def find(cls, state: str, topology: str, function: str) -> DrpcClient:
        """The client of a function, by the address that its topology has published in the state manager ``state``.

        Raises:
            NotFound: the topology has not published it.
        """
        with open_state(state) as manager:
            try:
                return cls(json.loads(manager.get(published_path(topology, function)).data))
            except NotFound:
                raise NotFound(
                    f"topology {topology} has published no DRPC function {function} in the state {state}",
                    hint="a topology publishes its functions when it starts; another state directory has another state",
                ) from None

    def execute(self, function: str, args: str, timeout: float | None = None) -> list[list[Any]]:
        """The rows of the answer.

        Args:
            function: its name.
            args: a text, as the topology wants it.
            timeout: seconds after which the client gives up; None: the endpoint's own decides.

        Raises:
            DrpcError: there is none.
        """
        try:
            status, body = post(self._host, f"/drpc/{quote(function, safe='')}", args, timeout)
        except TimeoutError:
            raise DrpcError(DrpcErrorType.SERVER_TIMEOUT, f"no answer within {timeout} s") from None
        except (OSError, HTTPException) as error:
            raise DrpcError(DrpcErrorType.SERVER_SHUTDOWN, f"{self._host} does not answer: {error}") from error
        try:
            document = json.loads(body)
            if status == 200:
                return list(document)
            type_, reason = DrpcErrorType(document["type"]), document["error"]
        except (ValueError, KeyError, TypeError):
            said = body[:200].decode(errors="replace")
            type_, reason = DrpcErrorType.INTERNAL_ERROR, f"{self._host} is no endpoint: status {status}, {said!r}"
        raise DrpcError(type_, reason)


def post(host: str, path: str, body: str, timeout: float | None, token: str = "") -> tuple[int, bytes]:
    """(status, body) of a POST."""
    connection = HTTPConnection(host, timeout=timeout)
    try:
        connection.request("POST", path, body.encode(), {"X-Token": token, "Content-Type": "text/plain"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()

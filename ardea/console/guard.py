"""Checks of each request (names, origins, tokens, sizes), and the headers of every answer."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ardea.console.pages import File, inline
from ardea.console.problems import Refused, problem
from ardea.console.tokens import Hosts, Right, Tokens, is_same_origin
from ardea.errors import ArdeaError

LARGEST_BODY = 1 << 20
HEALTH = "/healthz"
RIGHT = "ardea.right"
"""Where in a scope the right of the one who asks is."""
_POLICY = (
    "default-src 'none'; script-src 'self' {}; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Mapping[str, str] = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Around an application.

    Args:
        app: what is guarded.
        tokens: who may do what.
        hosts: the names by which it may be reached.
        files: of the page, by paths that go without a token.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens, hosts: Hosts, files: Mapping[str, File]) -> None:
        self._app, self._tokens, self._hosts = app, tokens, hosts
        self._public = frozenset(files)
        self._headers = {"Content-Security-Policy": _POLICY.format(inline(files)), **_HEADERS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        out = _guarded(send, self._headers, stored=scope["path"] in self._public)
        try:
            scope[RIGHT] = self._right(scope, Headers(scope=scope))
            await self._app(scope, _bounded(receive), out)
        except Refused as error:
            await refusal(error, scope["path"])(scope, receive, out)

    def _right(self, scope: Scope, headers: Headers) -> Right:
        path, host = scope["path"], headers.get("host")
        if path == HEALTH:
            return Right.NONE  # kubelets and load balancers name the console by its address
        if not self._hosts.allows(host):
            raise Refused(
                421,
                f"the console is not called {host}" if host else "the request names no Host",
                hint="reach it as localhost, or name it with --host when it is started",
            )
        if not is_same_origin(host, headers.get("origin"), headers.get("sec-fetch-site")):
            raise Refused(403, "the request comes from a page of another origin", hint="use the console's own page")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal() and len(length) < 20 and int(length) <= LARGEST_BODY):
            raise Refused(413, f"a request has {LARGEST_BODY:,} bytes at most")
        if path in self._public:
            return Right.NONE
        right = self._tokens.right(headers.get("authorization"))
        if right is Right.NONE:
            raise Refused(
                401,
                "the request has no token that is known",
                hint="open the link that the console has printed; a program sends `Authorization: Bearer TOKEN`",
            )
        return right


def refusal(error: ArdeaError, where: str) -> Response:
    """An error, as it is sent."""
    document = problem(error, where)
    headers = {"WWW-Authenticate": "Bearer"} if document.status == 401 else {}
    return Response(msgspec.json.encode(document), document.status, headers, "application/problem+json")


def _bounded(receive: Receive) -> Receive:
    """A body without a length that is true is bounded all the same."""
    had = 0

    async def received() -> Message:
        nonlocal had
        message = await receive()
        had += len(message.get("body", b""))
        if had > LARGEST_BODY:
            raise Refused(413, f"a request has {LARGEST_BODY:,} bytes at most")
        return message

    return received


def _guarded(send: Send, all_have: Mapping[str, str], *, stored: bool) -> Send:
    """``stored``: whether the one who asks may keep the answer, if it asks each time whether that is the newest."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in all_have.items():
                headers[name] = value
            headers["Cache-Control"] = "no-cache" if stored else "no-store"
        await send(message)

    return sending

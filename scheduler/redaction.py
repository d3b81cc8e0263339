"""Secrets, and how they are kept out of what is handed on (docs/debugging.md, "A bundle").  Pure."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

REDACTED = "[redacted]"
SHORTEST = 6
"""Characters of a value that is looked for everywhere: a shorter one stands in too much that is none."""
_KEYS = tuple(
    f"{of}{between}key" for of in ("api", "access", "private", "account", "shared") for between in ("", "_", "-", ".")
)
_NAMES = (
    *("passw", "passphrase", "passcode", "secret", "credential", "token", "authorization", "cookie", "conninfo"),
    *("signature", "zookeeper_auth", *_KEYS),
)
_WORDS = ("pwd", "dsn", "sig")
"""Part of too many other words: they count between other characters than letters and digits."""
_NAMED = "|".join((*map(re.escape, _NAMES), f"(?<![A-Za-z0-9])(?:{'|'.join(_WORDS)})(?![A-Za-z0-9])"))
_CREDENTIAL = re.compile(_NAMED, re.IGNORECASE)
_LITERALS = [re.compile(re.escape(name.encode())) for name in (*_NAMES, *_WORDS)]
_MARK = REDACTED.encode()
_ASSIGNED = re.compile(
    rb"(?i)((?:" + _NAMED.encode() + rb")[\w.\-]{0,64}(?:\\{0,8}[\"'])?[ \t]{0,3}[=:][ \t]{0,3})"
    rb"(?![\"'\\]{0,3}\[redacted\])"
    rb"(?:\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|(?P<quote>\\{1,8}[\"'])[^\n]{0,4096}?(?P=quote)|[^\s\"',;&]+)"
)
"""``password=x``, ``"password": "x"``, also inside another string."""
_USER = re.compile(rb"://[^/\s@\"']*@")
_SLASHED = re.compile(rb"://[^\s/@:\"']*:(?!\d+[/?#])[^\s@\"']{1,256}@")
"""A password with a slash in it; ``http://host:80/users/@me`` has none."""
_AUTHORIZED = re.compile(rb"(?i)\b(bearer|basic)[ \t]+[\w+/=.~\-]{8,}")
_SHAPES = re.compile(rb"\beyJ[\w-]{8,512}\.[\w-]+\.[\w-]*|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")
"""JSON web tokens, and access keys of AWS."""
_PEM_ENDS = b"PRIVATE KEY-----"
_PEM = re.compile(
    rb"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,32}PRIVATE KEY-----|\Z)", re.DOTALL
)
_PEM_TAIL = re.compile(rb"-----END [A-Z0-9 ]{0,32}PRIVATE KEY-----")


def names_credential(key: str) -> bool:
    """Whether a key of a configuration or an environment is named like one."""
    return _CREDENTIAL.search(key) is not None


def set_in(settings: object, *, secret: bool = False) -> Iterator[str]:
    """The values of keys that are named like a credential, at any depth, and passwords in addresses."""
    if isinstance(settings, Mapping):
        secret = secret or names_credential(str(settings.get("name", "")))  # a variable of a pod
        for key, inner in settings.items():
            yield from set_in(inner, secret=secret or names_credential(str(key)))
    elif isinstance(settings, (list, tuple)):
        for inner in settings:
            yield from set_in(inner, secret=secret)
    elif isinstance(settings, bytes):
        yield from set_in(settings.decode(errors="replace"), secret=secret)
    elif secret and settings is not None and not isinstance(settings, bool):
        yield str(settings)
    elif isinstance(settings, str) and "://" in settings:
        with contextlib.suppress(ValueError):  # what only looks like an address is replaced where it stands
            if password := urlsplit(settings).password:
                yield from (password, unquote(password))


def written_in(source: str) -> Iterator[str]:
    """Strings in Python's code that are given to a name, a key or a parameter named like a credential; nothing runs."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        pairs: list[tuple[object, object]] = []
        match node:
            case ast.Dict():
                pairs = [
                    (key.value, value)
                    for key, value in zip(node.keys, node.values, strict=True)
                    if isinstance(key, ast.Constant)
                ]
            case ast.Assign():
                pairs = [(ast.unparse(target), node.value) for target in node.targets]
            case ast.AnnAssign():
                pairs = [(ast.unparse(node.target), node.value)]
            case ast.keyword():
                pairs = [(node.arg, node.value)]
        for key, value in pairs:
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and names_credential(str(key)):
                yield value.value


class Redaction:
    """Learns values that are secret, and replaces them; ``count``: how many replacements there were."""

    def __init__(self) -> None:
        self.count = 0
        self._known: list[bytes] = []

    @property
    def longest(self) -> int:
        """Bytes of the longest value that is known."""
        return max(map(len, self._known), default=0)

    # --- what is secret ---------------------------------------------------------------------------------------

    def learn(self, value: str) -> None:
        """This value is, wherever it stands, in any of the ways in which it may be written."""
        text = value.strip()
        if len(text) < SHORTEST or text in REDACTED:
            return
        plain = text.encode(errors="backslashreplace")
        shown = repr(text)[1:-1]
        written = (
            *(json.dumps(each, ensure_ascii=ascii_)[1:-1] for each in (text, shown) for ascii_ in (True, False)),
            *(shown, quote(plain, safe=""), quote(plain), quote_plus(plain)),
        )
        known = {plain, *self._known, *(form.encode(errors="backslashreplace") for form in written)}
        self._known = sorted(known, key=len, reverse=True)  # one may stand in another

    def learn_from(self, settings: Mapping[str, Any]) -> None:
        """What :func:`set_in` finds."""
        for value in set_in(settings):
            self.learn(value)

    # --- how it is replaced -----------------------------------------------------------------------------------

    def clean(self, data: bytes) -> bytes:
        """Text of others, as bytes of any kind, without what is secret, or looks so."""
        data = self._without_known(data)
        if _PEM_ENDS in data:
            data = self._without_keys(data)
        for pattern, put in (
            (_USER, b"://" + _MARK + b"@"),
            (_SLASHED, b"://" + _MARK + b"@"),
            (_AUTHORIZED, rb"\1 " + _MARK),
            (_SHAPES, _MARK),
        ):
            data, times = pattern.subn(put, data)
            self.count += times
        return self._without_assigned(data)

    def text(self, text: str) -> str:
        """The same for text."""
        return self.clean(text.encode(errors="backslashreplace")).decode(errors="replace")

    def document(self, value: Any, *, secret: bool = False) -> Any:
        """A document of dicts, lists and plain values; ``secret``: every value in it is."""
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): self.document(inner, secret=secret or names_credential(str(key)))
                for key, inner in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.document(inner, secret=secret) for inner in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        if secret:
            self.count += 1
            return REDACTED
        if isinstance(value, (int, float)):
            return REDACTED if self.text(str(value)) != str(value) else value
        return self.text(value.decode(errors="replace") if isinstance(value, bytes) else str(value))

    def _without_known(self, data: bytes) -> bytes:
        for form in self._known:
            if form in data:
                self.count += data.count(form)
                data = data.replace(form, _MARK)
        return data

    def _without_assigned(self, data: bytes) -> bytes:
        """Names are looked for one by one, which is ten times as fast as all at once."""
        if b"=" not in data and b":" not in data:
            return data
        small = data.lower()
        starts = sorted({found.start() for name in _LITERALS for found in name.finditer(small)})
        parts, end = [], 0
        for start in starts:
            if start >= end and (found := _ASSIGNED.match(data, start)) is not None:
                parts += [data[end:start], found[1], _MARK]
                end, self.count = found.end(), self.count + 1
        return b"".join((*parts, data[end:]))

    def _without_keys(self, data: bytes) -> bytes:
        """Private keys; one whose beginning is not there goes from the first line on."""
        data, times = _PEM.subn(_MARK, data)
        if (tail := _PEM_TAIL.search(data)) is not None:
            data, times = _MARK + data[tail.end() :], times + 1
        self.count += times
        return data

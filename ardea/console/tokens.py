"""Who may do what, and from where.  Pure."""

from __future__ import annotations

import enum
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from ardea.errors import UserError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SHORTEST = 16
"""Characters of a token."""
_PORTS = {"http": 80, "https": 443}


class Right(enum.IntEnum):
    """What a token allows; who may act may look, too."""

    NONE = 0
    VIEW = 1
    ACT = 2


@dataclass(frozen=True, slots=True)
class Tokens:
    """``act`` is None where nobody may act."""

    view: str = field(repr=False)
    act: str | None = field(repr=False)

    @classmethod
    def fresh(cls, *, act: bool) -> Self:
        """New ones; ``act``: whether there is one of the second kind."""
        return cls(secrets.token_urlsafe(24), secrets.token_urlsafe(24) if act else None)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Those of the files ``view`` and ``act``; without the latter nobody may act.

        Raises:
            UserError: there is none to look with, one is too short, or both are the same.
        """
        found: dict[str, str] = {}
        for name in ("view", "act"):
            try:
                found[name] = (folder / name).read_text().strip()
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                raise UserError(f"the token in {folder / name} cannot be read: {error}") from error
            if len(found[name]) < SHORTEST:
                raise UserError(
                    f"the token in {folder / name} has fewer than {SHORTEST} characters",
                    hint="`openssl rand -hex 24` makes one",
                )
        if "view" not in found:
            raise UserError(f"there is no token in {folder / 'view'}", hint="`openssl rand -hex 24` makes one")
        if found.get("act") == found["view"]:
            raise UserError(f"the two tokens in {folder} are the same, so that everybody who may look could act")
        return cls(found["view"], found.get("act"))

    def right(self, authorization: str | None) -> Right:
        """Of who sends this header, ``Bearer TOKEN``; takes as long whatever it is."""
        scheme, _, token = (authorization or "").partition(" ")
        said = token.strip().encode()
        acts = hmac.compare_digest(said, (self.act or "").encode()) and self.act is not None
        views = hmac.compare_digest(said, self.view.encode())
        if scheme.lower() != "bearer" or not said:
            return Right.NONE
        return Right.ACT if acts else Right.VIEW if views else Right.NONE


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names by which the console may be reached: loopback, whose port others may forward, and those configured."""

    names: Collection[str] = ()

    def allows(self, host: str | None) -> bool:
        """Whether a request may name this ``Host``."""
        name = _host(f"http://{host}") if host else None
        return name is not None and (name in LOOPBACK or name in {each.lower() for each in self.names})


def is_same_origin(host: str | None, origin: str | None, site: str | None) -> bool:
    """Whether a request is not of a foreign page.

    Args:
        host: its ``Host``.
        origin: its ``Origin``; None: no browser has sent it, or it only reads.
        site: its ``Sec-Fetch-Site``.
    """
    if site is not None and site not in ("same-origin", "none"):
        return False
    if origin is None:
        return True
    scheme = origin.partition("://")[0].lower()
    return scheme in _PORTS and _place(origin, scheme) == _place(f"{scheme}://{host}", scheme) is not None


def _place(url: str, scheme: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(url)
        return (parts.hostname, parts.port or _PORTS[scheme]) if parts.hostname and not parts.path else None
    except ValueError:
        return None


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # whether it is a number
    except ValueError:
        return None
    return parts.hostname if not (parts.path or parts.query or parts.fragment or parts.username) else None

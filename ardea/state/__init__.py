"""The state manager: where processes find one another, and what survives them.  See docs/state.md."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ardea.errors import UserError
from ardea.state.files import FileState
from ardea.state.manager import (
    POLL_SECONDS,
    Check,
    Create,
    Delete,
    Lease,
    Set,
    StateManager,
    Versioned,
    Watch,
    Write,
)
from ardea.state.term import Fenced, Term

__all__ = [
    "POLL_SECONDS",
    "Check",
    "Create",
    "Delete",
    "Fenced",
    "FileState",
    "Lease",
    "Set",
    "StateManager",
    "Term",
    "Versioned",
    "Watch",
    "Write",
    "open_state",
]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def open_state(url: str) -> StateManager:
    """The state manager at ``url``: a directory (``~`` is the user's home), or ``file:///absolute/path``.

    Nothing is touched before the first call.

    Raises:
        UserError: an unknown scheme, or a file URL without an absolute path.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        if not url:
            raise UserError("the state's address is empty", hint="name a directory: --state DIR")
        return FileState(Path(url).expanduser())
    if scheme[1].lower() != "file":
        raise UserError(
            f"unknown scheme {scheme[1]!r} in the state's address {url}",
            hint="name a directory, as DIR or file:///DIR",
        )
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise UserError(f"{url} names no absolute path", hint="three slashes: file:///var/lib/ardea")
    return FileState(Path(unquote(parts.path)))

"""What a task finds of itself when it is asked (docs/debugging.md): the stacks of its threads, or a profile of them."""

from __future__ import annotations

import base64
import zlib
from typing import Literal

import msgspec

from ardea.protocol.checked import MOST_INSPECTED, MalformedError

What = Literal["stacks", "profile"]
MOST_SECONDS = 60
"""Of one profile."""
_LARGEST = 16 << 20
"""Bytes of a document that has come compressed."""


class Frame(msgspec.Struct, frozen=True):
    """One call: ``name`` is the function's with its class, ``line`` where it is now."""

    name: str
    file: str
    line: int


class Thread(msgspec.Struct, frozen=True):
    """One thread; of ``frames`` the innermost call is the last."""

    name: str
    daemon: bool
    frames: list[Frame]


class Node(msgspec.Struct):
    """One function below those that called it; ``line`` is where it begins.

    ``seconds`` and ``samples`` are those of its own and of all that it called; the root's are those of all threads.
    """

    name: str
    file: str
    line: int
    seconds: float
    samples: int
    children: list[Node]


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """Who was looked at, when, and what was found; ``-o json`` prints it, and keys are only added.

    Attributes:
        what: ``stacks`` or ``profile``.
        task, component, container, host, pid, life: whose threads.
        at: when it began, in UTC.
        seconds: how long it took.
        threads: of stacks.
        interval: seconds between two samples of a profile.
        samples: how often all threads were looked at.
        cut: samples of calls that had no place in the tree, and count for who called them.
        root: of a profile: the task; below it its threads, and below them what they called.
    """

    what: What
    task: str
    component: str
    container: int
    host: str
    pid: int
    life: int
    at: str
    seconds: float
    threads: list[Thread] = []
    interval: float = 0.0
    samples: int = 0
    cut: int = 0
    root: Node | None = None


class Answer(msgspec.Struct, frozen=True):
    """What a master knows of a request: ``document`` is the packed :class:`Inspection` in base64; None: not yet.

    ``refused``: why there will be none; empty: it may come.
    """

    id: str
    task: str
    document: str | None = None
    refused: str = ""


def pack(found: Inspection) -> bytes | None:
    """As it travels; None: it has no room."""
    data = zlib.compress(msgspec.json.encode(found))
    return data if len(data) <= MOST_INSPECTED else None


def as_text(data: bytes) -> str:
    """For an answer in JSON."""
    return base64.b64encode(data).decode()


def unpack(text: str) -> Inspection:
    """What a task has found, from an answer.

    Raises:
        MalformedError: it is something else.
    """
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(base64.b64decode(text, validate=True), _LARGEST)
        if not inflater.eof:
            raise MalformedError
        return msgspec.json.decode(data, type=Inspection)
    except (ValueError, zlib.error, RecursionError) as error:
        raise MalformedError from error

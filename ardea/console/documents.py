"""The documents of the REST interface: those of ``-o json``, and how old they are."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

import msgspec

from ardea.console.readings import Look, State
from ardea.documents.kept import SnapshotsDocument
from ardea.documents.top import TopDocument
from ardea.documents.topologies import DescriptionDocument, TopologiesDocument
from ardea.health import Raised
from ardea.metrics import Samples


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How old a document is.

    Attributes:
        state: ``live``, ``stale`` or ``over``.
        as_of: Unix seconds (whole) of what is not present any more; null: it is the present.
        reason: why nothing newer is known.
    """

    state: State
    as_of: float | None = None
    reason: str | None = None


class Topologies(TopologiesDocument, frozen=True, kw_only=True):
    """``after``: what to ask with for the topologies that follow; null: there are none."""

    after: str | None
    reading: Reading


class Description(DescriptionDocument, frozen=True, kw_only=True):
    """``ardea describe``; of a master that does not answer, ``status`` is what it has said last."""

    reading: Reading


class Top(TopDocument, frozen=True, kw_only=True):
    """``ardea top``."""

    reading: Reading


class Snapshots(SnapshotsDocument, frozen=True, kw_only=True):
    """``ardea snapshots``."""

    reading: Reading


class History(Samples, frozen=True, kw_only=True):
    """What components and tasks did lately, as their master keeps it, or in the last hours, as Prometheus does.

    ``longer``: whether there is a Prometheus that ``hours`` can be asked of.
    """

    longer: bool
    reading: Reading


class Exceptions(msgspec.Struct, frozen=True, kw_only=True):
    """What authors' code has raised, in groups; what was raised last comes first."""

    exceptions: list[Raised]
    reading: Reading


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a log; control characters and those that turn text are written as in Python."""

    process: str
    text: str


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """The last lines of each log, the oldest first.

    Attributes:
        left_out: lines before them that passed, too.
        cut: whether not all was read: it took too long, or a log could not be read to its end.
    """

    lines: list[Line]
    left_out: int
    cut: bool = False


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error: what happened, where, and what to do (RFC 9457)."""

    title: str
    status: int
    what: str
    where: str
    hint: str | None
    type: str = "about:blank"


class Encoded(NamedTuple):
    """A document as it is sent, and its ``ETag``."""

    body: bytes
    tag: str


def reading(look: Look, epoch: float) -> Reading:
    """How old it is; ``epoch``: Unix seconds at the steady second 0."""
    if look.state is State.LIVE:
        return Reading(state=look.state)
    as_of = None if look.good is None else round(epoch + look.good)
    return Reading(state=look.state, as_of=as_of, reason=look.error.message if look.error else None)


def encoded(document: Any) -> Encoded:
    """As JSON."""
    try:
        body = msgspec.json.encode(document)
    except UnicodeEncodeError:  # halves of a pair, in what an author's exception says
        body = json.dumps(msgspec.to_builtins(document)).encode()
    return Encoded(body, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')

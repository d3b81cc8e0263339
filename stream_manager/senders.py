"""Who may send a stream manager what: a peer speaks for itself, and for nobody else.

The messages are sound by themselves (:mod:`ardea.protocol.checked`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ardea.protocol.checked import MARKERS
from ardea.protocol.wire_pb2 import (
    ACKS,
    CREDITS,
    HEARTBEAT,
    HELLO,
    INIT,
    PAUSE,
    REFUSED,
    REPORT,
    RESEND,
    ROWS,
    TASKS,
    Header,
    Hello,
    TaskReport,
)

_INSTANCES = frozenset({HELLO, HEARTBEAT, RESEND, INIT, ROWS, *MARKERS, ACKS, CREDITS, REPORT})
_MANAGERS = frozenset({HELLO, REFUSED, HEARTBEAT, RESEND, ROWS, *MARKERS, ACKS, CREDITS, PAUSE, TASKS})
_BATCHES = frozenset({ROWS, *MARKERS})
_LIVES = 1 << 32
"""An instance is its life alone, without an admission."""


def may_come_from_instance(task: int, header: Header, frames: Sequence[bytes]) -> bool:
    """Of its own tuples, by its own life; ``frames`` are the payload."""
    kind = header.kind
    if kind in _BATCHES:
        return header.source == task and not header.container
    if kind == HELLO:
        return Hello.FromString(frames[0]).task == task and 0 < header.sender < _LIVES
    if kind == REPORT:
        return TaskReport.FromString(frames[0]).task == task
    return kind in _INSTANCES and not (header.demands or header.all_held)


def may_come_from_manager(container: int, header: Header, frames: Sequence[bytes]) -> bool:
    """Batches that its credit pays for, about its own tasks."""
    kind = header.kind
    if kind in _BATCHES:
        names = len(header.target_lives) == len(header.targets)
        return header.container == container and not header.opens and (kind not in MARKERS or names)
    if kind == HELLO:
        return not Hello.FromString(frames[0]).task
    return kind in _MANAGERS

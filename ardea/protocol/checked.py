"""What may arrive: bytes of a peer become a message of which every part can be read, or they are dropped.

Whoever is at the other end may be broken, of another version, or hostile.  A message that passes here is sound by
itself: it has the frames of its kind, columns of whole numbers and of equal length, bodies that parse, and fields in
their range.  Whether it fits the reader's plan, and may come from that peer, the reader decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from ardea.protocol.wire_pb2 import (
    ACKS,
    ADMITTED,
    ANSWER,
    ASK,
    BARRIER,
    CREDITS,
    HEARTBEAT,
    HELLO,
    INIT,
    LEAVING,
    MANY,
    MARKER,
    ONE,
    ORDER,
    PAUSE,
    PLAN,
    REFUSED,
    REGISTER,
    REPORT,
    RESEND,
    ROWS,
    SUMMARY,
    TASKS,
    UNTRACKED,
    VERDICTS,
    WATERMARK,
    Address,
    Admission,
    Answer,
    Ask,
    Codec,
    Header,
    Hello,
    Order,
    OrderKind,
    Plan,
    Refusal,
    Registration,
    TaskReport,
    Tasks,
    TaskState,
)

MOST = 1 << 40
"""More than any count that a report may have: what is summed over many stays a number that can be stored."""
MARKERS = frozenset({MARKER, BARRIER, WATERMARK})
"""What travels among the rows, once over each link."""
MOST_TRACED = 256
"""Rows of a batch whose trace it says."""
MOST_INSPECTED = 1 << 18
"""Bytes of what a task has found of itself."""
DATA = frozenset({INIT, ROWS, *MARKERS})
"""The kinds of the data lane."""
_ID, _OFFSET = 8, 4
_FRAMES = {UNTRACKED: 2, ONE: 4, MANY: 5}
"""Of ``ROWS``, by its ids: the header, values, and columns."""
_ADMISSIONS = 1 << 32
_MOST_GROUPS = 64
_LONGEST_NAME = 255
_HOST = re.compile(r"[A-Za-z0-9\[:][A-Za-z0-9.:%_\[\]-]{0,252}")
_ORDERS, _STATES, _CODECS = (frozenset(kinds.values()) for kinds in (OrderKind, TaskState, Codec))

Check = Callable[[Header, Sequence[bytes]], bool]
"""Whether a message is one of its kind; the frames are all, the header included.  DecodeError means no, too."""


class MalformedError(Exception):
    """Bytes that no process of a topology sends."""


def checked(message: Sequence[bytes]) -> Header:
    """The header of a message that is sound.

    Raises:
        MalformedError: it is not.
    """
    try:
        header = Header.FromString(message[0])
        check = _CHECKS.get(header.kind)
        if check is None or not check(header, message) or not (header.kind in DATA or _flow_is_sound(header)):
            raise MalformedError
    except DecodeError as error:
        raise MalformedError from error
    return header


def _flow_is_sound(header: Header) -> bool:
    """Credits, paces and loads may come with any message but data, where nobody reads them; they are divided by."""
    return (
        not (header.credits and not all(c.window_rows and c.window_bytes for c in header.credits))
        and not (header.paces and not all(p.rows for p in header.paces))
        and not (header.loads and not all(0.0 <= load.load <= 1.0 for load in header.loads))
    )


def _bare(_: Header, message: Sequence[bytes]) -> bool:
    return len(message) == 1


def _columns(count: int) -> Check:
    """So many columns of ids, of which the first two are pairs."""

    def check(_: Header, message: Sequence[bytes]) -> bool:
        return (
            len(message) == count + 1
            and not any(len(column) % _ID for column in message[1:])
            and len(message[1]) == len(message[2])
        )

    return check


def _verdicts(_: Header, message: Sequence[bytes]) -> bool:
    return len(message) == 5 and not any(len(column) % _ID for column in message[1:])


def _rows(header: Header, message: Sequence[bytes]) -> bool:
    """Values, and as many ids as ``ids`` says; what the values are, only who reads them looks."""
    ids = header.ids
    if len(message) != _FRAMES.get(ids) or header.codec not in _CODECS or (header.opens and ids != ONE):
        return False
    if header.traces and not _traces_are_sound(header):
        return False
    if ids == UNTRACKED:
        return True
    roots, edges = len(message[-2]), len(message[-1])
    if ids == ONE:
        return roots == edges == _ID * header.rows
    return roots == edges and not roots % _ID and len(message[2]) == _OFFSET * (header.rows + 1)


def _traces_are_sound(header: Header) -> bool:
    """OpenTelemetry refuses ids of zero."""
    traces = header.traces
    return len(traces) <= MOST_TRACED and all(
        each.row < header.rows and each.span and (each.trace_high or each.trace_low) for each in traces
    )


def _marker(header: Header, message: Sequence[bytes]) -> bool:
    """It passes as batches do, and has no trees that could be lost on the way."""
    return len(message) == 1 and header.ids == UNTRACKED and not header.opens


def _barrier(header: Header, message: Sequence[bytes]) -> bool:
    return _marker(header, message) and header.timeline > 0 and header.snapshot > 0


def _watermark(header: Header, message: Sequence[bytes]) -> bool:
    return _marker(header, message) and not math.isnan(header.watermark)


def _body(cls: Any, holds: Callable[[Any], bool] = lambda _: True) -> Check:
    """One frame, which is a ``cls`` that ``holds`` says yes to."""

    def check(_: Header, message: Sequence[bytes]) -> bool:
        return len(message) == 2 and holds(cls.FromString(message[1]))

    return check


def _reachable(address: Address) -> bool:
    """Whether it can be dialled at all; elsewhere it would be an error of everybody who is told it."""
    return _HOST.fullmatch(address.host) is not None and all(
        0 < port < 1 << 16 for port in (address.data_port, address.control_port)
    )


def _registers(registration: Registration) -> bool:
    return _reachable(registration.address) and registration.address.container == registration.container


def _hello(hello: Hello) -> bool:
    return len(hello.died_on) % _ID == 0 and len(hello.holder) <= _LONGEST_NAME


def _report(report: TaskReport) -> bool:
    if len(report.inspected.document) > MOST_INSPECTED:
        return False
    counts = [report.given_up, report.open, report.waiting, *(group.count for group in report.raised)]
    return report.state in _STATES and max(counts) < MOST and len(report.raised) <= _MOST_GROUPS


_CHECKS: Mapping[int, Check] = {
    HELLO: _body(Hello, _hello),
    REFUSED: _body(Refusal),
    HEARTBEAT: _bare,
    RESEND: _bare,
    INIT: _columns(2),
    ROWS: _rows,
    MARKER: _marker,
    BARRIER: _barrier,
    WATERMARK: _watermark,
    ACKS: _columns(5),
    VERDICTS: _verdicts,
    CREDITS: _bare,
    PAUSE: _bare,
    PLAN: _body(Plan, lambda plan: all(map(_reachable, plan.addresses))),
    TASKS: _body(Tasks),
    REPORT: _body(TaskReport, _report),
    ORDER: _body(Order, lambda order: order.kind in _ORDERS),
    REGISTER: _body(Registration, _registers),
    ADMITTED: _body(Admission, lambda admission: 0 < admission.admission < _ADMISSIONS),
    ASK: _body(Ask),
    ANSWER: _body(Answer),
    SUMMARY: lambda _, message: len(message) == 2,
    LEAVING: _bare,
}

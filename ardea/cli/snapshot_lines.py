"""What ``describe`` and ``top`` say of a topology's snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from ardea.health.words import duration
from ardea.scheduler.packing.amounts import format_bytes
from ardea.snapshots.status import LastRollback, LastSnapshot, SnapshotStatus

SINKS = 4
"""That are shown of those whose rows wait, the oldest first."""


def facts(status: SnapshotStatus) -> Iterator[tuple[str, str]]:
    """Label and value; what has no value is empty."""
    yield "Snapshots", f"{status.mode}, {status.state}, timeline {status.timeline}, every {status.interval:g} s"
    yield "Last snapshot", _last(status.last)
    yield "Under way", _under_way(status)
    yield "Abandoned", f"{status.abandoned} in a row, the last one because of {status.why}" if status.abandoned else ""
    yield "Rollbacks", _rollbacks(status.rollbacks, status.rollback)
    yield "Waits", "" if status.taking is not None else "; ".join(status.waits)
    yield from (("Sink", f"{sink.task}: {sink.words}") for sink in status.sinks[:SINKS])
    yield "Other sinks", f"{len(status.sinks) - SINKS} more" if len(status.sinks) > SINKS else ""


def line(status: SnapshotStatus) -> str:
    """All that fits into one."""
    last = status.last
    parts = ["no snapshot yet" if last is None else f"snapshot {last.number}"]
    if last is not None and last.ago is not None:
        parts[0] += f", {duration(last.ago)} old"
    parts.append(_under_way(status) or ("" if status.state == "RUNNING" else status.state))
    parts.append(f"{status.abandoned} abandoned in a row" if status.abandoned else "")
    parts.append("" if status.taking is not None else "; ".join(status.waits))
    parts += [f"{sink.task}: {sink.words}" for sink in status.sinks[:1]]
    return " · ".join(filter(None, parts))


def _last(last: LastSnapshot | None) -> str:
    if last is None:
        return "none yet"
    if last.ago is None or last.seconds is None or last.bytes is None or last.written is None:
        return f"{last.number}, committed by a former master"
    text = f"{last.number}, {duration(last.ago)} ago, took {last.seconds:.2f} s"
    text += f"; {format_bytes(last.bytes)}, {format_bytes(last.written)} of it new"
    return f"{text}; slowest: {last.slowest}, {last.slowest_seconds:.2f} s ({last.aligned:.2f} s aligning)"


def _under_way(status: SnapshotStatus) -> str:
    if status.taking is None:
        return ""
    waits = f", waits {'; '.join(status.waits)}" if status.waits else ""
    return f"{status.taking.number}, for {status.taking.seconds:.1f} s{waits}"


def _rollbacks(count: int, last: LastRollback | None) -> str:
    if last is None:
        return "0"
    size = "" if last.bytes is None else f", {format_bytes(last.bytes)}"
    restored = "" if last.restored is None else f", all restored after {last.restored:.2f} s{size}"
    return f"{count}; the last one {duration(last.ago)} ago: {last.cause}{restored}"

"""What a bolt does when nothing is left to do before time goes on: it rests, it ends, it tells of time."""

from __future__ import annotations

import math
from typing import cast

from ardea.component import Bolt
from ardea.heron_instance.alarms import Alarms
from ardea.heron_instance.bolt_rows import BoltRows
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.watermarks import BoltTime
from ardea.protocol.wire_pb2 import MARKER, WATERMARK, Header


class Quiet:
    """Of one task; nothing of it happens while windows that are over were not all seen."""

    def __init__(self, parts: Parts, alarms: Alarms, emitted: BoltRows) -> None:
        self._parts, self._alarms, self._emitted = parts, alarms, emitted
        self._bolt = cast("Bolt", parts.env.component)

    def look(self) -> None:
        """After a marker: flush and rest, or end."""
        parts, markers, snapshots = self._parts, self._parts.reporter.markers, self._parts.env.snapshots
        if self._alarms.behind:
            return  # it is called again
        if snapshots is not None and snapshots.timeline.over:
            return  # it was put back to the end, and waits for what a sink has to write outside
        if markers.may_end:
            markers.resting, parts.lifecycle.ending = False, True
            self._alarms.finish()
            with parts.user_code:
                self._bolt.end_of_input()
                self._bolt.flush()  # what came after the last rest
            parts.end(self._emitted, markers.final)
        elif markers.may_rest:
            with parts.user_code:
                self._bolt.flush()
            self._emitted.send()
            parts.reporter.rest()
            parts.reporter.report()

    def early(self, header: Header) -> bool:
        """What comes first for a component that is not initialised: whether it was a watermark or a marker of rest.

        Both are obeyed.  A task of a paused topology has nothing to flush then, and an update waits until all rest: a
        marker must not wait after a watermark.
        """
        reporter = self._parts.reporter
        if self._parts.env.snapshots is not None:
            return False  # what came counts by its timeline, once the state is back
        if header.kind == WATERMARK:
            reporter.heard(header)
            return True
        if header.kind != MARKER or header.end:
            return False
        if reporter.marked(header) and reporter.markers.may_rest:
            reporter.rest()
        reporter.report()
        return True

    def tell(self, now: float) -> float:
        """The task's watermark; returns when there is more to tell."""
        time, markers = self._parts.reporter.time, self._parts.reporter.markers
        if not isinstance(time, BoltTime) or markers.closed or self._alarms.behind:
            return math.inf
        return time.tell(now, self._emitted)

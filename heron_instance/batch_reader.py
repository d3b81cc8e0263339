"""From bytes of a peer to the rows of a batch; nobody's bytes end a task."""

from __future__ import annotations

from collections.abc import Sequence

from ardea.errors import ProtocolError
from ardea.heron_instance.acking import Acking
from ardea.heron_instance.input_batch import InputBatch
from ardea.heron_instance.row_calls import Calls
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.snapshots import RollingBack
from ardea.protocol.ids import column
from ardea.protocol.wire_pb2 import Header


class BatchReader:
    """Of one bolt task."""

    def __init__(self, parts: Parts, calls: Calls, acking: Acking) -> None:
        self._env, self._reporter = parts.env, parts.reporter
        self._calls = calls
        self._acking = acking
        self._sources: dict[int, str] = {}  # task -> component, of those that an update has removed too
        self.replanned()

    def replanned(self) -> None:
        """Other tasks may be read."""
        plan = self._env.plan
        for entry in plan.logical[self._env.task.component].inputs:
            self._sources.update(dict.fromkeys(plan.component_tasks[entry.component], entry.component))

    def read(self, header: Header, frames: Sequence[bytes]) -> InputBatch | None:
        """None: it cannot be read; its trees fail, and the spout decides.

        Where nothing is tracked because all can go back, all of it goes back, by RollingBack.
        """
        source = self._sources.get(header.source)
        streams = () if source is None else self._env.plan.logical[source].streams
        try:
            if source is None or header.stream >= len(streams):
                what = f"this task reads no stream {header.stream} of task {header.source}"
                raise ProtocolError("MALFORMED_ROWS", what)
            return self._calls.read(header, frames, source, streams[header.stream])
        except ProtocolError as error:
            known = header.stream < len(streams)
            where = f"from task {header.source} of {source}, stream {streams[header.stream].name}: " if known else ""
            self._unreadable(header, frames, f"{error.code}: {where}{error.reason}", error.hint)
            return None

    def _unreadable(self, header: Header, frames: Sequence[bytes], why: str, hint: str | None) -> None:
        snapshots = self._env.snapshots
        follows = "the rows fail" if snapshots is None else "the topology goes back to its last snapshot"
        what = self._reporter.error = f"{self._env.task.name}: {why}; {follows}"
        self._env.component.logger.error("%s%s", what, f"; {hint}" if hint else "")
        self._env.instruments.malformed += 1
        self._env.instruments.failed.value += header.rows
        if header.ids:
            self._acking.fail_unread(column(frames[-2]))
        if snapshots is not None:
            snapshots.lost(f"{self._env.task.name} cannot read rows: {why}")
            raise RollingBack

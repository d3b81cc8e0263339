"""The logs of a topology's pods."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from ardea.errors import NotFound, UserError
from ardea.plan.names import MASTER_CONTAINER, container_name
from ardea.scheduler.kubernetes import layout, names
from ardea.scheduler.kubernetes.client import Cluster, LogStream, Manifest
from ardea.scheduler.kubernetes.topologies import Found, pods_of
from ardea.scheduler.schedulers import LogLine, Logs

LOOK_EVERY = 0.2
_NEWEST_LINES = 100_000
"""Of one log, for a bundle."""


@dataclass(frozen=True, slots=True)
class Source:
    """One log: ``label`` is what a person calls it; ``number`` that of the container that the pod is."""

    label: str
    number: int
    pod: str
    container: str


class PodLogs(Logs):
    """One log a container of each pod."""

    def __init__(self, cluster: Cluster, found: Found) -> None:
        self._cluster, self._found = cluster, found
        self._open: list[LogStream] = []

    def names(self, selection: str | None = None) -> list[str]:
        """See :class:`Logs`."""
        return [source.label for source in self.sources(selection)]

    def lines(
        self, selection: str | None = None, *, follow: bool = False, tail: int | None = None, since: float | None = None
    ) -> Iterator[LogLine | None]:
        """See :class:`Logs`."""
        opened = [(source, self._opened(source, follow, tail, since)) for source in self.sources(selection)]
        if not follow:
            for source, lines in opened:
                yield from (_line(source, line) for line in lines)
            self.close()
            return
        queue: SimpleQueue[LogLine | None] = SimpleQueue()

        def pass_on(source: Source, lines: Iterable[bytes]) -> None:
            for line in lines:
                queue.put(_line(source, line))
            queue.put(None)

        for each in opened:
            threading.Thread(target=pass_on, args=each, daemon=True).start()
        open_ends = len(opened)
        yield None
        while open_ends:
            try:
                item = queue.get(timeout=LOOK_EVERY)
            except Empty:
                yield None
                continue
            if item is None:
                open_ends -= 1
            else:
                yield item

    def sources(self, selection: str | None) -> list[Source]:
        """The logs that are asked for."""
        every = list(sources_of(self._found, pods_of(self._cluster, self._found.id)))
        if selection is None:
            return every
        component, colon, index = selection.partition(":")
        wanted = {f"{component}-{index}"} if colon else {component}
        chosen = [source for source in every if wanted & {source.label, source.container}]
        if not colon:
            chosen += [s for s in every if re.fullmatch(re.escape(component) + r"-\d+", s.label)]
        if not chosen:
            known = sorted({source.label.rpartition("/")[2] for source in every})
            raise NotFound(
                f"{self._found.id} has no log of {selection}; it has {', '.join(known) or 'no pods yet'}",
                hint="COMPONENT, COMPONENT:INDEX (from 0), or one of the processes named",
            )
        return chosen

    def newest(self, label: str, most: int) -> bytes:
        """See :class:`Logs`; kubelet cannot give the last bytes, so that at most the last lines pass through here."""
        (source,) = (source for source in self.sources(None) if source.label == label)
        kept: deque[bytes] = deque()
        size = 0
        for line in self._opened(source, follow=False, tail=_NEWEST_LINES, since=None):
            kept.append(line + b"\n")
            size += len(line) + 1
            while size - len(kept[0]) >= most:
                size -= len(kept.popleft())
        return b"".join(kept)[-most:]

    def close(self) -> None:
        """See :class:`Logs`."""
        while self._open:
            self._open.pop().close()

    def _opened(self, source: Source, follow: bool, tail: int | None, since: float | None) -> Iterable[bytes]:
        """A container that has not begun has no log."""
        try:
            stream = self._cluster.logs(source.pod, source.container, follow=follow, tail=tail, since=since)
        except (NotFound, UserError):
            return ()
        self._open.append(stream)
        return stream


def sources_of(found: Found, pods: list[Manifest]) -> Iterator[Source]:
    """All logs of these pods."""
    tasks = {
        (plan.number, called): next(i.name for i in plan.instances if i.task == task)
        for plan in found.inputs.containers
        for task, called in names.instance_names(plan.instances).items()
    }
    for pod in pods:
        number, name = int(pod["metadata"]["labels"][names.CONTAINER]), str(pod["metadata"]["name"])
        for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
            called = container["name"]
            if called != layout.PREPARE:
                place = name if number == MASTER_CONTAINER else container_name(number)
                yield Source(tasks.get((number, called), f"{place}/{called}"), number, name, called)


def _line(source: Source, line: bytes) -> LogLine:
    return LogLine(source.label, line.decode(errors="replace"))

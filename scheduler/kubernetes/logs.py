"""The logs of a topology's pods."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Any

from ardea.errors import NotFound, Unreachable, Unrecognized, UserError
from ardea.plan.names import MASTER_CONTAINER, container_name
from ardea.scheduler.kubernetes import layout, names, objects
from ardea.scheduler.kubernetes.client import Cluster, LogStream, Manifest
from ardea.scheduler.kubernetes.decisions import container_statuses
from ardea.scheduler.kubernetes.topologies import Found, find, pods_of
from ardea.scheduler.kubernetes.waiting import BORNE_FOR
from ardea.scheduler.schedulers import LogLine, Logs

LOOK_EVERY = 0.2
SOURCES_EVERY = 3.0
"""Seconds between two looks for logs that have begun, and for streams that have ended."""
ENDS_WITHIN = 120.0
"""Seconds that pods have to end after their topology and their last line: masters wait for their last scrape."""
WAITING = 256
"""Lines of all followed logs that wait at most for who prints them; then their connections wait."""
_NEWEST_LINES = 100_000
"""Of one log, for a bundle."""
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\S+")


@dataclass(frozen=True, slots=True)
class Source:
    """One log: ``label`` is what a person calls it; ``number`` that of the container that the pod is."""

    label: str
    number: int
    pod: str
    container: str


class _Lines:
    """From the readers of logs, each on a thread of its own, to who follows them."""

    def __init__(self) -> None:
        self._queue: Queue[LogLine] = Queue(WAITING)
        self._left = threading.Event()

    def put(self, line: LogLine) -> bool:
        """Waits while many others do; whether it is still followed."""
        while not self._left.is_set():
            with contextlib.suppress(Full):
                self._queue.put(line, timeout=LOOK_EVERY)
                return True
        return False

    def get(self) -> LogLine | None:
        """None: nothing came in a moment."""
        with contextlib.suppress(Empty):
            return self._queue.get(timeout=LOOK_EVERY)
        return None

    def empty(self) -> bool:
        return self._queue.empty()

    def leave(self) -> None:
        """Nobody takes lines any more: readers end."""
        self._left.set()


class _Reader:
    """Follows one log through streams that end: because they break, or because its container does.

    Attributes:
        reading: whether a stream is open.
        stamp: when the last line was printed, as the cluster says; empty: none has come.
        opened_at: by the follower's clock; None: it has not begun.
        broken: whether the last stream broke, or could not be opened: its rest is still to be read.
        whole: whether nothing comes after what was read: its pod had ended before.
        asked: how a first stream was asked for that could not be opened.
    """

    def __init__(self, label: str, lines: _Lines) -> None:
        """``lines`` takes what comes."""
        self._label, self._lines = label, lines
        self._of_stamp = 0
        self.reading, self.stamp = False, ""
        self.opened_at: float | None = None
        self.broken = self.whole = False
        self.asked: dict[str, Any] = {}

    def resumes(self, now: float) -> dict[str, Any]:
        """How its next stream is asked for."""
        if self.stamp:
            return {"after": self.stamp}
        if self.opened_at is not None:
            return {"since": now - self.opened_at}
        return self.asked

    def follow(self, stream: LogStream) -> None:
        """Reads it, on a thread of its own; lines that a former stream has given are passed over."""
        self.reading = True
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: LogStream) -> None:
        try:
            self._pass_on(stream)
        except Unreachable:
            self.broken, self.whole = True, False
        self.reading = False

    def _pass_on(self, stream: LogStream) -> None:
        given, again = self.stamp, self._of_stamp
        for line in stream:
            stamp, _, text = line.decode(errors="replace").partition(" ")
            if not _STAMP.fullmatch(stamp):
                continue  # the kubelet's own words: it cannot give the log
            if stamp < given or (stamp == given and again > 0):
                again -= stamp == given
                continue
            self._of_stamp = self._of_stamp + 1 if stamp == self.stamp else 1
            self.stamp = stamp
            if not self._lines.put(LogLine(self._label, text)):
                break


class PodLogs(Logs):
    """One log a container of each pod."""

    def __init__(self, cluster: Cluster, found: Found, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._found, self._clock = cluster, found, clock
        self._open: dict[Source, LogStream] = {}

    def names(self, selection: str | None = None) -> list[str]:
        """See :class:`Logs`."""
        return [source.label for source in self._there(selection, pods_of(self._cluster, self._found.id))]

    def lines(
        self, selection: str | None = None, *, follow: bool = False, tail: int | None = None, since: float | None = None
    ) -> Iterator[LogLine | None]:
        """See :class:`Logs`."""
        pods = pods_of(self._cluster, self._found.id)
        sources = self._there(selection, pods)
        if follow:
            lines = _Lines()
            try:
                readers = {source: _Reader(source.label, lines) for source in sources}
                self._attend(readers, pods, tail=tail, since=since)
                yield None
                yield from self._followed(selection, readers, lines)
            finally:
                lines.leave()
            return
        yield from self._present(sources, tail, since)

    def _present(self, sources: list[Source], tail: int | None, since: float | None) -> Iterator[LogLine]:
        """What is there, one log after the other.

        Raises:
            Unreachable: last of all, that some of them are not whole.
        """
        missed: dict[str, Unreachable] = {}
        silent: dict[str, Unreachable] = {}
        opened: list[tuple[str, LogStream | None]] = []
        for source in sources:
            try:
                opened.append((source.label, self._reached(source, silent, tail=tail, since=since)))
            except Unreachable as error:
                missed[source.label] = error
        for label, stream in opened:
            try:
                yield from (LogLine(label, line.decode(errors="replace")) for line in stream or ())
            except Unreachable as error:
                missed[label] = error
        self.close()
        if missed:
            why = next(iter(missed.values())).message
            raise Unreachable(f"{', '.join(missed)}: the log is not whole: {why}", hint="repeat the command")

    def _followed(
        self, selection: str | None, readers: dict[Source, _Reader], lines: _Lines
    ) -> Iterator[LogLine | None]:
        """Until the topology has ended, and with it what it prints; or a while after the last line that came."""
        looked = self._clock()
        silent: float | None = None
        until = None if self._found.topology.running else looked + ENDS_WITHIN
        while until is None or (
            self._clock() < until
            and (any(reader.reading or reader.broken for reader in readers.values()) or not lines.empty())
        ):
            line = lines.get()
            yield line
            if until is not None and line is not None:
                until = self._clock() + ENDS_WITHIN
            if (now := self._clock()) < looked + SOURCES_EVERY:
                continue
            try:
                runs, pods = self._runs(), pods_of(self._cluster, self._found.id)
                with contextlib.suppress(NotFound):  # its pod is on its way out
                    for source in self._chosen(selection, pods):
                        readers.setdefault(source, _Reader(source.label, lines))
                ended = until is not None  # and all has been opened since that had begun
                self._attend({source: each for source, each in readers.items() if each.broken or not ended}, pods)
                silent = None
                if not (runs or ended):
                    until = now + ENDS_WITHIN
            except (Unreachable, Unrecognized):
                silent = now if silent is None else silent
                if now >= silent + BORNE_FOR:
                    raise
            looked = self._clock()  # a node that does not answer may have taken long

    def _attend(self, readers: dict[Source, _Reader], pods: list[Manifest], **first: Any) -> None:
        """Opens what no stream is open of and can be read now; ``first``: how to ask for what has not been opened."""
        silent: dict[str, Unreachable] = {}
        begun = {
            (pod["metadata"]["name"], status["name"]): pod["status"].get("phase") in ("Succeeded", "Failed")
            for pod in pods
            for status in container_statuses(pod)
            if status.get("lastState") or "waiting" not in (status.get("state") or {"waiting": {}})
        }
        for source, reader in readers.items():
            if reader.reading or reader.whole:
                continue
            reader.broken = False
            pod_ended = begun.get((source.pod, source.container))
            if pod_ended is None:
                continue
            now = self._clock()
            how = reader.resumes(now) or first
            try:
                stream = self._reached(source, silent, follow=True, **how)
            except Unreachable:
                reader.broken, reader.asked = True, how
                continue
            reader.whole = pod_ended
            if stream is not None:
                reader.opened_at = now if reader.opened_at is None else reader.opened_at
                reader.follow(stream)

    def _runs(self) -> bool:
        """Whether the topology does; an update may have given it other tasks."""
        try:
            self._found = find(self._cluster, self._found.id)
        except NotFound:
            return False
        return self._found.topology.running and objects.deleted_at(self._found.root) is None

    def sources(self, selection: str | None) -> list[Source]:
        """The logs that are asked for.

        Raises:
            NotFound: there is none.
        """
        return self._chosen(selection, pods_of(self._cluster, self._found.id))

    def _there(self, selection: str | None, pods: list[Manifest]) -> list[Source]:
        """The same; none where a pod is still to come, which may have them."""
        try:
            return self._chosen(selection, pods)
        except NotFound:
            numbers = {int(pod["metadata"]["labels"][names.CONTAINER]) for pod in pods}
            if self._found.topology.running and not numbers.issuperset(
                (MASTER_CONTAINER, *(plan.number for plan in self._found.inputs.containers))
            ):
                return []
            raise

    def _chosen(self, selection: str | None, pods: list[Manifest]) -> list[Source]:
        every = list(sources_of(self._found, pods))
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
        for line in self._opened(source, tail=_NEWEST_LINES) or ():
            kept.append(line + b"\n")
            size += len(line) + 1
            while size - len(kept[0]) >= most:
                size -= len(kept.popleft())
        return b"".join(kept)[-most:]

    def close(self) -> None:
        """See :class:`Logs`."""
        while self._open:
            self._open.popitem()[1].close()

    def _reached(self, source: Source, silent: dict[str, Unreachable], **how: Any) -> LogStream | None:
        """As :meth:`_opened`; of a pod in ``silent`` no other log is asked for: its node may take long to say nothing.

        Raises:
            Unreachable: the log cannot be read now.
        """
        if source.pod not in silent:
            try:
                return self._opened(source, **how)
            except Unreachable as error:
                silent[source.pod] = error
        raise silent[source.pod]

    def _opened(self, source: Source, **how: Any) -> LogStream | None:
        """None: the container has not begun.  ``how``: see :meth:`Cluster.logs`."""
        try:
            stream = self._cluster.logs(source.pod, source.container, **how)
        except (NotFound, UserError):
            return None
        if (former := self._open.pop(source, None)) is not None:
            former.close()
        self._open[source] = stream
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

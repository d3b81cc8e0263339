"""The watermark of a task of a timed component: what follows for it, and what it tells its readers (docs/time.md).

A component is timed that has stamps of its own, or reads one that is timed; all others know nothing of this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from ardea.component import Spout
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.future import Future
from ardea.heron_instance.messages import OutMessage
from ardea.protocol.wire_pb2 import WATERMARK, Header
from ardea.watermarks import FUTURE, NEVER, Minimum, SourceTime, divided, stamps_of, timed
from ardea.windows.bolt import WindowBolt
from ardea.windows.kinds import MICROS

SPOUT_EVERY, BOLT_EVERY = 0.2, 0.05
"""Seconds between two that a task tells."""


class Emitted(Protocol):
    """What a component has emitted."""

    def send(self) -> None:
        """Sends all of it."""


class Telling:
    """What the readers of a task have heard; at most one message each ``every`` seconds."""

    def __init__(self, env: Environment, every: float) -> None:
        self._env, self._every = env, every
        self._next = -math.inf
        self.told = NEVER, False

    def tell(self, now: float, emitted: Emitted, watermark: float, *, idle: bool) -> float:
        """What is new, behind all that was emitted before; returns when it may be told (infinity: nothing is new)."""
        news = watermark, idle
        if news == self.told or self._env.output.held:
            return math.inf
        if now < self._next:
            return self._next
        emitted.send()
        self.told, self._next = news, now + self._every
        self.again()
        return math.inf

    def again(self, targets: Iterable[int] = ()) -> None:
        """The same, to these tasks or to all that read this one."""
        env, (watermark, idle) = self._env, self.told
        if self.told == (NEVER, False) or not env.plan.readers(env.task.component):
            return
        header = Header(kind=WATERMARK, source=env.task.task, targets=targets, epoch=env.plan.epoch)
        header.watermark, header.idle, header.timeline = watermark, idle, env.timeline
        env.output.put(OutMessage(header, [], 0, 0))


class SpoutTime:
    """Of a spout's task."""

    def __init__(self, env: Environment, spout: Spout) -> None:
        assert spout.timestamps is not None
        self.source = SourceTime(spout.timestamps, env.context.now, env.instruments.stamps)
        self.telling = Telling(env, SPOUT_EVERY)
        self._env = env
        self.now = env.context.now
        self._spout = spout
        self._looked = math.inf  # at no turn yet: what was before the first one is no silence
        component = env.plan.logical[env.task.component]
        field = spout.timestamps.field
        self._places = {
            number: stream.fields.index(field)
            for number, stream in enumerate(component.streams)
            if field in stream.fields
        }
        places = divided(component)
        self.future = Future(self.source, places) if places else None
        self._warned = self.future is not None or self.source.counts.ahead > 0
        spout._time = self.source
        self._await_partitions()

    @property
    def watermark(self) -> float:
        """As its readers know it."""
        return self.source.told

    def emits(self, buffers: Iterable[StreamBuffer]) -> None:
        """Rows that are about to leave, of a spout that has no partitions."""
        if self._spout._has_partitions:
            return
        for buffer in buffers:
            place = self._places.get(buffer.number)
            if self.future is not None and buffer.plan.name == FUTURE:
                self.source.counts.ahead += len(buffer)
            elif place is not None and len(buffer):
                parcel = buffer.columns
                rows = buffer.rows.whole[buffer.rows.gone :] if parcel is None else parcel.batch
                self.source.emits("", stamps_of(rows, place))

    def tell(self, now: float, emitted: Emitted, *, waits: bool) -> float:
        """What is new; ``waits``: it is the source that has nothing, and not the topology that wants nothing."""
        source, elapsed, self._looked = self.source, max(0.0, now - self._looked), now
        if waits:
            source.waited(elapsed)
        if source.counts.ahead and not self._warned:
            self._warn()
        due = self.telling.tell(now, emitted, source.watermark, idle=source.idle)
        if source.told < (told := self.telling.told[0]):
            self._spout.watermark = source.told = told
        return due

    def _warn(self) -> None:
        """Once: where all rows are ahead, all that waits for event time waits to the end of the input."""
        self._warned, stamps = True, self.source.timestamps
        self._spout.logger.warning(
            "%s: a stamp in the field %r is more than %g s (max_ahead) ahead of the clock (%s); its row goes on, and "
            "moves no watermark. Others like it are only counted. Check unit=%r of the spout's timestamps, raise "
            "max_ahead, or read its stream %r",
            self._env.task.name,
            stamps.field,
            float(stamps.max_ahead),
            datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="seconds"),
            stamps.unit,
            FUTURE,
        )

    def _await_partitions(self) -> None:
        """Until they are known, there may be rows."""
        if self._spout._has_partitions:
            self.source.unknown()

    def saved(self) -> list[Any]:
        """For a snapshot: what was told, which nobody forgets, and the newest stamps."""
        return [[self.source.told], *map(list, self.source.saved())]

    def restore(self, former: Sequence[list[Any]], own: Sequence[list[Any]]) -> None:
        """What former tasks have :meth:`saved`; ``own``: those whose rows this one's go on from."""
        watermark = _lowest(former)
        newest = ((name, stamp) for items in former for name, stamp in items[1:])
        self.source.restore(watermark, newest, [dict(items[1:]).get("", NEVER) for items in own])
        self._await_partitions()
        self._spout.watermark = None if watermark == NEVER else watermark


class BoltTime:
    """Of a bolt's task."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self.tasks = Minimum(_timed_upstream(env))
        self.telling = Telling(env, BOLT_EVERY)
        self.now = env.context.now
        self._lives: dict[int, int] = {}  # of tasks upstream
        self._windowed = isinstance(env.component, WindowBolt)

    @property
    def watermark(self) -> float:
        """As the component knows it."""
        return self.tasks.watermark

    def replanned(self) -> None:
        """Other tasks may be read."""
        self.tasks.keep(_timed_upstream(self._env))
        self._pass()

    def risen(self, lives: Mapping[int, int]) -> None:
        """Incarnations of tasks upstream: those that are new are waited for, whatever the former ones have said.

        One that has spoken before the news of it came is none of them.
        """
        for task, life in lives.items():
            if life > self._lives.get(task, 0):
                self._lives[task] = life
                self.tasks.again(task)

    def heard(self, header: Header) -> None:
        """A task upstream has told something; all that it had sent before is processed."""
        self.risen({header.source: header.source_life})
        if header.watermark > NEVER or not header.idle:
            self.tasks.say(header.source, header.watermark)
        if header.idle:
            self.tasks.rest(header.source)
        self._pass()

    def ended(self, source: int) -> None:
        """Nothing comes of that task any more."""
        self.tasks.end(source)
        self._pass()

    def tell(self, now: float, emitted: Emitted) -> float:
        """What is new.  Of windows in whole microseconds: what a window emits has its last one, and is not late."""
        watermark = self.tasks.watermark
        if self._windowed and math.isfinite(watermark):
            watermark = math.floor(watermark * MICROS) / MICROS
        return self.telling.tell(now, emitted, watermark, idle=self.tasks.idle)

    def saved(self) -> list[Any]:
        """See :class:`SpoutTime`."""
        return [[self.tasks.watermark]]

    def restore(self, former: Sequence[list[Any]], own: Sequence[list[Any]]) -> None:  # noqa: ARG002
        """Likewise."""
        self.tasks = Minimum(_timed_upstream(self._env), _lowest(former))
        self._pass()

    def _pass(self) -> None:
        if self.tasks.watermark > NEVER:
            self._env.component.watermark = self.tasks.watermark


def time_of(env: Environment) -> SpoutTime | BoltTime | None:
    """Of the task, which keeps it in snapshots; None: its component is not timed."""
    if env.task.component not in timed(env.plan.logical):
        return None
    time = SpoutTime(env, env.component) if isinstance(env.component, Spout) else BoltTime(env)
    env.states.time = time
    return time


def _timed_upstream(env: Environment) -> list[int]:
    plan = env.plan
    components = timed(plan.logical)
    return [task for task in plan.upstream(env.task.component) if plan.tasks[task].component in components]


def _lowest(former: Sequence[list[Any]]) -> float:
    return min((float(items[0][0]) for items in former), default=NEVER)

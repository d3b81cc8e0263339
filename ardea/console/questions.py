"""What schedulers and masters are asked: the list, one topology, its snapshots.  Each runs on a thread."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ardea.console.asking import Question
from ardea.console.past import Chosen, Span, query, samples
from ardea.console.prometheus import Prometheus
from ardea.console.readings import Answer, Key, Pace
from ardea.documents import kept, plan, topologies
from ardea.documents.top import TopDocument, Window, of_window
from ardea.errors import ArdeaError
from ardea.metrics import Samples
from ardea.plan import LogicalPlan
from ardea.scheduler.control import StoryEvent
from ardea.scheduler.schedulers import Description, Handle, Scheduler

LIST = Key("list")
PACES: Mapping[str, Pace] = {
    "list": Pace(looked_at=2.0, otherwise=10.0, first=True),
    "topology": Pace(first=True),
    "snapshots": Pace(looked_at=5.0),
    "history": Pace(looked_at=5.0, most=32),
    "exceptions": Pace(looked_at=5.0),
    "past": Pace(looked_at=15.0, most=32),
}
GAP = 10.0
"""Seconds without a reading after which rates begin anew."""
TASKS_A_SECOND = 70
"""A topology of more tasks is asked less often than once a second, in proportion."""
SLOWEST = 5.0
"""Seconds between two asks, however many tasks it has."""
FIGURES = 5.0
"""Seconds that the figures of a description are shown for while nothing else of it changes: rates are told apart."""


@dataclass(frozen=True, slots=True)
class Described:
    """A description as it is shown.

    Attributes:
        document: without a master that answers, its status is what one has said last.
        lasting: what it was made of, but the figures.
        at: when it was made, in steady seconds.
    """

    document: topologies.DescriptionDocument
    lasting: Description
    at: float


@dataclass(slots=True)
class Told:
    """One topology.

    Attributes:
        plan: None: nobody has said it yet.
        top: None: no master has answered yet.
    """

    described: Described
    plan: LogicalPlan | None = None
    top: TopDocument | None = None
    epoch: int = -1
    window: Window | None = None
    seen: float = 0.0


class Questions:
    """Those of one scheduler, and of a Prometheus, if there is one.  ``clock``: steady seconds."""

    def __init__(
        self,
        scheduler: Scheduler,
        prometheus: Prometheus | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scheduler, self._prometheus, self._clock = scheduler, prometheus, clock
        self.all: Mapping[str, Question] = {
            "list": self._list,
            "topology": self._topology,
            "snapshots": self._snapshots,
            "history": self._history,
            "exceptions": self._exceptions,
            "past": self._past,
        }

    def _list(self, _: str, __: Any) -> Answer:
        return Answer(topologies.of_topologies(self._scheduler.topologies()).topologies)

    def _snapshots(self, topology: str, _: Any) -> Answer:
        document, _mode = kept.look(self._scheduler, topology)
        return Answer(document)

    def _history(self, what: str, before: Samples | None) -> Answer:
        """``what``: an id; behind a blank names, with commas between.  A master is asked for what is new only."""
        topology, _, names = what.partition(" ")
        chosen = names.split(",") if names else []
        with self._scheduler.find(topology) as found:
            last = before.times[-1] if before is not None and before.times else 0.0
            samples = found.history(chosen, last)
            if last and before is not None and (both := before.followed_by(samples)) is not None:
                return Answer(both)
            return Answer(found.history(chosen) if last else samples)

    def _past(self, what: str, _: Any) -> Answer:
        """``what``: an id, hours, and after a second blank names, with commas between."""
        topology, hours, names = what.split(" ")
        assert self._prometheus is not None, "the route has refused it"
        chosen, span = self._chosen(topology, names), Span.of_hours(int(hours), time.time())
        return Answer(samples(self._prometheus.ask(query(topology, chosen, span), span), chosen, span))

    def _chosen(self, topology: str, names: str) -> Chosen:
        """Which of the names are tasks its master says; of one that nobody hears any more, all are components."""
        if not names:
            return Chosen()
        with self._scheduler.find(topology) as found:
            status = found.describe().status
        numbers = {} if status is None else {each.process: each.task for each in status.processes if each.task >= 0}
        tasks = {name: numbers[name] for name in names.split(",") if name in numbers}
        return Chosen([name for name in names.split(",") if name not in tasks], tasks)

    def _exceptions(self, topology: str, _: Any) -> Answer:
        with self._scheduler.find(topology) as found:
            return Answer(found.exceptions())

    def _topology(self, topology: str, before: Told | None) -> Answer:
        with self._scheduler.find(topology) as found:
            description = found.describe()
            told = self._told(found, description, before)
        running = description.topology.running
        silence = "" if description.status is not None else description.silence or "no master has answered yet"
        return Answer(told, silence if running else "", over=not running, slower=_slower(told))

    def _told(self, found: Handle, description: Description, before: Told | None) -> Told:
        """What is known by now; what a master has said stays where none answers."""
        now, status = self._clock(), description.status
        described = _described(description, before, now)
        if status is None:
            if before is None:
                return Told(described, _shape(found))
            return dataclasses.replace(before, described=described)
        if before is None or before.plan is None or before.epoch != status.epoch or before.window is None:
            shape = found.definition().shape.plan()
            window = Window(frozenset(c.name for c in shape if c.kind == "spout"))
        else:
            shape = before.plan
            window = before.window if now - before.seen < GAP else before.window.begun_anew()
        window.observe(now, status.processes, status.term)
        top = of_window(found.id, status, window, round(window.seconds, 3))
        return Told(described, shape, top, status.epoch, window, now)


def _slower(told: Told) -> float:
    """The second answer comes at once, for there are no rates before it."""
    if told.top is None or not told.top.seconds:
        return 1.0
    return min(max(1.0, len(told.top.rows) / TASKS_A_SECOND), SLOWEST)


def _described(description: Description, before: Told | None, now: float) -> Described:
    """The one before, as long as nothing has changed but figures, and those are not old."""
    lasting, kept = _lasting(description), None if before is None else before.described
    if kept is not None and kept.lasting == lasting and now - kept.at < FIGURES:
        return kept
    document = topologies.of_description(description)
    if document.status is None and kept is not None:
        document = msgspec.structs.replace(document, status=kept.document.status)
    return Described(document, lasting, now)


def _lasting(description: Description) -> Description:
    """Without what changes as long as rows flow and time passes."""
    status = description.status
    if status is None:
        return description
    lasting = msgspec.structs.replace(
        status,
        processes=[],
        components={},
        edges=[],
        stalls=[],
        snapshots=None,
        tasks={name: msgspec.structs.replace(each, open=0) for name, each in status.tasks.items()},
        stories={
            name: [StoryEvent(0.0, what, times) for _, what, times in events] for name, events in status.stories.items()
        },
    )
    return dataclasses.replace(description, status=lasting)


def _shape(found: Handle) -> LogicalPlan | None:
    """The plan of a topology whose master does not answer, or that has ended; None: nobody knows it any more."""
    try:
        return found.definition().shape.plan()
    except ArdeaError:
        return None


def of_shape(shape: LogicalPlan) -> plan.PlanDocument:
    """The plan that runs; what each component of Trident does is known to the author's code alone."""
    return plan.of_plan(shape)

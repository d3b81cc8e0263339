"""A topology of which only the snapshots are real: coordinators, timelines and alignments, with random events between.

Rows carry who emitted them first and their number there, so that what a task's state must be follows from the positions
of the spouts alone: each *committed* snapshot is checked against that when its record is written.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field

from ardea.heron_instance.alignment import Aligned, Alignment
from ardea.heron_instance.timeline import Fate, Timeline
from ardea.protocol.wire_pb2 import SnapshotOrder, SnapshotReport
from ardea.state import Fenced
from ardea.state.records import TimelineRecord
from ardea.topology_master.blame import Accused, Blame
from ardea.topology_master.pacing import Pace
from ardea.topology_master.snapshot_figures import SnapshotFigures
from ardea.topology_master.snapshots import Snapshots

WINDOW = 6
"""Rows that the tasks of one container may have on their way to one task."""


@dataclass(frozen=True)
class Graph:
    """``feeds``: the components that read each; ``tasks`` of each; ``container`` of each task."""

    feeds: dict[str, tuple[str, ...]]
    tasks: dict[str, tuple[int, ...]]
    container: dict[int, int]

    @classmethod
    def of(cls, rng: random.Random) -> Graph:
        """Two layers of bolts below a spout, often with a diamond."""
        feeds = {"spout": ("a", "b") if rng.random() < 0.5 else ("a",), "a": ("b",), "b": ("c",), "c": ()}
        if rng.random() < 0.5:
            feeds["a"] = ("b", "c")
        tasks, number = {}, 0
        for component in feeds:
            count = rng.randint(1, 2 if component == "spout" else 3)
            tasks[component] = tuple(range(number + 1, number + 1 + count))
            number += count
        return cls(feeds, tasks, {task: rng.randint(1, 3) for task in range(1, number + 1)})

    def component(self, task: int) -> str:
        return next(name for name, tasks in self.tasks.items() if task in tasks)

    def upstream(self, component: str) -> set[int]:
        return {t for name, readers in self.feeds.items() if component in readers for t in self.tasks[name]}

    def readers(self, component: str) -> list[int]:
        return [t for name in self.feeds[component] for t in self.tasks[name]]

    def targets(self, component: str, row: tuple[int, int]) -> list[int]:
        """One task of each component that reads."""
        return [self.tasks[name][hash(row) % len(self.tasks[name])] for name in self.feeds[component]]

    def fold(self, positions: dict[int, int]) -> dict[int, Counter]:
        """What each bolt's state must be when the spouts have emitted so much."""
        states = {t: Counter() for name in self.feeds if name != "spout" for t in self.tasks[name]}
        todo = deque(("spout", (spout, n)) for spout, position in positions.items() for n in range(position))
        while todo:
            component, row = todo.popleft()
            for target in self.targets(component, row):
                states[target][row] += 1
                todo.append((self.component(target), row))
        return states


@dataclass
class Message:
    """``number`` counts rows from one task to another in a timeline."""

    timeline: int
    row: tuple[int, int] | None = None
    barrier: int = 0
    source: int = 0
    number: int = 0


class CrashError(Exception):
    """Of a master, before or after a write."""


@dataclass
class Store:
    """``files`` by name; ``lists`` by snapshot: the file of each task; ``record`` and the term that may write it."""

    files: dict[str, object] = field(default_factory=dict)
    lists: dict[int, dict[int, str]] = field(default_factory=dict)
    record: TimelineRecord | None = None
    term: int = 0


class Task:
    """One life of one task."""

    def __init__(self, world: World, task: int, life: int) -> None:
        self.world, self.task, self.life = world, task, life
        self.component = world.graph.component(task)
        self.timeline = Timeline(task, life)
        self.report = SnapshotReport()
        self.writing: list[tuple[int, int, object]] = []  # timeline, number, state
        self.frozen_until = self.deaf_until = 0.0
        self._fresh()

    def _fresh(self) -> None:
        self.state = 0 if self.component == "spout" else Counter()
        self.alignment = Alignment(self.world.graph.upstream(self.component))
        self.sent, self.came = Counter(), Counter()

    # --- what it may do

    def step(self) -> bool:
        """One thing; whether there was one."""
        timeline = self.timeline
        if timeline.rolls_back:
            self._roll_back()
        elif not timeline.works:
            return False
        elif self.component == "spout":
            return self._spout_step()
        elif any(not self.world.room(self, t) for t in self.world.graph.readers(self.component)):
            return False
        else:
            return self._bolt_step()
        return True

    def _roll_back(self) -> None:
        self._fresh()
        if number := self.timeline.snapshot:
            kept = self.world.store.files[self.world.store.lists[number][self.task]]
            self.state = kept if self.component == "spout" else Counter(kept)
        self.timeline.restored()
        self.report = SnapshotReport(timeline=self.timeline.number)
        self.world.says(self)

    def _spout_step(self) -> bool:
        timeline = self.timeline
        if number := timeline.begun:
            self._take(number)
            return True
        if not timeline.emits or self.state >= self.world.most:
            return False
        row = (self.task, self.state)
        targets = self.world.graph.targets(self.component, row)
        if any(not self.world.room(self, t) for t in targets):
            return False
        if self.report.moved < timeline.taken:
            self.report.moved = timeline.taken
            self.world.says(self)
        self.state += 1
        for target in targets:
            self.world.send(self, target, Message(timeline.number, row))
        return True

    def _bolt_step(self) -> bool:
        self.alignment.abandoned(max(0, self.timeline.abandoned))
        thing = self.alignment.next()
        if thing is None:
            return False
        if isinstance(thing, Aligned):
            self._take(thing.number)
            return True
        self.came[thing.source] += 1
        if thing.number != self.came[thing.source]:
            self.state["a row is missing, or has overtaken another one"] += 1  # none may ever be committed
        self.state[thing.row] += 1
        for target in self.world.graph.targets(self.component, thing.row):
            self.world.send(self, target, Message(self.timeline.number, thing.row))
        return True

    def _take(self, number: int) -> None:
        state = self.state if self.component == "spout" else Counter(self.state)
        self.timeline.took(number)
        self.writing.append((self.timeline.number, number, state))
        for reader in self.world.graph.readers(self.component):
            self.world.send(self, reader, Message(self.timeline.number, barrier=number))

    def wrote(self, *, fails: bool) -> None:
        """The oldest of its files lies in the store, or cannot."""
        timeline, number, state = self.writing.pop(0)
        if timeline != self.timeline.number:
            return
        if fails:
            self.report.gives_up, self.report.why = number, "the store is full"
        else:
            file = f"{self.task}-{self.life}-{number}"
            assert file not in self.world.store.files, "a file is written twice"
            self.world.store.files[file] = state
            self.report.number = number
            del self.report.files[:]
            self.report.files.add(name=file)
        self.world.says(self)

    def deliver(self, source: int, message: Message) -> bool:
        """Whether it leaves the channel."""
        fate = self.timeline.fate(message.timeline)
        if fate is Fate.TAKEN:
            self.alignment.put(source, message, barrier=message.barrier)
        return fate is not Fate.WAITS

    def raises(self) -> None:
        """The author's code does, in the middle of a row."""
        if self.timeline.works:
            if self.component != "spout":
                self.state["half a row"] += 1
            self.timeline.ended()
            self.report.broken = "ValueError"
            self.world.says(self)


class Master:
    """One term's: a coordinator, and what is on its way to and from it."""

    def __init__(self, world: World, term: int) -> None:
        self.world, self.term, self.manifests = world, term, []
        self.version, self.abandoned, self.met = term << 32, 0, dict[int, int]()
        world.store.term = term
        self.figures = SnapshotFigures(str, lambda _: None)
        blame = Blame(dict.fromkeys(world.graph.container, Accused("task", "component")), 1000)
        self.snapshots = Snapshots(term, world.graph.container, Pace(4.0, 30.0), self, world.store.record, blame)
        self.snapshots.surveyed(None, 0.0)
        for task in world.tasks.values():
            world.says(task)

    def meets(self, container: int, life: int) -> None:
        """It hears that a manager has risen before it hears what that manager's tasks report."""
        if self.met.get(container) != life:
            self.snapshots.manager_met(container, self.world.now)
            self.snapshots.manager_rose(container, life, self.world.now)
            self.met[container] = life

    def record(self, record: TimelineRecord) -> None:
        world = self.world
        if world.store.term != self.term:
            raise Fenced("another master acts")
        former = world.store.record
        crash = world.rng.random() if world.crashes else 1.0
        if crash < 0.05:
            raise CrashError
        world.store.record = record
        if former is not None and record.committed != former.committed:
            assert record.committed > self.abandoned, "it was said that this one would never count"
            world.committed(record)
        if crash < 0.1:
            raise CrashError

    def committed(self, *_: str) -> None:
        """The model keeps all files, never ends, and tells nobody."""

    given_up = undeclared = fail = tell = committed

    def manifest(self, number: int, files) -> None:
        self.manifests.append((number, files))

    def wrote(self, *, fails: bool) -> None:
        """The oldest list of files lies in the store, or cannot."""
        number, files = self.manifests.pop(0)
        if not fails:
            self.world.store.lists[number] = {task: each.files[0].name for task, each in files}
        self.snapshots.stored(number, self.world.now, "the store is full" if fails else "")

    def order(self, order: SnapshotOrder) -> None:
        self.version += 1
        self.abandoned = order.abandoned
        copy = SnapshotOrder()
        copy.CopyFrom(order)
        for task in self.world.tasks:
            self.world.orders[task].append((copy, self.version))
        for zombie in self.world.zombies:
            if self.world.rng.random() < 0.3:
                zombie.timeline.ordered(copy, self.version)


class World:
    """All of it, under one seed."""

    def __init__(self, seed: int, most: int = 200) -> None:
        self.rng = random.Random(seed)
        self.now, self.most, self.commits, self.crashes = 0.0, most, 0, True
        self.graph = Graph.of(self.rng)
        self.store = Store()
        self.channels = {
            (task, reader): deque()
            for task in self.graph.container
            for reader in self.graph.readers(self.graph.component(task))
        }
        self.slow: dict[tuple[int, int], float] = {}
        self.orders = {task: deque() for task in self.graph.container}
        self.reports: dict[int, deque] = {task: deque() for task in self.graph.container}
        self.managers = dict.fromkeys(set(self.graph.container.values()), 1)
        self.zombies: list[Task] = []
        self.tasks = {task: Task(self, task, 1) for task in self.graph.container}
        self.master = Master(self, 1)
        self.former: Master | None = None  # one that does not know yet that its term is over
        self.master_back = 0.0

    # --- between tasks

    def says(self, task: Task) -> None:
        copy = SnapshotReport()
        copy.CopyFrom(task.report)
        self.reports[task.task].append((task.life, copy))

    def room(self, task: Task, target: int) -> bool:
        place = self.graph.container[task.task]
        on_its_way = sum(
            sum(m.row is not None for m in queue)
            for (source, to), queue in self.channels.items()
            if to == target and self.graph.container[source] == place
        )
        return on_its_way < WINDOW

    def send(self, task: Task, target: int, message: Message) -> None:
        message.source = task.task
        if message.row is not None:
            task.sent[target] += 1
            message.number = task.sent[target]
        self.channels[task.task, target].append(message)

    # --- the oracle

    def committed(self, record: TimelineRecord) -> None:
        """A snapshot counts: its state is that of exactly the rows that its positions name."""
        self.commits += 1
        kept = {task: self.store.files[key] for task, key in self.store.lists[record.committed].items()}
        assert kept.keys() == self.graph.container.keys()
        positions = {task: kept.pop(task) for task in self.graph.tasks["spout"]}
        expected = self.graph.fold(positions)
        for task, state in kept.items():
            assert state == expected[task], (record.committed >> 32, record.committed & 0xFFFF, task, positions)

    @property
    def over(self) -> bool:
        """Whether all rows are in a snapshot that counts."""
        record = self.store.record
        kept = self.store.lists.get(record.committed, {}) if record else {}
        return bool(kept) and all(self.store.files[kept[task]] == self.most for task in self.graph.tasks["spout"])

    # --- events

    def run(self, events: int, faults: float) -> None:
        for _ in range(events):
            self.now += 0.05
            if self.rng.random() < faults:
                self._fault()
            else:
                self._event()

    def heal(self) -> None:
        """Nothing is slow or frozen any more."""
        self.crashes = False
        self.slow.clear()
        for task in self.tasks.values():
            task.frozen_until = task.deaf_until = 0.0

    def _event(self) -> None:
        rng, roll = self.rng, self.rng.random()
        task = self.tasks[rng.choice(tuple(self.tasks))]
        if roll < 0.2:
            self._master()
        elif task.frozen_until > self.now:
            return
        elif roll < 0.55:
            for _ in range(rng.choice((1, 2, 8, 30))):
                self._deliver(task)
        elif roll < 0.9 or not task.writing:
            if self.orders[task.task] and self.now >= task.deaf_until and rng.random() < 0.5:
                self._hear(task)
            for _ in range(rng.choice((1, 2, 8, 30))):
                if not task.step():
                    break
        else:
            task.wrote(fails=False)

    def _hear(self, task: Task) -> None:
        queue = self.orders[task.task]
        if self.rng.random() < 0.2:
            order = max(queue, key=lambda each: each[1])  # the newest replaces all before it
            queue.clear()
        else:
            order = queue.popleft()
        for _ in range(self.rng.randint(1, 2)):
            task.timeline.ordered(*order)

    def _deliver(self, task: Task) -> None:
        """From one upstream task to it."""
        ways = [key for key, queue in self.channels.items() if key[1] == task.task and queue]
        if not ways:
            return
        key = self.rng.choice(ways)
        if self.now >= self.slow.get(key, 0.0) and task.deliver(key[0], self.channels[key][0]):
            self.channels[key].popleft()

    def _master(self) -> None:
        rng = self.rng
        if self.now < self.master_back:
            return
        master = self.master
        if self.former is not None and rng.random() < 0.3:
            master = self.former
        try:
            for container, life in self.managers.items():
                master.meets(container, life)
            if master.manifests and rng.random() < 0.3:
                master.wrote(fails=False)
            for task in self.reports:
                if self.reports[task] and master is self.master and rng.random() < 0.5:
                    life, report = self.reports[task].popleft()
                    master.snapshots.reported(task, life, report, self.now)
            master.snapshots.tick(self.now)
        except Fenced:
            self.former = None
        except CrashError:
            self._kill_master(self.tasks[1])

    def _fault(self) -> None:
        task = self.tasks[self.rng.choice(tuple(self.tasks))]
        self.rng.choice(
            (
                self._kill,
                self._replace,
                self._freeze,
                self._deafen,
                self._slow,
                self._kill_manager,
                self._kill_master,
                self._depose_master,
                Task.raises,
                self._store_fails,
                self._jump,
            )
        )(task)

    def _kill(self, task: Task) -> None:
        risen = self.tasks[task.task] = Task(self, task.task, task.life + 1)
        self.orders[task.task].clear()
        if self.store.record is not None and self.rng.random() < 0.8 and self.now >= self.master_back:
            self.master.snapshots._order()  # its manager knows the newest
        self.says(risen)
        for (source, target), queue in self.channels.items():
            if task.task in (source, target):
                for _ in range(self.rng.randint(0, len(queue))):
                    queue.pop()

    def _replace(self, task: Task) -> None:
        """It runs on elsewhere, and is nobody's any more."""
        self.zombies.append(task)
        self._kill(task)

    def _freeze(self, task: Task) -> None:
        task.frozen_until = self.now + self.rng.uniform(0.5, 20)

    def _deafen(self, task: Task) -> None:
        """Orders reach it late, rows do not."""
        task.deaf_until = self.now + self.rng.uniform(0.5, 40)

    def _slow(self, task: Task) -> None:
        self.slow[self.rng.choice(tuple(self.channels))] = self.now + self.rng.uniform(0.5, 10)

    def _kill_manager(self, task: Task) -> None:
        container = self.graph.container[task.task]
        self.managers[container] += 1
        for (source, target), queue in self.channels.items():
            if container in (self.graph.container[source], self.graph.container[target]) and self.rng.random() < 0.7:
                for _ in range(self.rng.randint(0, len(queue))):
                    queue.pop()
        for each in self.tasks.values():
            if self.graph.container[each.task] == container:
                self.says(each)

    def _kill_master(self, task: Task) -> None:
        self.former = None
        self.master_back = self.now + self.rng.uniform(0.0, 5.0)
        self.master = Master(self, self.master.term + 1)

    def _depose_master(self, task: Task) -> None:
        former = self.master
        self._kill_master(task)
        self.former = former

    def _store_fails(self, task: Task) -> None:
        if task.writing:
            task.wrote(fails=True)
        elif self.master.manifests and self.now >= self.master_back:
            self.master.wrote(fails=True)

    def _jump(self, task: Task) -> None:
        self.now += self.rng.uniform(0.0, 15.0)

    def zombies_act(self) -> None:
        """Tasks that were replaced go on as long as they can."""
        for zombie in self.zombies:
            zombie.step()
            if zombie.writing and self.rng.random() < 0.3:
                zombie.wrote(fails=False)

"""The stream manager: forwards batches by their header, judges trees, keeps everybody's flow.

Pure: messages come in through :meth:`StreamManager.received`, time through :meth:`StreamManager.tick`, and leave
through the links' port.  It never looks into values.  docs/protocol.md has the table of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ardea.plan.logical import LogicalPlan
from ardea.plan.packing import PackingPlan
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.flow import Channel, Window
from ardea.protocol.ids import U64, admission_of, by_task, column, distinct, incarnation
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link, Port
from ardea.protocol.wire_pb2 import (
    ACKS,
    CREDITS,
    HEARTBEAT,
    HELLO,
    INIT,
    MARKER,
    ORDER,
    PAUSE,
    REPORT,
    ROWS,
    TASKS,
    Address,
    Credit,
    Demand,
    Header,
    Hello,
    Order,
    Pace,
    Plan,
    TaskReport,
    Tasks,
)
from stream_manager.acks import ControlOutbox
from stream_manager.consumers import Consumer
from stream_manager.greeting import Greeting
from stream_manager.loads import Loads
from stream_manager.numbers import FlowSettings, ManagerStatistics
from stream_manager.pauses import Pauses
from stream_manager.sources import Source
from stream_manager.verdicts import FAILED, LOST, Verdicts

HEARTBEAT_EVERY = 1.0
LINGER = 5.0
"""Seconds for which the order to exit may wait for instances that are just being started again."""
STORED = 2**64 - 1
"""The term of an order that follows from the stored state: no master's is higher."""
Batch = tuple[Header, Sequence[bytes]]


class StreamManager:
    """One container's stream manager, from its first plan on."""

    def __init__(
        self,
        container: int,
        me: int,
        logical: LogicalPlan,
        settings: FlowSettings,
        port: Port,
        on_report: Callable[[TaskReport], None],
    ) -> None:
        """``me`` is the incarnation; ``on_report`` carries a task's report towards the master."""
        self.container = container
        self.me = me
        self.settings = settings
        self.logical = logical
        self.statistics = ManagerStatistics()
        self.plan: PhysicalPlan | None = None
        self.addresses: dict[int, Address] = {}
        self.lives: dict[int, int] = {}
        self.instances: dict[int, Link] = {}
        self.peers: dict[int, Link] = {}
        self.outboxes: dict[Link, ControlOutbox] = {}
        self.channels: dict[int, Channel[Batch]] = {}
        self.sources: dict[int, Source] = {}
        self.consumers: dict[int, Consumer] = {}
        self.verdicts = Verdicts(logical)
        self.greeting = Greeting("", "", {}, container)
        self._port = port
        self._on_report = on_report
        self._now = 0.0
        self._next_heartbeat = 0.0
        self._pauses = Pauses()
        self._loads = Loads(container)
        self._paused: set[int] = set()
        self._returning: set[int] = set()
        self._credit_due: set[int] = set()

    # --- the plan ---------------------------------------------------------------------------------------------

    def identify(self, topology: str, digest: str, digests: dict[str, str]) -> None:
        """What every hello says and must match."""
        self.greeting = Greeting(topology, digest, digests, self.container)

    def planned(self, message: Plan, packing: PackingPlan) -> None:
        """A plan from the master: routing content, addresses, incarnations."""
        self.greeting.plan = message
        self.plan = plan = PhysicalPlan.build(self.logical, packing, message.epoch)
        self._loads.planned(plan)
        horizon = self._horizon
        for task in plan.tasks.values():
            channel = self.channels.setdefault(task.task, Channel())
            known = self.lives.get(task.task, 0) != 0 and task.task not in self._returning
            channel.open = channel.open or known
            if task.container == self.container and task.task not in self.instances:
                link = self._link(self.instances, task.task, task.name)
                self.sources[task.task] = Source(Window(self.settings.queue_bytes, horizon))
                self.consumers[task.task] = Consumer(
                    task.task, high_bytes=self.settings.high_bytes, low_bytes=self.settings.low_bytes
                )
                self.verdicts.local(plan, task, link)
        for address in message.addresses:
            self.addresses[address.container] = address
            if address.container != self.container and address.container not in self.peers:
                self._link(self.peers, address.container, f"manager {address.container}")
        for task_id, life in message.tasks.items():
            self._risen(task_id, life)
        for link in self.instances.values():
            self._welcome(link)
        for link in self.peers.values():
            self._hello(link)

    @property
    def _horizon(self) -> float:
        return float(self.logical.config.get("topology.message.timeout.secs", 30.0)) / 6

    def _link(self, table: dict[int, Link], key: int, name: str) -> Link:
        link = table[key] = Link(key, name, self.me, self._port)
        self.outboxes[link] = ControlOutbox(link, self._horizon * 6)
        return link

    # --- messages ---------------------------------------------------------------------------------------------

    def received(self, link: Link, lane: Lane, header: Header, frames: Sequence[bytes], now: float) -> None:
        """One message from an instance or a peer manager."""
        self._now = now
        link.last_heard = now
        if header.kind == HELLO:
            self._met(link, header, Hello.FromString(frames[0]))
            return
        if not link.accept(lane, header, sum(map(len, frames))):
            if header.kind == HEARTBEAT and header.receiver != self.me:
                self._hello(link)  # it does not know yet that this manager has a new life
            return
        kind = header.kind
        if header.credits:
            for credit in header.credits:
                self._credited(credit, from_instance=self.instances.get(credit.task) is link)
        if kind == ROWS:
            self._rows(header, frames)
        elif kind == ACKS:
            self._acks(header.target, frames)
        elif kind == INIT:
            self._passed(link.key, 0, sum(map(len, frames)))
            self.verdicts.init(link.key, column(frames[0]), column(frames[1]), now)
        elif kind == MARKER:
            self._rows(header, frames)
        elif kind == REPORT:
            self._report(link, frames[0])
        elif kind == PAUSE:
            self._pause(header.target, link.key, paused=header.paused)
        elif kind == TASKS:
            for task, life in Tasks.FromString(frames[0]).lives.items():
                self._risen(task, life)
        elif kind == HEARTBEAT:
            self._heartbeat_from(link, header)

    def _rows(self, header: Header, frames: Sequence[bytes]) -> None:
        """A batch or marker: to a local task, or over the one link to its container's manager."""
        target = header.target
        if header.container:  # from a peer manager, whose credit pays for it
            self._deliver(header, frames)
            return
        header.container, header.container_life = self.container, self.me
        header.source_life = self.lives.get(header.source, 0)
        size = sum(map(len, frames))
        if header.opens:
            self.verdicts.init(header.source, column(frames[-2]), column(frames[-1]), self._now)
            header.opens = False  # said once: a batch may wait, be sent again, or pass another manager
        if self.channels[target].offer((header, frames), header.rows, size):
            self._forward(header, frames)
            self._passed(header.source, header.rows, size)
        else:
            self.statistics.held_batches += 1
            self.sources[header.source].hold(header.rows, self._now)

    def _forward(self, header: Header, frames: Sequence[bytes]) -> None:
        target = header.target
        header.target_life = self.lives[target]
        assert self.plan is not None
        container = self.plan.tasks[target].container
        if container == self.container:
            self.statistics.forwarded_local += 1
            self._deliver(header, frames)
        else:
            self.statistics.forwarded_remote += 1
            self.peers[container].send(Lane.DATA, header, frames, sum(map(len, frames)))

    def _deliver(self, header: Header, frames: Sequence[bytes]) -> None:
        """To a local instance; what was meant for a former life of it is dropped and its roots reported lost."""
        consumer = self.consumers[header.target]
        if header.target_life != consumer.life:
            self._drop(header, frames)
            return
        size = sum(map(len, frames))
        sender = consumer.sender(header.container, header.container_life)
        sender.sent_rows += header.rows
        sender.sent_bytes += size
        sender.last_seen = self._now
        header.credits.clear()
        self.instances[header.target].send(Lane.DATA, header, frames, size)

    def _drop(self, header: Header, frames: Sequence[bytes]) -> None:
        self.statistics.dropped_stale += 1
        if header.ids:
            self._tell(LOST, column(frames[-2]))

    def _tell(self, verdict: int, roots: U64) -> None:
        """Reports roots failed or lost to the managers of their spouts."""
        roots = distinct(roots)
        for spout, part in by_task(roots):
            columns = [b"", b"", b"", b""]
            columns[2 if verdict == FAILED else 3] = roots[part].tobytes()
            self._acks(spout, columns)

    def _acks(self, spout: int, frames: Sequence[bytes]) -> None:
        if spout in self.instances:
            self.verdicts.acks(spout, frames)
        elif self.plan is not None and spout in self.plan.tasks:
            peer = self.peers[self.plan.tasks[spout].container]
            self.outboxes[peer].acks(spout, frames, self._now)

    # --- flow -------------------------------------------------------------------------------------------------

    def _credited(self, credit: Credit, *, from_instance: bool) -> None:
        if from_instance:
            consumer = self.consumers[credit.task]
            consumer.measured(credit)
            sender = consumer.senders.get(credit.container)
            if sender is None or sender.life != credit.container_life:
                return
            sender.consumed_rows = max(sender.consumed_rows, credit.rows)
            sender.consumed_bytes = max(sender.consumed_bytes, credit.bytes)
            self._judge(consumer)
            grant = consumer.grant(credit.container, self._now)
            assert grant is not None
            if credit.container != self.container:
                peer = self.peers[credit.container]
                self.outboxes[peer].newest(("credit", credit.task), Header(kind=CREDITS, credits=[grant]))
                return
            credit = grant
        if credit.container != self.container or credit.container_life != self.me:
            return
        self._risen(credit.task, credit.task_life)
        if credit.task_life != self.lives.get(credit.task):
            return
        channel = self.channels[credit.task]
        channel.credit(credit.rows, credit.bytes, credit.window_rows, credit.window_bytes)
        self._pace(credit.task, credit.pace)
        self._release(credit.task)

    def _release(self, task: int) -> None:
        for header, frames in self.channels[task].release():
            self._forward(header, frames)
            if header.source_life == self.lives.get(header.source):  # a former life's output pays nobody's credit
                self._passed(header.source, header.rows, sum(map(len, frames)), waited=True)

    def _passed(self, task: int, rows: int, size: int, *, waited: bool = False) -> None:
        """A local task's output went on: that is what its own credit counts."""
        if self.sources[task].passed(rows, size, self._now, waited=waited):
            self._credit_due.add(task)

    def _pace(self, task: int, rows: int) -> None:
        """Tells local tasks that feed ``task`` how large a batch is worth sending, when that changed much."""
        channel = self.channels[task]
        if not rows or (rows // 2 < channel.pace < rows * 2 and rows >= channel.pace):
            return
        if rows == channel.pace:
            return
        channel.pace = rows
        assert self.plan is not None
        upstream = {i.component for i in self.logical[self.plan.tasks[task].component].inputs}
        for local in self.plan.tasks_in(self.container):
            if local.component in upstream:
                outbox = self.outboxes[self.instances[local.task]]
                outbox.newest(("pace", task), Header(kind=CREDITS, paces=[Pace(task=task, rows=rows)]))

    # --- back pressure ----------------------------------------------------------------------------------------

    def _judge(self, consumer: Consumer) -> None:
        before = consumer.pausing
        if consumer.judge(self._now) != before:
            self._announce(consumer)

    def _announce(self, consumer: Consumer) -> None:
        header = Header(kind=PAUSE, target=consumer.task, paused=consumer.pausing)
        for link in self.peers.values():
            copy = Header()
            copy.CopyFrom(header)
            self.outboxes[link].newest(("pause", consumer.task), copy)
        self._pause(consumer.task, self.container, paused=consumer.pausing)

    def _pause(self, task: int, container: int, *, paused: bool) -> None:
        self._pauses.told(task, container, self._now, paused=paused)
        self._apply_pauses()

    def _apply_pauses(self) -> None:
        """Pauses exactly the local spouts that can reach a task in trouble."""
        assert self.plan is not None
        wanted = self._pauses.spouts(self.plan, self.container, self._now)
        for task in wanted | self._paused:
            # Repeated while it lasts: an instance that hears nothing for three seconds goes on by itself.
            self.outboxes[self.instances[task]].newest("pause", Header(kind=PAUSE, paused=task in wanted))
        self._paused = wanted

    # --- incarnations -----------------------------------------------------------------------------------------

    def _met(self, link: Link, header: Header, hello: Hello) -> None:
        if hello.task:
            self._met_instance(link, header, hello)
            return
        if self.greeting.refuses(link, hello):
            return
        risen = header.sender > link.peer > 0
        left = link.meet(header.sender)
        if left is not None:
            self.outboxes[link].clear()
            for message in left:
                dropped = Header.FromString(message[0])
                if dropped.kind == ROWS:
                    self._drop(dropped, message[1:])
            if risen:
                self._left_behind(link.key)
            for task, life in hello.tasks.items():
                self._risen(task, life)
            self._repeat_credits(link)
            lives = {task: life for task in self.instances if (life := self.lives.get(task, 0))}
            # The hello that the peer heard may be older than some of these.
            self.outboxes[link].newest("tasks", Header(kind=TASKS), [Tasks(lives=lives).SerializeToString()])
        if header.receiver != self.me:
            self._hello(link)

    def _met_instance(self, link: Link, header: Header, hello: Hello) -> None:
        task = link.key
        if link.meet(header.sender) is not None:
            self.outboxes[link].clear()
            source = self.sources[task]
            self.sources[task] = Source(Window(source.window.limit_bytes, source.window.horizon))
            self.verdicts.reborn(task)
            self._tell(FAILED, column(hello.died_on))  # before all it had is lost
            # One number for the whole topology: the container's admission and the instance's own life.
            self._risen(task, incarnation(admission_of(self.me), header.sender))
        self._welcome(link)

    def _left_behind(self, container: int) -> None:
        """A manager's new life knows none of its tasks: nothing goes to them until it says that they are back."""
        assert self.plan is not None
        for task in self.plan.tasks_in(container):
            if self.lives.get(task.task):
                self._returning.add(task.task)
                self.channels[task.task].open = False
                self.verdicts.lose_through(task.component)

    def _risen(self, task: int, life: int) -> None:
        """A task's incarnation as somebody knows it; the same one counts when it comes back to a new manager."""
        known = self.lives.get(task, 0)
        again = task in self._returning and life >= known
        if life < known or (life == known and not again) or not life or self.plan is None:
            if life > known:
                self.lives[task] = life
            return
        self.lives[task] = life
        self._returning.discard(task)
        channel = self.channels[task]
        channel.restart()
        channel.open = True
        if task in self.consumers:
            self.consumers[task].restart(life)
        if life > known > 0:
            component = self.plan.tasks[task].component
            self.verdicts.lose_through(component)
            self._pauses.forget(task)
        body = Tasks(lives={task: life}, again=again).SerializeToString()
        if task in self.instances:
            for link in self.peers.values():
                self.outboxes[link].newest(("task", task), Header(kind=TASKS), [body])
        for number, link in self.instances.items():
            if number != task:
                self.outboxes[link].newest(("task", task), Header(kind=TASKS), [body])
        self._release(task)

    def _hello(self, link: Link) -> None:
        self.greeting.to_manager(link, {t: self.lives[t] for t in self.instances if self.lives.get(t)})

    def _welcome(self, link: Link) -> None:
        self.greeting.to_instance(link, self.outboxes[link], self.lives)

    # --- master -----------------------------------------------------------------------------------------------

    def ordered(self, order: Order) -> None:
        """An order of the master for all local tasks; kept for those that come later."""
        if not self.greeting.ordered(order):
            return
        body = order.SerializeToString()
        for link in self.instances.values():
            self.outboxes[link].newest(("order", order.kind), Header(kind=ORDER), [body])

    @property
    def told_everybody(self) -> bool:
        """Whether every local task has confirmed the last order."""
        return all(link.up and not link.lanes[Lane.CONTROL].unconfirmed_bytes for link in self.instances.values())

    def _report(self, link: Link, body: bytes) -> None:
        report = TaskReport.FromString(body)
        report.life = self.lives.get(link.key, 0)
        self._on_report(report)

    # --- time -------------------------------------------------------------------------------------------------

    def flush(self, now: float) -> None:
        """At the end of each round of messages: verdicts, credits, and whatever waited for room."""
        self._now = now
        self.verdicts.send()
        for task in self._credit_due:
            self._credit_source(task)
        self._credit_due.clear()
        for outbox in self.outboxes.values():
            if outbox.waiting:
                outbox.flush(now)

    def tick(self, now: float) -> float:
        """Timeouts and, once a second, heartbeats; returns when to be called again."""
        self._now = now
        self.verdicts.expire(now)
        if now >= self._next_heartbeat and self.plan is not None:
            self._next_heartbeat = now + HEARTBEAT_EVERY
            self._beat()
        self.flush(now)
        return min(self._next_heartbeat, self.verdicts.next_deadline)

    def _beat(self) -> None:
        for consumer in self.consumers.values():
            channel = self.channels[consumer.task]
            mine = consumer.sender(self.container, self.me)
            mine.held_rows, mine.held_bytes = channel.held_rows, channel.held_bytes
            self._judge(consumer)
            if consumer.pausing:
                self._announce(consumer)
        self._apply_pauses()
        for task in self.sources:
            self._credit_source(task)
        for task, loads in self._loads.of(self.channels):
            self.outboxes[self.instances[task]].newest("loads", Header(kind=CREDITS, loads=loads))
        for number, link in self.peers.items():
            if not link.up:
                self._hello(link)
                continue
            header = Header(kind=HEARTBEAT)
            self._repeat_credits(link, header)
            assert self.plan is not None
            for remote in self.plan.tasks_in(number):
                channel = self.channels[remote.task]
                header.demands.append(
                    Demand(task=remote.task, held_rows=channel.held_rows, held_bytes=channel.held_bytes)
                )
            link.heartbeat(header)
        for link in self.instances.values():
            if link.up:
                link.heartbeat()
            else:
                self._welcome(link)

    def _heartbeat_from(self, link: Link, header: Header) -> None:
        for demand in header.demands:
            if demand.task in self.consumers:
                sender = self.consumers[demand.task].sender(link.key, link.peer)
                sender.held_rows, sender.held_bytes = demand.held_rows, demand.held_bytes
                self._judge(self.consumers[demand.task])

    def _repeat_credits(self, link: Link, header: Header | None = None) -> None:
        grants = [g for c in self.consumers.values() if (g := c.grant(link.key, self._now)) is not None]
        if header is not None:
            header.credits.extend(grants)
        elif grants:
            self.outboxes[link].newest("credits", Header(kind=CREDITS, credits=grants))

    def _credit_source(self, task: int) -> None:
        """Tells a local task what of its output was passed on."""
        link = self.instances[task]
        credit = self.sources[task].credit(task, link.peer)
        self.outboxes[link].newest("credit", Header(kind=CREDITS, credits=[credit]))

"""The stream manager: forwards batches by their header, judges trees, keeps everybody's flow.

Pure: messages come in through :meth:`StreamManager.received`, time through :meth:`StreamManager.tick`, and leave
through the links' port.  It never looks into values.  docs/protocol.md has the table of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ardea.errors import OtherVersion
from ardea.plan.packing import PackingPlan
from ardea.protocol.checked import DATA
from ardea.protocol.flow import Window
from ardea.protocol.ids import column
from ardea.protocol.incarnations import admission_of, incarnation
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link, Port
from ardea.protocol.wire_pb2 import (
    ACKS,
    CREDITS,
    HEARTBEAT,
    HELLO,
    INIT,
    PAUSE,
    REFUSED,
    REPORT,
    TASKS,
    Credit,
    Demand,
    Header,
    Hello,
    Order,
    Pace,
    Plan,
    Refusal,
    TaskReport,
    Tasks,
)
from ardea.stream_manager.greeting import pass_on
from ardea.stream_manager.members import Members
from ardea.stream_manager.senders import may_come_from_instance, may_come_from_manager
from ardea.stream_manager.sources import Source
from ardea.stream_manager.verdicts import FAILED

HEARTBEAT_EVERY = 1.0
LINGER = 5.0
"""Seconds for which the order to exit may wait for instances that are just being started again."""
STORED = 2**64 - 1
"""The term of an order that follows from the stored state: no master's is higher."""


class StreamManager(Members):
    """One container's stream manager; :meth:`planned` comes before anything else."""

    def __init__(
        self, container: int, me: int, topology: str, port: Port, on_report: Callable[[TaskReport], None]
    ) -> None:
        """``me`` is the incarnation; ``on_report`` carries a task's report towards the master."""
        super().__init__(container, me, topology, port)
        self._on_report = on_report
        self._demanded: dict[int, int] = {}  # task -> held rows that its manager was told of
        self._next_heartbeat = 0.0

    # --- the plan ---------------------------------------------------------------------------------------------

    def planned(self, message: Plan, packing: PackingPlan) -> None:
        """A plan from the master: routing content, addresses, incarnations.  One of an earlier epoch says nothing."""
        present = self.greeting.plan
        if present is not None and message.epoch < present.epoch:
            return
        if present is None or message.epoch > present.epoch:
            self.adopt(message, packing)
        else:
            self.greeting.plan = message
        for address in message.addresses:
            self.addresses[address.container] = address
            if address.container != self.container and address.container not in self.peers:
                self._link(self.peers, address.container, f"manager {address.container}")
        for task_id, life in self.epochs.lives(self.plan).items():
            self._risen(task_id, life)
        for link in self.instances.values():
            self._welcome(link)
        for link in self.peers.values():
            self._hello(link)
        early, self.epochs.early = self.epochs.early, []
        for link, header, frames in early:
            if header.sender == link.peer and link in self.outboxes:
                self._rows(link, header, frames)
            else:
                self._drop(header, frames)

    # --- messages ---------------------------------------------------------------------------------------------

    def received(self, link: Link, lane: Lane, header: Header, frames: Sequence[bytes], now: float) -> None:
        """One message from an instance or a peer manager."""
        if not self._may_come(link, header, frames):
            self.statistics.malformed += 1
            return
        self._now = now
        link.last_heard = now
        if header.kind == HELLO:
            self._met(link, header, Hello.FromString(frames[0]))
            return
        if header.kind == REFUSED:
            self._refused(link, header, Refusal.FromString(frames[0]))
            return
        if not link.accept(lane, header, sum(map(len, frames))):
            if header.kind == HEARTBEAT and header.receiver != self.me:
                self._hello(link)  # it does not know yet that this manager has a new life
            return
        kind = header.kind
        if kind in DATA:
            if kind == INIT:
                self._passed(link.key, 0, sum(map(len, frames)))
                self.verdicts.init(link.key, column(frames[0]), column(frames[1]), now)
            else:
                self._rows(link, header, frames)
            return
        for credit in header.credits:
            self._credited(credit, link)
        if kind == ACKS:
            self._acks(header.target, frames)
        elif kind == REPORT:
            self._report(link, frames[0])
        elif kind == PAUSE:
            self._pressure.told(self.plan, header.target, link.key, now, paused=header.paused)
        elif kind == TASKS:
            self._told(link, Tasks.FromString(frames[0]).lives)
        elif kind == HEARTBEAT:
            self._heartbeat_from(link, header)

    def _may_come(self, link: Link, header: Header, frames: Sequence[bytes]) -> bool:
        """Whether that peer may send the message, which is sound by itself: each speaks for itself only."""
        task, kind = link.key, header.kind
        if self.instances.get(task) is not link:
            return may_come_from_manager(task, header, frames)
        return may_come_from_instance(task, header, frames) and (
            self.verdicts.judges(task) or not (kind == INIT or header.opens)
        )

    def _rows(self, link: Link, header: Header, frames: Sequence[bytes]) -> None:
        """A batch or marker: to a local task, or over the one link to its container's manager."""
        target = header.target
        if header.epoch != self.plan.epoch:
            if header.epoch > self.plan.epoch:
                self.epochs.early.append((link, header, frames))
                return
            if self.epochs.stale(header, self.plan):
                self._refuse(header, frames)
                return
        if target not in (self.consumers if header.container else self.channels):
            self._drop(header, frames)  # of no task that is fed from there
            return
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
            self.sources[header.source].hold(header.rows, self._now)
            self._demand(target)

    def _demand(self, target: int) -> None:
        """More is held for a task: its manager hears of that each second, and when it has doubled since.

        A spout may emit its whole pending in less than a second: the pause has to come before.
        """
        channel = self.channels[target]
        if channel.held_rows < 2 * self._demanded.get(target, 0):
            return
        self._demanded[target] = channel.held_rows
        demand = Demand(task=target, held_rows=channel.held_rows, held_bytes=channel.held_bytes)
        if target in self.consumers:
            self._demands(self.container, self.me, [demand])
        elif (peer := self.peers.get(self.plan.tasks[target].container)) is not None:
            peer.signal(Header(kind=HEARTBEAT, demands=[demand]))

    def _refuse(self, header: Header, frames: Sequence[bytes]) -> None:
        """A batch whose destination has changed since it was routed; whoever paid for it gets the credit back."""
        if header.container:
            self._drop(header, frames)
            if header.target in self.consumers:
                header.void = True
                self._deliver(header, frames)
            return
        if header.opens:
            self.verdicts.init(header.source, column(frames[-2]), column(frames[-1]), self._now)
        self._drop(header, frames)
        self._passed(header.source, header.rows, sum(map(len, frames)))

    def _forward(self, header: Header, frames: Sequence[bytes]) -> None:
        target = header.target
        header.target_life = self.lives[target]
        if header.rows:
            self.statistics.batch(header.rows)
        container = self.plan.tasks[target].container
        if container == self.container:
            self._deliver(header, frames)
        else:
            self.peers[container].send(Lane.DATA, header, frames, sum(map(len, frames)))

    def _deliver(self, header: Header, frames: Sequence[bytes]) -> None:
        """To a local instance; what was meant for a former life of it is dropped and its roots reported lost."""
        consumer = self.consumers[header.target]
        if header.target_life != consumer.life:
            if not header.void:
                self._drop(header, frames)
            return
        size = sum(map(len, frames))
        sender = consumer.sender(header.container, header.container_life)
        sender.sent_rows += header.rows
        sender.sent_bytes += size
        sender.last_seen = self._now
        header.credits.clear()
        self.instances[header.target].send(Lane.DATA, header, frames, size)

    # --- flow -------------------------------------------------------------------------------------------------

    def _credited(self, credit: Credit, link: Link) -> None:
        place = self.plan.tasks.get(credit.task)
        if self.instances.get(credit.task) is link:
            consumer = self.consumers[credit.task]
            consumer.measured(credit)
            sender = consumer.senders.get(credit.container)
            if sender is None or sender.life != credit.container_life:
                return
            sender.consumed_rows = max(sender.consumed_rows, credit.rows)
            sender.consumed_bytes = max(sender.consumed_bytes, credit.bytes)
            self._pressure.judge(self.plan, consumer, self._now)
            grant = consumer.grant(credit.container, self._now)
            assert grant is not None
            if credit.container != self.container:
                peer = self.peers.get(credit.container)
                if peer is not None:
                    self.outboxes[peer].newest(("credit", credit.task), Header(kind=CREDITS, credits=[grant]))
                return
            credit = grant
        elif place is None or self.peers.get(place.container) is not link:
            return  # of a task that an update has removed, or moved
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
            self._let_go(header, frames)

    def _pace(self, task: int, rows: int) -> None:
        """Tells local tasks that feed ``task`` how large a batch is worth sending, when that changed much."""
        channel = self.channels[task]
        if not rows or (rows // 2 < channel.pace < rows * 2 and rows >= channel.pace):
            return
        if rows == channel.pace:
            return
        channel.pace = rows
        upstream = {i.component for i in self.plan.logical[self.plan.tasks[task].component].inputs}
        for local in self.plan.tasks_in(self.container):
            if local.component in upstream:
                outbox = self.outboxes[self.instances[local.task]]
                outbox.newest(("pace", task), Header(kind=CREDITS, paces=[Pace(task=task, rows=rows)]))

    # --- incarnations -----------------------------------------------------------------------------------------

    def _met(self, link: Link, header: Header, hello: Hello) -> None:
        if self.greeting.refuses_version(link, header.sender, hello):
            return
        if hello.task:
            self._met_instance(link, header, hello)
            return
        if self.greeting.refuses(link, hello):
            return
        risen = header.sender > link.peer > 0
        left = link.meet(header.sender)
        if left is not None:
            self.outboxes[link].clear()
            self._undelivered(left)
            if risen:
                self._left_behind(link.key)
            self.epochs.told.pop(link.key, None)
            self._told(link, hello.tasks)
            self._repeat_credits(link)
            lives = {task: life for task in self.instances if (life := self.lives.get(task, 0))}
            # The hello that the peer heard may be older than some of these.
            self.outboxes[link].newest("tasks", Header(kind=TASKS), [Tasks(lives=lives).SerializeToString()])
        if header.receiver != self.me:
            self._hello(link)

    def _refused(self, link: Link, header: Header, refusal: Refusal) -> None:
        """By a manager, for its version.  If it works by another plan, one of the two is about to get the other's.

        A refusal of this container's former life, which may have been of another version, is not this one's.
        """
        is_mine = header.receiver == self.me and self.peers.get(link.key) is link
        if refusal.code == "OTHER_VERSION" and is_mine:
            raise OtherVersion(refusal.code, f"{link.name} refuses this manager: {refusal.message}")

    def _told(self, link: Link, lives: Mapping[int, int]) -> None:
        """A manager names its tasks; those that another plan gives it count as soon as that plan is here."""
        self.epochs.told.setdefault(link.key, {}).update(lives)
        for task, life in lives.items():
            if task in self.plan.tasks and self.plan.tasks[task].container == link.key:
                self._risen(task, life)

    def _met_instance(self, link: Link, header: Header, hello: Hello) -> None:
        if hello.build != self.greeting.build:
            return  # it is about to be started again with the present code, or this manager about to hear of it
        if header.sender < link.peer:
            return  # a former life that goes on; whoever answered it would be asked again
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
        for task in self.plan.tasks_in(container):
            if self.lives.get(task.task):
                self._returning.add(task.task)
                self.channels[task.task].open = False
                self.verdicts.lose_through(task.component)

    def _risen(self, task: int, life: int) -> None:
        """A task's incarnation as somebody knows it; the same one counts when it comes back to a new manager."""
        known = self.lives.get(task, 0)
        again = task in self._returning and life >= known
        if life < known or (life == known and not again) or not life:
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
            self._pressure.forget(task)
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
        for link in self.instances.values():
            pass_on(self.outboxes[link], order)

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
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_EVERY
            self._beat()
        self.flush(now)
        return min(self._next_heartbeat, self.verdicts.next_deadline)

    def _beat(self) -> None:
        self._demanded = {task: channel.held_rows for task, channel in self.channels.items()}
        for consumer in self.consumers.values():
            channel = self.channels[consumer.task]
            mine = consumer.sender(self.container, self.me)
            mine.held_rows, mine.held_bytes = channel.held_rows, channel.held_bytes
            self._pressure.judge(self.plan, consumer, self._now)
            if consumer.pausing:
                self._pressure.announce(self.plan, consumer, self._now)
        self._pressure.apply(self.plan, self._now)
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
        self._demands(link.key, link.peer, header.demands)

    def _demands(self, container: int, life: int, demands: Iterable[Demand]) -> None:
        """How much a manager holds for tasks of this container."""
        for demand in demands:
            if demand.task in self.consumers:
                sender = self.consumers[demand.task].sender(container, life)
                sender.held_rows, sender.held_bytes = demand.held_rows, demand.held_bytes
                self._pressure.judge(self.plan, self.consumers[demand.task], self._now)

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

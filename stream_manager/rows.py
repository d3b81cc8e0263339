"""The way of batches through a manager: over which link, by whose credit, and what waits for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ardea.plan.physical import PhysicalPlan
from ardea.protocol.checked import MARKERS
from ardea.protocol.flow import START_ROWS, Channel
from ardea.protocol.ids import column
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import CREDITS, HEARTBEAT, Credit, Demand, Header, Pace
from ardea.stream_manager.ack_routes import AckRoutes
from ardea.stream_manager.epochs import Epochs
from ardea.stream_manager.inputs import Inputs
from ardea.stream_manager.markers import Batch, Markers
from ardea.stream_manager.members import Members
from ardea.stream_manager.output_credit import Outputs
from ardea.stream_manager.settings import ManagerStatistics
from ardea.stream_manager.verdicts import Verdicts


class Rows:
    """All that passes one manager; ``channels``: task -> the way to it, by this container's share of its credit."""

    def __init__(
        self,
        members: Members,
        verdicts: Verdicts,
        routes: AckRoutes,
        inputs: Inputs,
        outputs: Outputs,
        statistics: ManagerStatistics,
    ) -> None:
        self.channels: dict[int, Channel[Batch]] = {}
        self._members = members
        self._verdicts = verdicts
        self._routes = routes
        self._inputs = inputs
        self._outputs = outputs
        self._statistics = statistics
        self._consumers = inputs.consumers
        self._lives = members.lives
        self._epochs = Epochs()
        self._markers = Markers(self.channels, members, inputs, outputs)
        self._holding: set[int] = set()  # tasks for which something waits, or has until lately
        self._named: set[int] = set()  # containers whose managers heard last that something waits
        self._demanded: dict[int, int] = {}  # task -> held rows that its manager was told of

    # --- the plan ---------------------------------------------------------------------------------------------

    def planned(self, former: PhysicalPlan | None, *, rebuilt: bool, now: float) -> None:
        """The members have a plan of a higher epoch: what waits, and must not arrive by it, is lost."""
        plan = self._members.plan
        self._epochs.adopted(former, plan, rebuilt=rebuilt)
        for task, channel in self.channels.items():
            self._sift(channel, functools.partial(self._epochs.fits, plan, task), now)
        for task in plan.tasks:
            channel = self.channels.setdefault(task, Channel())
            channel.open = channel.open or self._members.is_there(task)

    def left(self, task: int, now: float) -> None:
        """A task is not where it was: nothing more goes there."""
        self._sift(self.channels.pop(task), lambda _: False, now)

    def forsake(self, task: int, now: float) -> None:
        """The task or its manager has another incarnation: trees that wait for it are lost, and come again."""
        self._sift(self.channels[task], lambda header: not header.ids, now)

    def restart(self, task: int) -> None:
        """The task has a new incarnation, or is back: it may get rows."""
        channel = self.channels[task]
        channel.restart()
        channel.open = True

    def close(self, task: int) -> None:
        """Nothing goes to the task until its manager says that it is there."""
        self.channels[task].open = False

    def go_on(self, now: float) -> None:
        """Takes what has come ahead of the present plan."""
        early, self._epochs.early = self._epochs.early, []
        for link, header, frames in early:
            if header.sender == link.peer and link in self._members.outboxes:
                self.arrived(link, header, frames, sum(map(len, frames)), now)
            else:
                self._routes.dropped(header, frames, now)

    def _sift(self, channel: Channel[Batch], keep: Callable[[Header], bool], now: float) -> None:
        """Of what local tasks have sent, and waits for credit, some cannot go any more."""
        for header, frames in channel.sift(lambda held: keep(held[0])):
            self._routes.dropped(header, frames, now)
            self._outputs.let_go(header, frames, now)

    # --- on their way -----------------------------------------------------------------------------------------

    def arrived(self, link: Link, header: Header, frames: Sequence[bytes], size: int, now: float) -> None:
        """A batch or marker of ``size`` bytes: to a local task, or over the one link to its container's manager."""
        members = self._members
        if header.epoch > members.plan.epoch:
            self._epochs.early.append((link, header, frames))
        elif header.kind in MARKERS:
            if header.container:
                self._markers.hand_over(header)
            else:
                self._markers.spread(header, now)
        else:
            self._batch(header, frames, size, now)

    def _batch(self, header: Header, frames: Sequence[bytes], size: int, now: float) -> None:
        target, members = header.target, self._members
        if header.epoch < members.plan.epoch and not self._epochs.fits(members.plan, target, header):
            self._refuse(header, frames, size, now)
            return
        if target not in (self._consumers if header.container else self.channels):
            self._routes.dropped(header, frames, now)  # of no task that is fed from there
            return
        if header.container:  # from a peer manager, whose credit pays for it
            self._deliver(header, frames, size, now)
            return
        source = header.source
        header.container, header.container_life = members.container, members.me
        header.source_life = self._lives.get(source, 0)
        if header.opens:
            self._verdicts.init(source, column(frames[-2]), column(frames[-1]), now)
            header.opens = False  # said once: a batch may wait, be sent again, or pass another manager
        if self.channels[target].offer((header, frames), header.rows, size):
            self._forward(header, frames, size, now)
            self._outputs.passed(source, header.rows, size, now)
        else:
            self._outputs.output_credits[source].hold(header.rows, now)
            self._holding.add(target)
            self._demand(target, now)

    def _refuse(self, header: Header, frames: Sequence[bytes], size: int, now: float) -> None:
        """A batch whose destination has changed since it was routed; whoever paid for it gets the credit back."""
        if header.container:
            self._routes.dropped(header, frames, now)
            if header.target in self._consumers:
                header.void = True
                self._deliver(header, frames, size, now)
            return
        if header.opens:
            self._verdicts.init(header.source, column(frames[-2]), column(frames[-1]), now)
        self._routes.dropped(header, frames, now)
        self._outputs.passed(header.source, header.rows, size, now)

    def _forward(self, header: Header, frames: Sequence[bytes], size: int, now: float) -> None:
        target, members = header.target, self._members
        header.target_life = self._lives[target]
        self._statistics.batch(header.rows)
        container = members.plan.tasks[target].container
        if container == members.container:
            self._deliver(header, frames, size, now)
        else:
            members.peers[container].send(Lane.DATA, header, frames, size)

    def _deliver(self, header: Header, frames: Sequence[bytes], size: int, now: float) -> None:
        """To a local instance; what was meant for a former life of it is dropped and its roots reported lost."""
        consumer = self._consumers[header.target]
        if header.target_life != consumer.life:
            if not header.void:
                self._routes.dropped(header, frames, now)
            return
        sender = consumer.traffic.sent(header.container, header.container_life, header.rows, size, now)
        if sender.told is None and consumer.is_known:
            self._inputs.untold[header.container][header.target] = None
        header.credits.clear()
        self._members.instances[header.target].send(Lane.DATA, header, frames, size)

    # --- credit -----------------------------------------------------------------------------------------------

    def credited(self, credit: Credit, now: float) -> None:
        """A task's container says how much more of this one's may come."""
        self.channels[credit.task].credit(credit.rows, credit.bytes, credit.window_rows, credit.window_bytes)
        self._pace(credit.task, credit.pace)
        self.release(credit.task, now)

    def release(self, task: int, now: float) -> None:
        """Sends what has credit."""
        container = self._members.plan.tasks[task].container
        for header, frames in self.channels[task].release():
            if header.kind in MARKERS:
                self._markers.forward(header, container, [task])
            else:
                self._forward(header, frames, sum(map(len, frames)), now)
            self._outputs.let_go(header, frames, now)
        self._supply(task, now)

    def _pace(self, task: int, rows: int) -> None:
        """Tells local tasks that feed ``task`` how large a batch is worth sending, when that changed much."""
        channel = self.channels[task]
        if not rows or (rows // 2 < channel.pace < rows * 2 and rows >= channel.pace):
            return
        if rows == channel.pace:
            return
        channel.pace = rows
        members, plan = self._members, self._members.plan
        upstream = {i.component for i in plan.logical[plan.tasks[task].component].inputs}
        for local in plan.tasks_in(members.container):
            if local.component in upstream:
                outbox = members.outboxes[members.instances[local.task]]
                outbox.newest(("pace", task), Header(kind=CREDITS, paces=[Pace(task=task, rows=rows)]))

    def tell_paces(self, task: int) -> None:
        """A local task begins with the least: a new life of it hears how large batches are worth sending."""
        members, plan = self._members, self._members.plan
        known = ((reader, self.channels[reader].pace) for reader in plan.readers(plan.tasks[task].component))
        paces = [Pace(task=reader, rows=rows) for reader, rows in known if rows != START_ROWS]
        if paces:
            members.outboxes[members.instances[task]].newest("paces", Header(kind=CREDITS, paces=paces))

    # --- what waits -------------------------------------------------------------------------------------------

    def _demand(self, target: int, now: float) -> None:
        """More is held for a task: its manager hears of that each second, and when it has doubled since.

        A spout may emit its whole pending in less than a second: the pause has to come before.
        """
        if self.channels[target].held_rows >= 2 * self._demanded.get(target, 0):
            self._tell_held(target, now)

    def _supply(self, target: int, now: float) -> None:
        """Less is held: that is told, too, when it is a half, unless it was little beside the window.

        Where half a second's work is all that may wait, spouts would pause for longer than the task has work.
        """
        channel, told = self.channels[target], self._demanded.get(target, 0)
        if 4 * told >= channel.window_rows and 2 * channel.held_rows <= told:
            self._tell_held(target, now)

    def _tell_held(self, target: int, now: float) -> None:
        members = self._members
        self._demanded[target] = self.channels[target].held_rows
        if target in self._consumers:
            self._inputs.demanded(members.container, members.me, [self._held(target)], now, all_held=False)
        elif (peer := members.peers.get(members.plan.tasks[target].container)) is not None:
            peer.signal(Header(kind=HEARTBEAT, demands=[self._held(target)]))

    def beat(self) -> dict[int, list[Demand]]:
        """Each second: container -> what waits for its tasks, if anything does, or did a second ago."""
        channels, tasks = self.channels, self._members.plan.tasks
        self._holding = {task for task in self._holding if task in channels and channels[task].held}
        self._demanded = {task: channels[task].held_rows for task in self._holding}
        held: dict[int, list[Demand]] = {container: [] for container in self._named}
        for task in self._holding:
            held.setdefault(tasks[task].container, []).append(self._held(task))
        self._named = {container for container, demands in held.items() if demands}
        return held

    def _held(self, task: int) -> Demand:
        channel = self.channels[task]
        return Demand(task=task, held_rows=channel.held_rows, held_bytes=channel.held_bytes)

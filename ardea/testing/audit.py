"""What must hold after every event of a simulated cluster; whoever breaks it stops the run, with the story so far."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ardea.heron_instance.gateway import Gateway
from ardea.heron_instance.input_batch import InputBatch
from ardea.heron_instance.messages import OutMessage
from ardea.metrics import Identity
from ardea.plan.physical import TaskPlan
from ardea.protocol.flow import Channel
from ardea.protocol.ids import column
from ardea.protocol.lane import Lane
from ardea.protocol.link import CONTROL_ROOM, Link
from ardea.protocol.story import Story
from ardea.protocol.wire_pb2 import ROWS, VERDICTS, Header
from ardea.stream_manager.manager import StreamManager
from ardea.tuples import Tuple

COUNTED = 100
"""A longer queue is not counted after every event."""
JUDGED = 256
"""So many trees that had their verdict are remembered, the last ones."""
OTHER_BYTES = 1024
"""Of orders, incarnations and verdicts among the rows that wait for an executor: no credit is for them."""


class InvariantError(AssertionError):
    """The engine did what it must not do.  Run the same seed again: it happens again."""


@dataclass(slots=True)
class Audit:
    """The true state of every tuple tree, seen from outside, and the bounds of every queue; ``clock`` is simulated."""

    clock: Callable[[], float]
    _missing: dict[int, set[int]] = field(default_factory=dict)  # root -> edges of rows that nobody has processed
    _stories: dict[int, Story] = field(default_factory=dict)
    _judged: OrderedDict[int, Story] = field(default_factory=OrderedDict)
    _unheard: dict[tuple[str, str], int] = field(default_factory=dict)
    _largest: int = 0

    # --- trees ------------------------------------------------------------------------------------------------

    def opened(self, who: str, roots: Sequence[int]) -> None:
        """A spout begins trees."""
        now = self.clock()
        for root in roots:
            self._missing[root] = set()
            self._stories[root] = story = Story()
            story.tell(now, f"{who} begins it")

    def sent(self, who: str, message: OutMessage) -> None:
        """An executor lets rows go."""
        self._largest = max(self._largest, message.size)
        if message.header.kind == ROWS and message.header.ids:
            roots, edges = column(message.frames[-2]).tolist(), column(message.frames[-1]).tolist()
            now = self.clock()
            for root, edge in zip(roots, edges, strict=True):
                if root in self._missing:
                    self._missing[root].add(edge)
                    self._stories[root].tell(now, f"{who} sends the row {edge:#x}")

    def processed(self, who: str, tup: Tuple) -> None:
        """A bolt's ``process`` is called."""
        batch, index = tup._batch, tup._index
        if not isinstance(batch, InputBatch) or not batch.tracked:
            return
        trees, start, count = batch.trees, index, 1
        if trees.starts is not None and trees.counts is not None:
            start, count = int(trees.starts[index]), int(trees.counts[index])
        for place in range(start, start + count):
            root, edge = int(trees.roots[place]), int(trees.edges[place])
            missing = self._missing.get(root)
            if missing is not None:
                missing.discard(edge)
                self._stories[root].tell(self.clock(), f"{who} processes the row {edge:#x}")

    def judged(self, who: str, root: int, tup_id: Any, *, acked: bool) -> None:
        """A spout hears the verdict on a tree of its own: the only one, and no false completion."""
        missing = self._missing.pop(root, None)
        story = self._stories.pop(root, None) or self._judged.get(root) or Story()
        story.tell(self.clock(), f"{who} hears that it is {'complete' if acked else 'not'}")
        self._judged[root] = story
        if len(self._judged) > JUDGED:
            self._judged.popitem(last=False)
        if missing is None:
            what = f"{who} got a second verdict on the tree of {tup_id!r} (root {root:#x})"
            raise InvariantError(self._with_story(what, story))
        if acked and missing:
            what = (
                f"{who} heard that the tree of {tup_id!r} (root {root:#x}) is complete, yet {len(missing)} of its rows"
            )
            raise InvariantError(self._with_story(f"{what} were never processed", story))

    def _with_story(self, what: str, story: Story) -> str:
        return "\n  ".join((what, *story.lines(self.clock())))

    # --- hellos -----------------------------------------------------------------------------------------------

    def hello_came(self, manager: str, source: str) -> None:
        """Somebody's hello has come to a manager."""
        self._unheard[manager, source] = self._unheard.get((manager, source), 0) + 1

    def hello_heard(self, manager: str, source: str) -> None:
        """The manager acts upon a hello: upon each once at most, now or when it has its plan."""
        self._unheard[manager, source] -= 1
        if self._unheard[manager, source] < 0:
            raise InvariantError(f"{manager} answers a hello of {source} that it has answered already")

    # --- metrics ----------------------------------------------------------------------------------------------

    def counts(self, task: TaskPlan, life: int, identity: Identity) -> None:
        """A task begins to count: under its own name, and as nobody else does."""
        own = task.container, task.name, task.component, task.task, life
        said = identity.container, identity.process, identity.component, identity.task, identity.life
        if own != said:
            raise InvariantError(f"{task.name} in life {life} counts as {said}, and is {own}")

    # --- queues -----------------------------------------------------------------------------------------------

    def gateway(self, who: str, gateway: Gateway) -> None:
        """After a round of an instance's gateway."""
        self._channel(who, "out", gateway.channel)
        self.link(who, gateway.link)

    def instance(self, who: str, held: int, limit: int, burst: int) -> None:
        """After a turn of an executor: output never outgrows its limit by more than one burst of emits."""
        if held > limit + burst:
            raise InvariantError(f"{who} holds {held:,} bytes; the limit is {limit:,}, and the largest burst {burst:,}")

    def inbox(self, who: str, size: int, capacity: int, senders: int) -> None:
        """After a message for an executor: credit bounds the rows that wait, one batch a sender apart."""
        if size > capacity + senders * self._largest + OTHER_BYTES:
            raise InvariantError(
                f"{size:,} bytes wait in the input queue of {who}; {senders} senders share {capacity:,}, and the"
                f" largest batch has {self._largest:,}"
            )

    def manager(self, who: str, manager: StreamManager) -> None:
        """After a round of a stream manager."""
        held = 0
        for task, channel in manager.rows.channels.items():
            self._channel(who, task, channel)
            held += channel.held_bytes
        room = sum(source.window.limit_bytes + 2 * self._largest for source in manager.outputs.output_credits.values())
        if held > room:
            raise InvariantError(f"{who} holds {held:,} bytes of its instances' output; their credit is {room:,}")
        for link in (*manager.members.instances.values(), *manager.members.peers.values()):
            self.link(who, link)

    @staticmethod
    def _channel(who: str, to: int | str, channel: Channel[Any]) -> None:
        if channel.consumed_rows > channel.sent_rows or channel.consumed_bytes > channel.sent_bytes:
            raise InvariantError(f"{who}, channel {to}: more was consumed than sent: {channel}")
        if len(channel.held) > COUNTED:
            return
        rows = size = 0
        for held in channel.held:
            rows, size = rows + held[1], size + held[2]
        if (rows, size) != (channel.held_rows, channel.held_bytes):
            raise InvariantError(
                f"{who}, channel {to}, holds {rows} rows of {size} bytes and counts otherwise: {channel}"
            )

    def link(self, who: str, link: Link) -> None:
        """After each round: how much its control lane has unconfirmed."""
        lane = link.lanes[Lane.CONTROL]
        if lane.unconfirmed_bytes <= CONTROL_ROOM:
            return
        # Verdicts do not wait for room: there is at most one a slot.
        sizes = [size for _, message, size in lane.unconfirmed if Header.FromString(message[0]).kind != VERDICTS]
        if sum(sizes) > CONTROL_ROOM + max(sizes, default=0):
            what = f"{who} has {sum(sizes):,} unconfirmed control bytes to {link.describe()}"
            raise InvariantError(self._with_story(what, link.story))

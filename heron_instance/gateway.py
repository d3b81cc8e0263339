"""The gateway's state: one link to the stream manager, credit for what goes out, counters for what comes in.

Pure: the thread in :mod:`ardea.heron_instance.process` moves messages in and out, and so does a simulated cluster.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ardea.errors import OtherVersion, ProtocolError, refused
from ardea.heron_instance.messages import OutMessage
from ardea.protocol.checked import DATA, MARKERS
from ardea.protocol.flow import Channel, Window
from ardea.protocol.ids import U64
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link, Port
from ardea.protocol.pulse import PATIENT
from ardea.protocol.wire_pb2 import (
    CREDITS,
    HEARTBEAT,
    HELLO,
    ORDER,
    PAUSE,
    PLAN,
    REFUSED,
    REPORT,
    RESEND,
    ROWS,
    TASKS,
    VERDICTS,
    Credit,
    Header,
    Hello,
    Plan,
    Refusal,
)
from ardea.versions import protocol_differs

HEARTBEAT_EVERY = 1.0
HELLO_EVERY = 0.2
FROM_MANAGER = frozenset(
    {HELLO, REFUSED, HEARTBEAT, RESEND, ROWS, *MARKERS, VERDICTS, CREDITS, PAUSE, PLAN, TASKS, ORDER}
)
TO_EXECUTOR = frozenset({ROWS, *MARKERS, VERDICTS, PAUSE, TASKS, ORDER})
_NONE_TOLD = (0, 0, 0, 0, 0, 0)  # window in rows and bytes, watermark, pace, aside in rows and bytes


class Listener(Protocol):
    """Who hears what comes from the manager."""

    def deliver(self, header: Header, frames: Sequence[bytes], size: int) -> None:
        """A message for the executor."""

    def planned(self, message: Plan) -> None:
        """A plan."""

    def reborn(self) -> None:
        """The manager has a new life."""


@dataclass(slots=True)
class Consumed:
    """What the executor took of one sending manager's batches; cumulative within its life."""

    life: int = 0
    rows: int = 0
    bytes: int = 0
    reported_rows: int = 0
    reported_bytes: int = 0


class Gateway:
    """One instance's side of the link to its manager.

    ``hello`` says what the process was started with.
    """

    def __init__(self, hello: Hello, life: int, window: Window, port: Port, listener: Listener) -> None:
        self.task = hello.task
        self.malformed = 0  # messages that were dropped
        self.link = Link(hello.task, "stream manager", life, port, PATIENT)
        self.channel: Channel[OutMessage] = Channel()
        self.window = window
        self._hello = hello
        self._digests = dict(hello.digests)
        self._listener = listener
        self._consumed: dict[int, Consumed] = {}
        self._untold: dict[int, Consumed] = {}  # of which more has been taken than the manager was told; both threads'
        self._told_measures = _NONE_TOLD
        self._next_heartbeat = 0.0
        self._next_hello = 0.0
        self._waiting_control: list[OutMessage] = []
        self._last_report: OutMessage | None = None

    def replanned(self, epoch: int, digest: str, digests: Mapping[str, str]) -> None:
        """The instance works by a newer plan."""
        self._hello.epoch, self._hello.digest = epoch, digest
        self._digests = dict(digests)

    def blame(self, roots: U64) -> None:
        """Every hello names the trees of the tuple that ended the task's former life."""
        self._hello.died_on = roots.tobytes()

    # --- from the manager -------------------------------------------------------------------------------------

    def received(self, lane: Lane, header: Header, frames: Sequence[bytes], now: float) -> None:
        """One message from the manager; ProtocolError if it refuses this instance."""
        kind = header.kind
        if kind not in FROM_MANAGER:
            self.malformed += 1
            return
        self.link.last_heard = now
        if kind == HELLO:
            self._met(header, Hello.FromString(frames[0]))
            return
        if kind == REFUSED:
            if header.receiver != self.link.me:
                return  # it was for a former life
            refusal = Refusal.FromString(frames[0])
            raise refused(refusal.code, refusal.message)
        size = sum(map(len, frames))
        if not self.link.accept(lane, header, size):
            return
        if kind not in DATA and header.credits:
            for credit in header.credits:
                self.channel.credit(credit.rows, credit.bytes, credit.window_rows, credit.window_bytes)
            self._release()
        if kind in TO_EXECUTOR or header.paces or header.loads:
            self._listener.deliver(header, frames, size)
            if kind == ORDER:
                self.link.signal(Header(kind=HEARTBEAT))  # confirms it: the manager waits for that before it exits
        elif kind == PLAN:
            plan = Plan.FromString(frames[0])
            if plan.build == self._hello.build:  # another needs another process
                self._listener.planned(plan)

    def _met(self, header: Header, hello: Hello) -> None:
        if why := protocol_differs(f"task {self.task}", "its stream manager", hello.protocol):
            raise OtherVersion("OTHER_VERSION", why)
        if hello.build != self._hello.build:
            return  # this process is about to be started again, or its manager about to hear of the update
        if hello.epoch == self._hello.epoch and hello.digest != self._hello.digest:
            ours, theirs = self._digests, hello.digests
            first = next((c for c in sorted({*ours, *theirs}) if ours.get(c) != theirs.get(c)), "the configuration")
            raise ProtocolError(
                "PLAN_DIFFERS",
                f"this process built another topology than was submitted; the first difference is in {first}",
                hint="building must be deterministic: no random names, no reading of the environment",
            )
        if header.receiver != self.link.me:
            self.hello()  # it has a new life, and answers with all that it has to say
            return
        former = self.link.peer
        risen = self.link.meet(header.sender) is not None
        if header.receiver != self.link.me:
            self.hello()
        if not risen:
            return
        self.channel.restart()
        self.channel.open = True
        self._consumed, self._untold = {}, {}  # others: the executor may be about to write into the former ones
        self._told_measures = _NONE_TOLD  # the new life takes 16 rows for the window
        if former:
            self._listener.reborn()
        if self._last_report is not None:
            self._send(self._last_report)
        self._release()

    # --- from the executor ------------------------------------------------------------------------------------

    def offer(self, message: OutMessage) -> None:
        """A message of the executor, in order; data waits for credit."""
        kind = message.header.kind
        if kind in DATA:
            if self.channel.offer(message, message.rows, message.size):
                self._send(message)
            return
        if kind == REPORT:
            self._last_report = message
        self.tell(message)

    def tell(self, message: OutMessage) -> None:
        """Control that is not said again to a manager in a new life."""
        if self._waiting_control or not self.link.control_room:
            self._waiting_control.append(message)
        else:
            self._send(message)

    @property
    def held_bytes(self) -> int:
        """Output that waits for credit, or for room on the control lane; 1 if only markers wait, which have no size."""
        return self.channel.held_bytes + sum(m.size for m in self._waiting_control) or int(self.held)

    @property
    def held(self) -> bool:
        """Whether the executor must take no more input."""
        return bool(self.channel.held or self._waiting_control)

    def consumed(self, header: Header, size: int) -> None:
        """The executor took a batch; what a former life of the manager sent, nobody counts any more."""
        tables, untold = self._consumed, self._untold  # before the manager is looked at, which may have a new life then
        if header.sender != self.link.peer:
            return
        consumed = tables.get(header.container)
        if consumed is None or consumed.life < header.container_life:
            consumed = tables[header.container] = Consumed(header.container_life)
        if consumed.life > header.container_life:
            return  # it has waited for its timeline, and its sender has a new life since
        consumed.rows += header.rows
        consumed.bytes += size
        untold[header.container] = consumed

    def _release(self) -> None:
        while self._waiting_control and self.link.control_room:
            self._send(self._waiting_control.pop(0))
        for message in self.channel.release():
            self._send(message)

    def _send(self, message: OutMessage) -> None:
        header = message.header
        lane = Lane.DATA if header.kind in DATA else Lane.CONTROL
        if lane is Lane.CONTROL:
            del header.credits[:]
            header.credits.extend(self._credits())
        self.link.send(lane, header, message.frames, message.size)

    # --- time -------------------------------------------------------------------------------------------------

    def tick(self, now: float, *, second: bool = False) -> float:
        """Hellos until the manager answers, credits that are due, heartbeats; returns when to call again.

        ``second``: the caller's own has come; heartbeats come with it, so that the process wakes once.
        """
        if not self.link.up:
            if now >= self._next_hello:
                self._next_hello = now + HELLO_EVERY
                self.hello()
            return self._next_hello
        self._release()
        beats = second or now >= self._next_heartbeat
        if (beats or self.credit_due) and (due := self._credits(everything=beats)):
            self.link.send(Lane.CONTROL, Header(kind=CREDITS, credits=due))
        if beats:
            self._next_heartbeat = now + HEARTBEAT_EVERY
            if self.link.needs_heartbeat():
                self.link.heartbeat()
        return self._next_heartbeat

    def hello(self) -> None:
        """Says who this is."""
        self.link.signal(Header(kind=HELLO), [self._hello.SerializeToString()])

    @property
    def credit_due(self) -> bool:
        """Whether senders should hear of a quarter of their share consumed, or of a changed window."""
        window = self.window
        if not self._consumed:
            return False
        if (window.rows, window.bytes) != self._told_measures[:2]:
            return True
        share = 4 * len(self._consumed)
        return any(
            (t.rows - t.reported_rows) * share >= window.rows or (t.bytes - t.reported_bytes) * share >= window.bytes
            for t in tuple(self._untold.values())  # the other thread may add one
        )

    def _credits(self, *, everything: bool = False) -> list[Credit]:
        """What has been consumed since the last time; ``everything``: and any change of speed."""
        measures = self._measures
        told = self._told_measures
        out: list[Credit] = []
        while self._untold:
            container, consumed = self._untold.popitem()
            if (consumed.rows, consumed.bytes) != (consumed.reported_rows, consumed.reported_bytes):
                out.append(self._credit(container, consumed, measures))
        if not out and self._consumed and (measures != told if everything else measures[:2] != told[:2]):
            container = min(self._consumed)  # any will do: the measures are the task's
            out.append(self._credit(container, self._consumed[container], measures))
        if out:
            self._told_measures = measures
        return out

    @property
    def _measures(self) -> tuple[int, int, int, int, int, int]:
        window = self.window
        return window.rows, window.bytes, window.watermark[0], window.pace, window.aside_rows, window.aside_bytes

    def _credit(self, container: int, consumed: Consumed, measures: tuple[int, int, int, int, int, int]) -> Credit:
        consumed.reported_rows, consumed.reported_bytes = consumed.rows, consumed.bytes
        window_rows, window_bytes, high_rows, pace, aside_rows, aside_bytes = measures
        return Credit(
            task=self.task,
            task_life=self.link.me,
            container=container,
            container_life=consumed.life,
            rows=consumed.reported_rows,
            bytes=consumed.reported_bytes,
            window_rows=window_rows,
            window_bytes=window_bytes,
            high_rows=high_rows,
            pace=pace,
            aside_rows=aside_rows,
            aside_bytes=aside_bytes,
        )


class SpaceSignal:
    """Lets the executor thread wait until the gateway holds less; the two threads' only shared lock."""

    def __init__(self) -> None:
        self.wanted = False  # the executor looks again when there is room
        self._changed = threading.Condition()
        self._waiting = False

    def notify(self) -> None:
        """The gateway sent something, or the process ends: whoever waits looks again."""
        if self._waiting:  # it looked before it waited, but after it said so
            with self._changed:
                self._changed.notify_all()

    def wait(self, enough: Callable[[], bool], timeout: float) -> bool:
        """Waits for ``enough``, up to ``timeout`` seconds."""
        with self._changed:
            self._waiting = True
            try:
                return self._changed.wait_for(enough, timeout)
            finally:
                self._waiting = False

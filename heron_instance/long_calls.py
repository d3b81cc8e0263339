"""Rows leave while the call of user code that emitted them goes on: a second thread sends them.

The executor thread holds the lock of its task's state at all times but those that it spends in user code.  Only the
plainest emit does without the lock: it appends to lists, from which the sender therefore takes nothing.  The sender
notes how many rows have left, and the executor removes these when the call returns.

The sender sleeps until a call is long.  The gateway finds out: it wakes for each message anyway, and for a look where
none comes.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Protocol

from ardea.errors import UserError, printable
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.flushing import Flushing

EVERY = 0.025
"""Seconds between two looks: each takes the interpreter from the executor for a moment, and costs a busy one more."""


class Bell(Protocol):
    """Whoever looks at long calls."""

    next_look: float

    def ring(self) -> None:
        """Asks for a look in time: a call of user code begins."""


class Unattended:
    """Nobody looks by itself: a simulated cluster, and tests, call :meth:`UserCode.look`."""

    next_look = -math.inf

    def ring(self) -> None:
        """Does nothing."""


class Interruptible(Protocol):
    """Rows that may leave in the middle of a call."""

    def send_inside(self) -> bool:
        """Sends what the present call has emitted so far; False: nothing."""

    def absorb(self) -> None:
        """What has left in the middle of a call waits no more."""


class UserCode:
    """``with`` it, the executor thread is in user code, and gives the task's state away.

    It is made on that thread.  ``hurry`` ends the turn with the present call.
    """

    rows: Interruptible
    hurry: Callable[[], None]

    def __init__(self, env: Environment) -> None:
        self._env = env
        self.clock = env.clock
        self.slice = env.settings.slice_ms / 1000
        self.flushing = Flushing(env.settings.drain_frequency_ms / 1000)
        self.thread = threading.get_ident()
        self.lock = threading.RLock()
        self.lock.acquire()
        self.since = math.inf  # when the present call of user code began
        self._outer: list[float] = []
        self.calls = 0
        self._hurried = -math.inf  # the turn that began then ends with its present call
        self.bell: Bell = Unattended()
        self.turns = 0  # grows with each return from user code, and while a long call emits

    def __enter__(self) -> None:
        self._outer.append(self.since)
        self.since = since = self.clock()
        self.calls += 1
        self.lock.release()
        if self.bell.next_look > since + EVERY:
            self.bell.ring()

    def __exit__(self, *_: object) -> None:
        self.lock.acquire()
        self.since = self._outer.pop()
        self.rows.absorb()

    def check_thread(self) -> None:
        """Raises UserError on any thread but the executor's."""
        if threading.get_ident() != self.thread:
            raise UserError(
                f"{self._env.task.name}: emit, ack and fail belong to the executor thread",
                hint="hand the work over with context.submit(fn)",
            )

    def look(self, now: float) -> float:
        """Ends the turn that takes longer than a slice, then sends what waits; returns when to look again.

        From another thread than the executor's; infinity: no call is long.  Nothing is sent at the first look: calls
        that are short return by then, and the executor sends more at once.
        """
        if now < self.since + self.slice:
            return math.inf
        if self.lock.acquire(blocking=False):
            try:
                if self._hurried == self.since:
                    self._send_late(now)
                elif now >= self.since + self.slice:  # still
                    self._hurried = self.since
                    self.hurry()
                    return now + self.slice
            finally:
                self.lock.release()
        return now + EVERY

    def _send_late(self, now: float) -> None:
        if now < self.flushing.due(now, idle=True):
            return
        try:
            began = self.clock()
            if self.rows.send_inside():
                self.flushing.flushed(began, self.clock())
                self.turns += 1
        except BaseException as error:  # a grouping or a value of the author's raised, or wants to exit
            self.since = math.inf  # the executor meets it too, when the call returns or emits more
            what = f"{type(error).__name__}: {printable(error)}"
            self._env.component.logger.warning(
                "%s: rows cannot be sent while a call of user code goes on (%s); they wait until it returns",
                self._env.task.name,
                what,
            )


class Sender:
    """The thread that looks at a long call until it returns."""

    def __init__(self, look: Callable[[float], float], clock: Callable[[], float], name: str) -> None:
        self._look, self._clock = look, clock
        self._asked, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sender {name}", daemon=True)

    def start(self) -> None:
        """Once."""
        self._thread.start()

    def ask(self) -> None:
        """From any thread: a call is long."""
        if not self._asked.is_set():
            self._asked.set()

    def stop(self, within: float) -> None:
        """The process ends."""
        self._over.set()
        self._asked.set()
        self._thread.join(within)

    def _run(self) -> None:
        while self._asked.wait() and not self._over.is_set():
            self._asked.clear()
            while (at := self._look(self._clock())) < math.inf:
                if self._over.wait(max(0.0, at - self._clock())):
                    return


class Lookout:
    """The gateway's part: whether a call is long, seen whenever it wakes, for messages most of the time."""

    def __init__(self, user_code: UserCode, sender: Sender, wake: Callable[[], None]) -> None:
        self.next_look = math.inf
        self.rung = False  # the gateway must not sleep before it has looked
        self._user_code, self._sender, self._wake = user_code, sender, wake
        self._calls = 0

    def ring(self) -> None:
        """From the executor thread: a call begins, and the gateway would not look at it in time."""
        self.rung = True
        self._wake()

    def look(self, now: float, *, begins: bool) -> float:
        """Asks the sender where a call is long; returns when to look again.

        ``begins``: the executor has something to do, and need not ring for the call in which it does so.
        """
        there = self._user_code
        self.rung = False
        self.next_look = math.inf  # ahead of what follows: a call that it misses rings
        calls, self._calls = self._calls, there.calls
        if now >= there.since + there.slice:
            self._sender.ask()
        elif begins or there.since < math.inf or there.calls != calls:
            self.next_look = now + EVERY  # a busy executor is between two calls now and then: it need not ring for that
        return self.next_look

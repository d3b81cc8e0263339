"""The thread of an instance's executor, and the one beside it that sends in the middle of long calls."""

from __future__ import annotations

import gc
import logging
import math
import os
import threading
import traceback
from collections.abc import Callable

from ardea import parent_link
from ardea.errors import ArdeaError, printable
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.long_calls import Lookout, Sender
from ardea.heron_instance.shell import Shell
from ardea.loader import place_of
from ardea.protocol.wire_pb2 import Plan

CLOSE_WITHIN = 5.0
COLLECT_AFTER = 20_000, 20, 20


class ExecutorThread:
    """Of one process.  ``failure`` is what the executor ended with; ``wake`` is the gateway's."""

    def __init__(self, shell: Shell, name: str, wake: Callable[[], None]) -> None:
        self._shell = shell
        self._name = name
        self._wake = wake
        self._thread: threading.Thread | None = None
        self._sender: Sender | None = None
        self._lookout: Lookout | None = None
        self._turns = -1
        self.failure: BaseException | None = None

    def start(self, make: Callable[[], Executor], message: Plan) -> None:
        """Once; the executor is made on its thread."""
        self._thread = threading.Thread(
            target=self._run, args=(make, message), name=f"executor {self._name}", daemon=True
        )
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has ended by itself."""
        return self._thread is not None and not self._thread.is_alive()

    def end(self) -> None:
        """The process ends."""
        executor, thread = self._shell.executor, self._thread
        if executor is not None and thread is not None:
            self._shell.inbox.put(lambda: setattr(executor, "finished", True))
            thread.join(CLOSE_WITHIN)
        if self._sender is not None:
            self._sender.stop(CLOSE_WITHIN)

    def beat(self) -> None:
        """Tells the supervisor whether the executor gets on."""
        executor = self._shell.executor
        if executor is None:
            parent_link.beat(in_user_code=self._thread is not None, same_call=True)  # the author's object is made
            return
        turns = executor.user_code.turns
        former, self._turns = self._turns, turns
        parent_link.beat(executor.in_user_code, same_call=turns == former)

    # --- long calls -------------------------------------------------------------------------------------------

    @property
    def rung(self) -> bool:
        """Whether a call begins that the gateway must look at in time."""
        return self._lookout is not None and self._lookout.rung

    def look(self, now: float) -> float:
        """The gateway's look; returns when to look again."""
        if self._lookout is None:
            return math.inf
        return self._lookout.look(now, begins=not self._shell.inbox.empty)

    def _attend(self, executor: Executor) -> None:
        """Long calls of this one are looked at from now on."""
        if self._sender is not None:
            self._sender.stop(CLOSE_WITHIN)
        user_code = executor.user_code
        self._sender = Sender(user_code.look, user_code.clock, self._name)
        user_code.bell = self._lookout = Lookout(user_code, self._sender, self._wake)
        self._sender.start()

    # --- on the thread ----------------------------------------------------------------------------------------

    def _run(self, make: Callable[[], Executor], message: Plan) -> None:
        try:
            # Rows by the thousand come and go: the default thresholds would look through them for cycles all the time.
            gc.freeze()
            gc.set_threshold(*COLLECT_AFTER)
            executor = self._shell.executor = make()
            self._attend(executor)
            self._shell.begin(message)
            executor.run()
            while executor.rolled_back:
                executor = self._shell.executor = Executor.after(executor, self._shell.renewed(executor.env))
                self._attend(executor)
                executor.run()
        except BaseException as error:
            self.failure = error
            text = printable("".join(traceback.format_exception(error)).rstrip(), most=20_000)
            logging.getLogger(self._shell.component.name).error("%s ends: %s", self._name, text)
            self._shell.instruments.exception(error)
            parent_link.report(_one_line(self._name, error))
            self._shell.failed(error)
        finally:
            self._wake()


def _one_line(name: str, error: BaseException) -> str:
    place = place_of(error)
    where = f" at {place}" if place else ""
    text = printable(error).strip().splitlines()
    kind = "" if isinstance(error, ArdeaError) else f"{type(error).__name__}: "  # ours are written to be read alone
    return f"{name}: {kind}{text[0] if text else ''}{where} (pid {os.getpid()})"

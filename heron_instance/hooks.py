"""Task hooks: calls that go past them, one tuple at a time; nothing of this runs for a component without hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ardea.context import (
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    SpoutAckInfo,
    SpoutFailInfo,
    TaskHook,
)
from ardea.tuples import Tuple


class Hooks:
    """The hooks of one task, in the order they were added."""

    def __init__(self, hooks: Sequence[TaskHook], task: int, clock: Callable[[], float]) -> None:
        self._hooks = hooks
        self._task = task
        self._clock = clock

    def emitted(self, values: Sequence[Any], stream: str, tasks: Sequence[int]) -> None:
        """A spout or a bolt emitted a row, and these tasks get it."""
        info = EmitInfo(values, stream, self._task, list(tasks))
        for hook in self._hooks:
            hook.emit(info)

    def process(self, process: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        """A ``process`` that is timed, one tuple at a time."""

        def hooked(tup: Tuple) -> None:
            began = self._clock()
            process(tup)
            info = BoltExecuteInfo(tup, self._task, (self._clock() - began) * 1000)
            for hook in self._hooks:
                hook.bolt_execute(info)

        return hooked

    def process_batch(self, process_batch: Callable[[Sequence[Tuple]], None]) -> Callable[[Sequence[Tuple]], None]:
        """A ``process_batch`` that is timed; each tuple took its share."""

        def hooked(rows: Sequence[Tuple]) -> None:
            began = self._clock()
            process_batch(rows)
            share = (self._clock() - began) * 1000 / len(rows)
            for tup in rows:
                info = BoltExecuteInfo(tup, self._task, share)
                for hook in self._hooks:
                    hook.bolt_execute(info)

        return hooked

    def acked(self, tup: Tuple, arrived: float) -> None:
        """A bolt acked."""
        info = BoltAckInfo(tup, self._task, (self._clock() - arrived) * 1000)
        for hook in self._hooks:
            hook.bolt_ack(info)

    def failed(self, tup: Tuple, arrived: float) -> None:
        """A bolt failed a tuple."""
        info = BoltFailInfo(tup, self._task, (self._clock() - arrived) * 1000)
        for hook in self._hooks:
            hook.bolt_fail(info)

    def completed(self, tup_id: Any, seconds: float) -> None:
        """A spout's tree is complete."""
        info = SpoutAckInfo(tup_id, self._task, seconds * 1000)
        for hook in self._hooks:
            hook.spout_ack(info)

    def broken(self, tup_id: Any, seconds: float) -> None:
        """A spout's tree failed, timed out or was lost."""
        info = SpoutFailInfo(tup_id, self._task, seconds * 1000)
        for hook in self._hooks:
            hook.spout_fail(info)

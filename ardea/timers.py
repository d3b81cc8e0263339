"""Timers that a bolt sets for its keys: see docs/state-of-components.md."""

from __future__ import annotations

from typing import Literal

from ardea.keyed import State, checked_time


class Timers(State):
    """Calls of ``on_timer(name, key, at)`` at a time: ``self.timers.set(user, context.now() + 60)``.

    A timer belongs to its key, as keyed state does, and moves with it.
    """

    in_place = "self.{}.set(...), self.{}.cancel(...)"

    def __init__(self, *, time: Literal["processing", "event"] = "processing") -> None:
        """``time``: by which clock; ``processing``: the machine's; ``event``: the task's watermark (docs/time.md).

        Raises:
            UserError: there is no such clock.
        """
        super().__init__(None)
        self.time = checked_time(self, time)

    def attach(self, component: object, table: object) -> None:
        """Gives the component its timers."""
        self._give(component, table)

"""What a master writes down: its own view of the state manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ardea.plan.definition import Definition
from ardea.state.records import ExecutionState


class Store(Protocol):
    """The master's writes; each is one transaction under its term, and raises Fenced when that is over."""

    def holders(self) -> Mapping[int, str]:
        """Who was admitted last, by container."""

    def admit(self, container: int, holder: str, host: str, port: int, remembered: int, least: int) -> int:
        """The admission of that holder: its own, or a higher one.

        ``remembered`` is the highest that anybody has heard of, which the state may have lost; then it is ``least``.
        """

    def execution(self, execution: ExecutionState) -> None:
        """The topology's state."""

    def switch(self, wanted: Definition, former: Definition | None, execution: ExecutionState) -> None:
        """The plan, which is of the next epoch, what to go back to, and the state, all at once."""

    def settled(self, execution: ExecutionState) -> None:
        """The state; there is nothing to go back to any more."""

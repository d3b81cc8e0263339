"""Who keeps each simulated container: one supervisor after another, and until when it stands still."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

REMOVED = 20.0
"""Seconds after which its machine removes a container that has been replaced, as kubelet does when it is back."""


@dataclass(slots=True)
class Supervisors:
    """Of all containers, by number; 0 is the master's.

    ``folders``: what a stream manager has left in its container's folder, by the supervisor.
    """

    folders: dict[str, bytes] = field(default_factory=dict)
    _replaced: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    _frozen: dict[int, float] = field(default_factory=dict)

    def replaced(self, container: int) -> int:
        """How many supervisors the container had before the present one."""
        return self._replaced[container]

    def holder(self, container: int) -> str:
        """The present one."""
        return f"supervisor-{self.replaced(container) + 1}-of-container-{container}"

    def replace(self, container: int) -> None:
        """Another one comes."""
        self._replaced[container] += 1
        self._frozen.pop(container, None)

    def freeze(self, container: int, until: float) -> None:
        """It stands still until then: what dies in the container is not started again before."""
        self._frozen[container] = max(until, self.frozen(container))

    def frozen(self, container: int) -> float:
        """Until when; 0 if it never was."""
        return self._frozen.get(container, 0.0)

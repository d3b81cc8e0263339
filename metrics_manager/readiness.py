"""Whether a container's pod is ready: what ``/readyz`` says (docs/health.md)."""

from __future__ import annotations

from collections.abc import Callable

from ardea.health import cut_off
from ardea.health.processes import trouble
from ardea.metrics_manager.supervised import Supervised


class Readiness:
    """False while a process of the container dies again and again, and while a master is cut off from its state."""

    def __init__(self, supervised: Supervised, silence: Callable[[], float] | None) -> None:
        """``silence``: seconds since the state manager has answered; None: this container does without."""
        self._supervised, self._silence = supervised, silence

    def why_not(self) -> list[str]:
        """A line for each reason; none: it is ready.  From any thread."""
        found = [each for row in self._supervised.rows() if (each := trouble(row)) is not None and each.crashing]
        said = [f"{each.who} {each.why}" for each in found]
        if self._silence is not None and (why := cut_off(self._silence())):
            said.append(why)
        return said

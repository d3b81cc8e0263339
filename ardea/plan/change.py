"""A change of a topology that runs: what is asked of its master, and how far that is (docs/updating.md)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ardea.plan.definition import Definition

STEPS = ("draining", "switching", "putting back", "done", "refused")


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """What a caller wants: ``wanted`` was made from the plan of epoch ``base``.

    ``id`` is the caller's own; ``patience`` the seconds that the new processes have to come up.
    """

    id: str
    wanted: Definition
    base: int
    patience: float


class UpdateProgress(msgspec.Struct, frozen=True):
    """How far an update is: ``step`` is one of STEPS, ``late`` for whom it waits, ``reason`` why it was refused."""

    id: str
    step: str
    late: tuple[str, ...] = ()
    reason: str = ""

    @property
    def running(self) -> bool:
        """Whether it is under way."""
        return self.step in STEPS[:3]

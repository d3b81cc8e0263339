"""A topology of the test kit that is given more time on a slow machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ardea.scheduler.run import Outcome
from ardea.testing.kit import LocalTopology
from tests.machine import patient

T = TypeVar("T")


class PatientTopology(LocalTopology):
    """All its waits are ``patient``."""

    def until(self, condition: Callable[[], T | None], what: str, seconds: float = 60.0) -> T:
        return super().until(condition, what, patient(seconds))

    def finish(self, seconds: float = 120.0) -> Outcome:
        return super().finish(patient(seconds))

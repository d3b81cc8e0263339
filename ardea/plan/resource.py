"""What one task, or one container, needs."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """``cpu`` in cores, ``ram`` and ``disk`` in bytes.  Defaults: 1 core, 512 MiB, 1 GiB."""

    cpu: float = 1.0
    ram: int = 512 * MIB
    disk: int = GIB

    def __add__(self, other: Resource) -> Resource:
        return Resource(self.cpu + other.cpu, self.ram + other.ram, self.disk + other.disk)

    @property
    def cores(self) -> int:
        """How many cores it may keep busy, at least one."""
        return max(1, math.ceil(self.cpu))

    def fits(self, other: Resource) -> bool:
        """Whether ``other`` is no larger than this in any dimension."""
        return other.cpu <= self.cpu + 1e-9 and other.ram <= self.ram and other.disk <= self.disk


NOTHING = Resource(0.0, 0, 0)


def total(resources: Iterable[Resource]) -> Resource:
    """The sum; ``NOTHING`` for none."""
    return functools.reduce(Resource.__add__, resources, NOTHING)

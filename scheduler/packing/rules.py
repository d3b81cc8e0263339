"""The rules for one container that follow from the configuration."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Self

from ardea.config import Settings
from ardea.plan import Resource
from ardea.plan.resource import MIB
from ardea.scheduler.packing.amounts import format_bytes, format_cpu
from ardea.scheduler.packing.executors import Executor

MIN_INSTANCE_RAM = 64 * MIB
"""A Python process with an empty topology in it needs nearly as much; less is a mistake of units."""

UNBOUNDED = sys.maxsize
NO_CEILING = Resource(math.inf, UNBOUNDED, UNBOUNDED)


@dataclass(frozen=True, slots=True)
class Rules:
    """What one container may hold: instances, and in all (managers included) no more than ``ceiling``.

    Its managers take ``managers`` or, where that is more, ``share`` of what the instances need; the
    managers' own memory, ``managers_ram``, comes on top.
    """

    max_instances: int
    ceiling: Resource
    managers: Resource
    managers_ram: int
    share: float

    @classmethod
    def of(cls, settings: Settings, max_instances: int = UNBOUNDED, ceiling: Resource = NO_CEILING) -> Self:
        """The limits that are set, and an algorithm's own for those that are not."""
        return cls(
            max_instances if settings.max_instances is None else settings.max_instances,
            Resource(
                ceiling.cpu if settings.max_cpu is None else settings.max_cpu,
                ceiling.ram if settings.max_ram is None else settings.max_ram,
                ceiling.disk if settings.max_disk is None else settings.max_disk,
            ),
            Resource(settings.cpu_padding, settings.ram_padding, settings.disk_padding),
            settings.stmgr_ram + settings.metricsmgr_ram,
            settings.padding_percentage / 100,
        )

    def overhead(self, used: Resource) -> Resource:
        """What the managers of a container take whose instances need ``used``."""
        return Resource(
            max(self.managers.cpu, used.cpu * self.share),
            self.managers_ram + max(self.managers.ram, math.ceil(used.ram * self.share)),
            max(self.managers.disk, math.ceil(used.disk * self.share)),
        )

    def allow(self, instances: int, used: Resource) -> bool:
        """Whether so many instances that need ``used`` together may share a container."""
        return instances <= self.max_instances and self.ceiling.fits(used + self.overhead(used))

    def refusal(self, executor: Executor) -> str | None:
        """Why not even an empty container takes ``executor``: its tasks and the limit; None if one does."""
        tasks, used = len(executor.tasks), executor.need
        if self.allow(tasks, used):
            return None
        whole, most = used + self.overhead(used), self.ceiling
        together = f"its {tasks} tasks must stay together"
        needs = f"{together} and need" if tasks > 1 else "its task needs"
        if tasks > self.max_instances:
            reason = f"{together}; a container holds at most {self.max_instances} (topology.container.max.instances)"
        elif whole.ram > most.ram:
            reason = _exceeds(needs, "RAM", format_bytes(whole.ram), format_bytes(most.ram))
        elif whole.disk > most.disk:
            reason = _exceeds(needs, "disk", format_bytes(whole.disk), format_bytes(most.disk))
        else:
            reason = _exceeds(needs, "CPU", format_cpu(whole.cpu), format_cpu(most.cpu))
        return f"executor {executor.name} fits into no container: {reason}"


def _exceeds(needs: str, what: str, amount: str, limit: str) -> str:
    key = f"topology.container.max.{what.lower()}.hint"
    return f"{needs} {amount} of {what} with the container's managers; a container has at most {limit} ({key})"

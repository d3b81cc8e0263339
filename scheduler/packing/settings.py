"""The configuration keys that packing reads, and the rules for one container that follow from them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ardea.errors import ConfigError
from ardea.plan import Resource
from ardea.plan.resource import GIB, MIB
from scheduler.packing.amounts import format_bytes, format_cpu
from scheduler.packing.executors import Executor

MIN_INSTANCE_RAM = 64 * MIB
"""A Python process with an empty topology in it needs nearly as much; less is a mistake of units."""

UNBOUNDED = sys.maxsize
NO_CEILING = Resource(math.inf, UNBOUNDED, UNBOUNDED)
_FIRST_PORT = 6700

Count = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=0)]
Cores = Annotated[float, Meta(ge=0)]
Percentage = Annotated[float, Meta(ge=0)]


def _key(name: str, default: Any = None) -> Any:
    return msgspec.field(name=name, default=default)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes and cores.  What is None was not set."""

    algorithm: str = _key("heron.class.packing.algorithm", "RoundRobin")
    stmgrs: Count | None = _key("topology.stmgrs")
    workers: Count | None = _key("topology.workers")
    stmgr_ram: Bytes = _key("topology.stmgr.ram", 256 * MIB)
    metricsmgr_ram: Bytes = _key("topology.metricsmgr.ram", 128 * MIB)
    cpu_padding: Cores = _key("topology.container.cpu.padding", 1.0)
    ram_padding: Bytes = _key("topology.container.ram.padding", 0)
    disk_padding: Bytes = _key("topology.container.disk.padding", GIB)
    padding_percentage: Percentage = _key("topology.container.padding.percentage", 0.0)
    max_instances: Count | None = _key("topology.container.max.instances")
    max_cpu: Cores | None = _key("topology.container.max.cpu.hint")
    max_ram: Bytes | None = _key("topology.container.max.ram.hint")
    max_disk: Bytes | None = _key("topology.container.max.disk.hint")
    ffd_sorting: Literal["RAM_FIRST", "CPU_FIRST"] = _key("topology.packing.ffd.sorting.strategy", "RAM_FIRST")
    slots: Count | tuple[int, ...] = _key("supervisor.slots.ports", 4)

    @property
    def containers(self) -> int:
        """``topology.stmgrs``, or its alias ``topology.workers``; 1 if neither is set."""
        return self.stmgrs or self.workers or 1

    @property
    def ports(self) -> tuple[int, ...]:
        """The slots of one node.  A port is a slot's name; nothing listens there."""
        return tuple(range(_FIRST_PORT, _FIRST_PORT + self.slots)) if isinstance(self.slots, int) else self.slots

    def overhead(self, used: Resource) -> Resource:
        """What the managers of a container take whose instances need ``used``."""
        share = self.padding_percentage / 100
        return Resource(
            max(self.cpu_padding, used.cpu * share),
            self.stmgr_ram + self.metricsmgr_ram + max(self.ram_padding, math.ceil(used.ram * share)),
            max(self.disk_padding, math.ceil(used.disk * share)),
        )

    def rules(self, max_instances: int = UNBOUNDED, ceiling: Resource = NO_CEILING) -> Rules:
        """The limits that are set, and an algorithm's own for those that are not."""
        return Rules(
            max_instances if self.max_instances is None else self.max_instances,
            Resource(
                ceiling.cpu if self.max_cpu is None else self.max_cpu,
                ceiling.ram if self.max_ram is None else self.max_ram,
                ceiling.disk if self.max_disk is None else self.max_disk,
            ),
            self,
        )


_KEYS = frozenset(field.encode_name for field in msgspec.structs.fields(Settings))


def read_settings(config: Mapping[str, Any]) -> Settings:
    """What ``config`` says of packing; ConfigError for a wrong type, or two answers to one question."""
    chosen = {key: value for key, value in config.items() if key in _KEYS and value is not None}
    try:
        settings = msgspec.convert(chosen, Settings)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"packing cannot use the configuration: {error}",
            hint="Give bytes and counts as whole numbers, cores and percentages as numbers.",
        ) from error
    if settings.stmgrs and settings.workers and settings.stmgrs != settings.workers:
        raise ConfigError(
            f"topology.stmgrs = {settings.stmgrs} and topology.workers = {settings.workers} contradict each other: "
            "both are the number of containers",
            hint="Set one of them.",
        )
    return settings


@dataclass(frozen=True, slots=True)
class Rules:
    """What one container may hold: instances, and in all (managers included) no more than ``ceiling``."""

    max_instances: int
    ceiling: Resource
    settings: Settings

    def allow(self, instances: int, used: Resource) -> bool:
        """Whether so many instances that need ``used`` together may share a container."""
        return instances <= self.max_instances and self.ceiling.fits(used + self.settings.overhead(used))

    def refusal(self, executor: Executor) -> str | None:
        """Why not even an empty container takes ``executor``: its tasks and the limit; None if one does."""
        tasks, used = len(executor.tasks), executor.need
        if self.allow(tasks, used):
            return None
        whole = used + self.settings.overhead(used)
        if tasks > self.max_instances:
            limit = f"and a container holds at most {self.max_instances} (topology.container.max.instances)"
        elif whole.ram > self.ceiling.ram:
            limit = (
                f"need {format_bytes(whole.ram)} of RAM there with the managers, "
                f"and a container has at most {format_bytes(self.ceiling.ram)} (topology.container.max.ram.hint)"
            )
        elif whole.disk > self.ceiling.disk:
            limit = (
                f"need {format_bytes(whole.disk)} of disk there with the managers, "
                f"and a container has at most {format_bytes(self.ceiling.disk)} (topology.container.max.disk.hint)"
            )
        else:
            limit = (
                f"need {format_cpu(whole.cpu)} cores there with the managers, "
                f"and a container has at most {format_cpu(self.ceiling.cpu)} (topology.container.max.cpu.hint)"
            )
        return f"executor {executor.name} fits into no container: its {tasks} tasks must stay together, {limit}"

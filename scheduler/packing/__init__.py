"""Packing: which task goes into which container, and what each container asks for (docs/packing.md)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Protocol

from ardea.config import Settings
from ardea.errors import ConfigError
from ardea.plan import LogicalPlan, PackingPlan
from ardea.scheduler.packing.even import EvenPacking
from ardea.scheduler.packing.first_fit_decreasing import FirstFitDecreasingPacking
from ardea.scheduler.packing.resource_compliant import ResourceCompliantPacking
from ardea.scheduler.packing.round_robin import RoundRobinPacking

__all__ = [
    "ENTRY_POINTS",
    "EvenPacking",
    "FirstFitDecreasingPacking",
    "Packing",
    "ResourceCompliantPacking",
    "RoundRobinPacking",
    "packing_for",
]

ENTRY_POINTS = "ardea.packing"


class Packing(Protocol):
    """A packing algorithm: pure and deterministic, so that a dry run shows what a submit does."""

    name: str

    def pack(self, plan: LogicalPlan) -> PackingPlan:
        """The first plan of a topology; TopologyError if its limits leave no way."""
        ...

    def repack(self, current: PackingPlan, plan: LogicalPlan, *, highest: int = 0) -> PackingPlan:
        """The plan after a change.  ``highest`` is the highest task id the topology has ever used."""
        ...


_BUILT_IN: Mapping[str, type[Packing]] = {
    algorithm.name: algorithm
    for algorithm in (RoundRobinPacking, ResourceCompliantPacking, FirstFitDecreasingPacking, EvenPacking)
}


def packing_for(config: Mapping[str, Any]) -> Packing:
    """The algorithm that ``heron.class.packing.algorithm`` of a validated configuration names.

    Takes the name (``RoundRobin``, the default), Heron's class name, with its package or without, or the
    name of an entry point of the group ``ardea.packing``.

    Raises:
        ConfigError: Nobody provides an algorithm of that name.
    """
    wanted = Settings.of(config).packing
    name = wanted.rpartition(".")[2].removesuffix("Packing")
    if name in _BUILT_IN:
        return _BUILT_IN[name]()
    installed = entry_points(group=ENTRY_POINTS)
    if wanted in installed.names:
        algorithm: type[Packing] = installed[wanted].load()
        return algorithm()
    known = [*_BUILT_IN, *sorted(installed.names)]
    near = difflib.get_close_matches(name, known, n=1)
    raise ConfigError(
        f"heron.class.packing.algorithm: there is no packing algorithm {wanted!r}; known are {', '.join(known)}",
        hint=f"Did you mean {near[0]!r}?" if near else "Choose one of those.",
    )

"""The stored form of a packing plan: JSON, so that a person can read what the state manager holds."""

from __future__ import annotations

import zlib

import msgspec

from ardea.errors import StateError
from ardea.plan.logical import LogicalPlan
from ardea.plan.packing import PackingPlan
from ardea.plan.physical import PhysicalPlan

_DECODER = msgspec.json.Decoder(PackingPlan)
_MOST = 1 << 16
"""More than the number of any task or container."""
_LARGEST = 64 << 20
"""Bytes; a plan of so many tasks has an eighth of it."""


def packing_to_bytes(plan: PackingPlan) -> bytes:
    """The same bytes for equal plans."""
    return msgspec.json.encode(plan)


def packing_from_bytes(data: bytes) -> PackingPlan:
    """The plan that :func:`packing_to_bytes` wrote; StateError if ``data`` is something else."""
    try:
        return _DECODER.decode(data)
    except (ValueError, RecursionError) as error:
        raise StateError(
            f"the stored packing plan cannot be read: {error}",
            hint="It was damaged or written by another version; kill the topology and submit it again.",
        ) from error


def packing_to_message(stored: bytes) -> bytes:
    """A stored packing plan as it travels: compressed."""
    return zlib.compress(stored)


def packing_from_message(data: bytes) -> PackingPlan:
    """The plan that a master has sent; StateError if ``data`` is something else."""
    inflater = zlib.decompressobj()
    try:
        stored = inflater.decompress(data, _LARGEST)
    except zlib.error as error:
        raise StateError(f"a packing plan that was sent cannot be read: {error}") from error
    if not inflater.eof:
        raise StateError(f"a packing plan that was sent is cut off, or has more than {_LARGEST:,} bytes")
    return packing_from_bytes(stored)


def plan_from_message(logical: LogicalPlan, packing: bytes, epoch: int) -> PhysicalPlan:
    """The plan of a topology as its master sends it; ``logical`` may have other numbers of tasks.

    Raises:
        StateError: it is not a plan of this topology.
    """
    packed = packing_from_message(packing)
    known = {component.name for component in logical}
    read = {entry.component for component in logical for entry in component.inputs}
    numbers = [number for c in packed.containers for number in (c.number, *(task.task for task in c.instances))]
    if packed.parallelism.keys() != known or not read <= known or not all(0 < n < _MOST for n in numbers):
        raise StateError("the packing plan names components, tasks or containers that the topology cannot have")
    return PhysicalPlan.of(logical, packed, epoch)

"""The stored form of a packing plan: JSON, so that a person can read what the state manager holds."""

from __future__ import annotations

import msgspec

from ardea.errors import StateError
from ardea.plan.packing import PackingPlan

_DECODER = msgspec.json.Decoder(PackingPlan)


def packing_to_bytes(plan: PackingPlan) -> bytes:
    """The same bytes for equal plans."""
    return msgspec.json.encode(plan)


def packing_from_bytes(data: bytes) -> PackingPlan:
    """The plan that :func:`packing_to_bytes` wrote; StateError if ``data`` is something else."""
    try:
        return _DECODER.decode(data)
    except ValueError as error:
        raise StateError(
            f"the stored packing plan cannot be read: {error}",
            hint="It was damaged or written by another version; kill the topology and submit it again.",
        ) from error

"""What every process of a container is started with: one file beside its logs, read before anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ardea.errors import StateError
from ardea.plan.shape import Shape


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A submitted topology: where its code is, what the submitter overrode, its shape, and its packing plan.

    ``state`` is the state manager's address; ``location`` the topology's file (``FILE`` or ``FILE:Class``).
    """

    topology: str
    state: str
    location: str
    config: dict[str, Any]
    shape: Shape
    packing: bytes
    active: bool = True

    def write(self, path: Path) -> None:
        """Replaces the file at once."""
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.msgpack.encode(self))
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> Definition:
        """Raises StateError if the file is missing or damaged."""
        try:
            return msgspec.msgpack.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError) as error:
            raise StateError(
                f"the definition {path} cannot be read: {error}; this process ends", hint="submit the topology again"
            ) from error

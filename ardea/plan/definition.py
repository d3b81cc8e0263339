"""What every process of a container is started with: one file beside its logs, read before anything else.

In the state the same bytes, compressed, are the routing content.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, Self

import msgspec

from ardea.errors import OtherVersion, StateError
from ardea.plan.logical import LogicalPlan
from ardea.plan.shape import Shape
from ardea.versions import UNNUMBERED, format_differs

STATE_ACCESS = "topology.state.access"
AGAIN = "use the version that submitted it, or kill it and submit it again"
_CANONICAL = msgspec.msgpack.Encoder(order="deterministic")


def canonical(value: Any) -> bytes:
    """Equal for equal values, wherever they come from: a NaN does not equal itself."""
    return _CANONICAL.encode(value)


class _Head(msgspec.Struct, frozen=True):
    """What the definitions of all formats have."""

    topology: str
    format: int = UNNUMBERED


class Begins(msgspec.Struct, frozen=True):
    """The savepoint from which a topology begins: where it lies, as its master reaches it.

    ``drop_state``: also if it holds state that the topology does not have any more.
    """

    folder: str
    drop_state: bool = False


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A submitted topology: where its code is, what the submitter overrode, its shape, and its packing plan.

    ``state`` is the state manager's address; ``location`` the topology's file (``FILE`` or ``FILE:Class``).  An
    update makes another one (docs/updating.md): ``epoch`` counts them, ``build`` is the epoch that brought the present
    code and configuration, ``parallelism`` the tasks of rescaled components, ``highest`` the highest task id ever used.
    ``keys`` are the public keys of those who may connect, by name (docs/security.md); without any, everybody may.
    ``code`` names the version of the code, where a scheduler keeps versions; ``whole``: it replaces containers as a
    whole, so that all tasks start again of one that is given other tasks.  ``begins``: None, without state.  ``format``
    is that of :mod:`ardea.versions`.
    """

    topology: str
    state: str
    location: str
    config: dict[str, Any]
    shape: Shape
    packing: bytes
    active: bool = True
    epoch: int = 1
    build: int = 1
    parallelism: dict[str, int] = {}
    highest: int = 0
    keys: dict[str, str] = {}
    code: str = ""
    whole: bool = False
    begins: Begins | None = None
    format: int = UNNUMBERED

    @property
    def state_users(self) -> frozenset[str]:
        """The components that keep something in the state manager themselves."""
        common = self.shape.config.get(STATE_ACCESS, False)
        return frozenset(c.name for c in self.shape.components if c.config.get(STATE_ACCESS, common))

    def same_as(self, other: Definition) -> bool:
        """Whether both are one plan, whatever their epochs."""
        return canonical(msgspec.structs.replace(self, epoch=other.epoch, highest=other.highest)) == canonical(other)

    def rescaled(self, plan: LogicalPlan) -> LogicalPlan:
        """What the topology's file builds, with the tasks that updates have given its components."""
        return plan.scaled({name: (tasks, tasks) for name, tasks in self.parallelism.items()})

    def write(self, path: Path) -> None:
        """Replaces the file at once."""
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.msgpack.encode(self))
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises StateError if the file is missing or damaged, OtherVersion if it cannot be read by this version."""
        try:
            return cls._decoded(path.read_bytes())
        except (OSError, ValueError) as error:
            raise StateError(
                f"the definition {path} cannot be read: {error}", hint="submit the topology again"
            ) from error

    @classmethod
    def to_run(cls, path: Path) -> Self:
        """As :meth:`read`, for a process of the topology; OtherVersion if another version has submitted it."""
        return cls.read(path).checked()

    def checked(self) -> Self:
        """Itself; OtherVersion if processes of this version cannot run it."""
        if why := format_differs(self.topology, self.format):
            raise OtherVersion("OTHER_VERSION", f"{why}: its processes cannot run; {AGAIN}")
        return self

    def packed(self) -> bytes:
        """Compressed, for a node of the state or a message."""
        return zlib.compress(msgspec.msgpack.encode(self))

    @classmethod
    def unpacked(cls, data: bytes, where: str) -> Self:
        """The inverse of :meth:`packed`; as :meth:`read` if ``data``, which came from ``where``, is something else."""
        try:
            return cls._decoded(zlib.decompress(data))
        except (zlib.error, ValueError) as error:
            raise StateError(
                f"{where} does not hold the definition of a topology: {error}; it is left as it is",
                hint="kill the topology and submit it again",
            ) from error

    @classmethod
    def _decoded(cls, data: bytes) -> Self:
        try:
            return msgspec.msgpack.decode(data, type=cls)
        except ValueError as error:
            head = msgspec.msgpack.decode(data, type=_Head)
            if why := format_differs(head.topology, head.format):
                raise OtherVersion("OTHER_VERSION", f"{why}: its definition cannot be read; {AGAIN}") from error
            raise

"""A state of a Trident topology as its author holds it (docs/trident.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ardea.errors import TopologyError

if TYPE_CHECKING:
    from ardea.trident.stream import Stream


class TridentState:
    """A state that a stream writes to, or one that is only asked."""

    def __init__(self, stream: Stream | None, name: str) -> None:
        self._stream, self.name = stream, name

    def new_values_stream(self) -> Stream:
        """What the updates emit: of a persistent aggregate, the groups of each batch and their new values."""
        if self._stream is None:
            raise TopologyError([f"{self.name} is a static state: nothing updates it"])
        return self._stream.project(self._stream.fields)

    def parallelism_hint(self, hint: int) -> TridentState:
        """How many partitions the state has."""
        if self._stream is None:
            raise TopologyError([f"{self.name} is a static state: give the hint to the streams that ask it"])
        self._stream.parallelism_hint(hint)
        return self

    def resources(self, *, cpu: float | None = None, ram: int | str | None = None) -> TridentState:
        """What a task needs for the updates."""
        if self._stream is None:
            raise TopologyError([f"{self.name} is a static state: say what the streams that ask it need"])
        self._stream.resources(cpu=cpu, ram=ram)
        return self

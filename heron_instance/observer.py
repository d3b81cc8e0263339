"""Who sees what a task does, beside those who take part in it: a simulated cluster, which keeps a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.input_batch import InputBatch
from ardea.heron_instance.trees import Ids, Trees
from ardea.protocol.ids import U64


class Observer:
    """Looks away; a subclass need not."""

    def raised(self, error: Exception, batch: InputBatch, rows: range) -> None:
        """A bolt has raised it for these rows of a batch."""

    def raised_beside(self, error: Exception) -> None:
        """The component has raised it beside ``process``, and its process goes on with another object."""

    def leaving(self, buffers: Iterable[StreamBuffer], runs: Sequence[tuple[StreamBuffer, int]]) -> None:
        """What waits is about to be flushed; for ``runs`` see :class:`ardea.heron_instance.output.TaskOutput`."""

    def opened(self, buffer: StreamBuffer, trees: Trees) -> None:
        """A spout has begun trees for the rows of a buffer."""

    def judged(self, verdicts: Sequence[U64]) -> None:
        """A spout is about to hear verdicts: acked, failed, timed out, lost."""

    def lost(self) -> None:
        """A spout is about to settle all its open trees as lost."""

    def acked(self, ids: Ids) -> None:
        """A spout is about to hear of rows that are acked as they are emitted."""

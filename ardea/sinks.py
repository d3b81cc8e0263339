"""Bolts that write rows outside of the topology: see docs/sinks.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from ardea.calls import ran
from ardea.component import Bolt
from ardea.snapshots.marks import Mark as Mark
from ardea.tuples import Tuple

Row: TypeAlias = Sequence[Any]


class Sink(Bolt):
    """Writes rows, at least once in every mode: :meth:`write_batch` is all that an author has to write.

    A tuple is acked when the batch with its row is written, and fails when that raises.
    """

    def row(self, tup: Tuple) -> Row | None:
        """What is written of a tuple; None: nothing.  By default its values."""
        return tup.values

    def write_batch(self, rows: Sequence[Row]) -> None:
        """Writes rows, in order; returns when they are there to stay.

        One that returns earlier waits in :meth:`flush`, which is called before each snapshot and at the end.
        """
        raise NotImplementedError

    def process_batch(self, rows: Sequence[Tuple]) -> None:
        """Tuples that arrived together."""
        if made := self._made(rows):
            _write(self, made)

    def _made(self, tuples: Sequence[Tuple]) -> list[Row]:
        return [made for made in map(self.row, tuples) if made is not None]


class TwoPhaseSink(Sink):
    """Writes each row exactly once where the topology is ``EFFECTIVELY_ONCE``, and at least once in the other modes.

    The rows between two snapshots are an *interval*.  The engine stores them with the snapshot and, once that counts,
    calls :meth:`commit` until it succeeds, in the order of the intervals.  That happens on a thread of its own;
    :meth:`commit` and :meth:`disconnect` are called there, one at a time, and everything else on the executor's.
    """

    _keep: Callable[[Sequence[Row]], None] | None = None

    @property
    def two_phase(self) -> bool:
        """Whether rows are written with a mark: whether the topology takes snapshots."""
        return self._keep is not None

    def commit(self, mark: Mark | None, rows: Iterable[Row]) -> None:
        """Writes the rows of one interval, in order, in one transaction *together with its mark*.

        It is called again after any error, and after a crash, also by another task.  Where the number of
        ``mark.owner`` that is outside is ``mark.number`` or more, it writes nothing.

        Args:
            mark: None: the topology takes no snapshots; write the rows, at least once.
            rows: as :meth:`row` made them; values come back as rows do (docs/keys.md).  They are read from the store
                while you go through them, each time anew.

        Raises:
            Exception: whatever it raises is shown, and it is called again, after 0.1 seconds to begin with, 30 at most.
        """
        raise NotImplementedError

    def disconnect(self) -> None:
        """Closes what :meth:`commit` has opened.  Called last; not when the process is killed."""

    def write_batch(self, rows: Sequence[Row]) -> None:
        """In a mode without snapshots."""
        commit: Callable[[None, Sequence[Row]], object] = self.commit
        ran(self, "commit", commit(None, rows))

    def process_batch(self, rows: Sequence[Tuple]) -> None:
        """Tuples that arrived together."""
        made = self._made(rows)
        if made and self._keep is not None:
            self._keep(made)
        elif made:
            _write(self, made)

    def close(self) -> None:
        """Without snapshots the connection is the executor's, too."""
        if not self.two_phase:
            self.disconnect()


def _write(sink: Sink, rows: Sequence[Row]) -> None:
    as_written: Callable[[Sequence[Row]], object] = sink.write_batch
    ran(sink, "write_batch", as_written(rows))


def keep_rows(sink: TwoPhaseSink, keep: Callable[[Sequence[Row]], None]) -> None:
    """The engine's to call, ahead of ``initialize``: rows are kept by it."""
    sink._keep = keep

"""What a bolt has acked and failed since the last flush, and the messages that say so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ardea.errors import Misuse, UserError, printable
from ardea.heron_instance.column_anchors import row_numbers
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.input_batch import ColumnInput, InputBatch, Int
from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.messages import OutMessage
from ardea.protocol.ids import NO_IDS, U64, by_task, distinct, fold
from ardea.protocol.wire_pb2 import ACKS, Header
from ardea.tuples import ColumnBatch, Tuple

T = TypeVar("T")
Acks = tuple[list[tuple[InputBatch, Int | None]], list[tuple[InputBatch, int | Int]]]
"""Those that follow from a return, and those by call."""


class Acking:
    """Of one bolt task.

    ``hooks`` are told of each tuple.  ``dead_letter`` takes those that fail where nothing is sent again.
    """

    def __init__(self, instruments: Instruments, check_thread: Callable[[], None]) -> None:
        self._instruments = instruments
        self._check_thread = check_thread
        self.hooks: Hooks | None = None
        self.dead_letter: Callable[[InputBatch, int], None] | None = None
        self._acked: list[tuple[InputBatch, Int | None]] = []
        self._explicit: list[tuple[InputBatch, int | Int]] = []
        self._failed: dict[tuple[InputBatch, int], None] = {}  # in order, each once
        self._failed_rows: list[tuple[InputBatch, Int]] = []
        self._prolonged: dict[tuple[InputBatch, int], None] = {}
        self._unread: list[U64] = []

    @property
    def waiting(self) -> bool:
        """Whether anything is to be said."""
        return bool(
            self._acked or self._explicit or self._failed or self._failed_rows or self._prolonged or self._unread
        )

    def fail_unread(self, roots: U64) -> None:
        """The trees of rows that cannot be read."""
        self._unread.append(roots)

    # --- the author's calls -----------------------------------------------------------------------------------

    def ack(self, tup: Tuple) -> None:
        """An explicit ack; a second one is ignored and counted."""
        if not self._may_settle(tup):
            return
        batch, index = tup._batch, tup._index
        batch.settled.add(index)
        self._explicit.append((batch, index))
        self._instruments.acked.value += 1
        if self.hooks is not None:
            self.hooks.acked(tup, batch.arrived)

    def fail(self, tup: Tuple) -> None:
        """An explicit fail; of a tuple already settled it is ignored and counted."""
        if self._may_settle(tup):
            self.fail_row(tup._batch, tup._index)

    def _may_settle(self, tup: Tuple) -> bool:
        """Whether it is an input that is not settled; one that is counts as a second ack."""
        self._check_thread()
        try:
            batch, index = tup._batch, tup._index
        except AttributeError:
            raise _no_tuple(tup) from None
        if not isinstance(batch, InputBatch):
            return False
        if settled(batch, index):
            self._instruments.double_acks.value += 1
            return False
        return True

    def reset_timeout(self, tup: Tuple) -> None:
        """The trees of a tuple have their whole time again; of one that is settled or untracked, nothing happens."""
        self._check_thread()
        try:
            batch, index = tup._batch, tup._index
        except AttributeError:
            raise _no_tuple(tup) from None
        if isinstance(batch, InputBatch) and batch.tracked and not settled(batch, index):
            self._prolonged[batch, index] = None

    def ack_batch(self, columns: ColumnBatch, rows: Any) -> None:
        """Explicit acks of many."""
        batch, numbers = self._unsettled(columns, rows)
        if len(numbers):
            self._explicit.append((batch, numbers))
            self._instruments.acked.value += len(numbers)
            self._tell_acked(batch, numbers)

    def fail_batch(self, columns: ColumnBatch, rows: Any) -> None:
        """Explicit fails of many."""
        batch, numbers = self._unsettled(columns, rows)
        self._note_failed(batch, numbers)

    def _unsettled(self, columns: ColumnBatch, rows: Any) -> tuple[ColumnInput, Int]:
        """The rows that are neither acked nor failed yet, and now are."""
        self._check_thread()
        batch = getattr(columns, "_batch", None)
        if not isinstance(batch, ColumnInput):
            raise UserError(f"ack_batch and fail_batch take what process_columns got, not {type(columns).__qualname__}")
        everything = np.arange(len(batch.rows), dtype=np.intp)
        asked = everything if rows is None else row_numbers(rows, len(batch.rows))
        fresh = np.unique(asked[~batch.settled_at(asked)])
        self._instruments.double_acks.value += len(asked) - len(fresh)
        batch.settled_rows.update(fresh)
        return batch, fresh

    # --- what follows from a return or an exception -------------------------------------------------------------

    def fail_row(self, batch: InputBatch, index: int) -> None:
        """A row that is not settled."""
        if self.dead_letter is not None:
            self.dead_letter(batch, index)
        self._fail_row(batch, index)

    def _fail_row(self, batch: InputBatch, index: int) -> None:
        batch.settled.add(index)
        self._failed[batch, index] = None
        self._instruments.failed.value += 1
        if self.hooks is not None:
            self.hooks.failed(Tuple(batch.rows[index], index, batch), batch.arrived)

    def fail_again(self, batch: InputBatch, index: int) -> None:
        """A row that may be acked, and that more may still be anchored to: it fails all the same."""
        batch.refused.add(index)
        if (batch, index) not in self._failed:
            self._fail_row(batch, index)

    def fail_rest(self, batch: InputBatch, start: int, end: int) -> None:
        """All of these rows that are not settled."""
        numbers = np.arange(start, end, dtype=np.intp)
        numbers = numbers[~batch.settled_at(numbers)]
        if isinstance(batch, ColumnInput):
            batch.settled_rows.update(numbers)
            self._note_failed(batch, numbers)
            return
        for index in numbers.tolist():
            self.fail_row(batch, index)

    def ack_processed(self, batch: InputBatch, start: int, end: int) -> None:
        """Acks these rows, but for those that are settled already."""
        numbers: Int | None
        if batch.settled:
            numbers = np.arange(start, end, dtype=np.intp)
            numbers = numbers[~batch.settled_at(numbers)]
        elif start == 0 and end == len(batch.rows):
            numbers = None
        else:
            numbers = np.arange(start, end, dtype=np.intp)
        batch.acked_below = end
        self._instruments.acked.value += end - start if numbers is None else len(numbers)
        self._tell_acked(batch, range(start, end) if numbers is None else numbers)
        if batch.tracked:
            self._acked.append((batch, numbers))

    def _tell_acked(self, batch: InputBatch, numbers: Int | range) -> None:
        if self.hooks is not None:
            for index in map(int, numbers):
                self.hooks.acked(Tuple(batch.rows[index], index, batch), batch.arrived)

    def _note_failed(self, batch: InputBatch, numbers: Int) -> None:
        if not len(numbers):
            return
        if self.dead_letter is not None:
            for index in numbers.tolist():
                self.dead_letter(batch, index)
        self._failed_rows.append((batch, numbers))
        self._instruments.failed.value += len(numbers)
        if self.hooks is not None:
            for index in numbers.tolist():
                self.hooks.failed(Tuple(batch.rows[index], index, batch), batch.arrived)

    # --- the flush --------------------------------------------------------------------------------------------

    def take_acks(self) -> Acks:
        """The acks until now.  In the middle of a call the author may ack more meanwhile: that stays."""
        return _moved(self._acked), _moved(self._explicit)

    def put_back(self, acks: Acks) -> None:
        """They have not left."""
        self._acked[:0], self._explicit[:0] = acks

    def take(self, acks: Acks | None = None) -> Settled:
        """All that was said until now; of the acks, those taken before.

        The fails leave with the acks at the latest: a tuple that is acked fails where a row of it cannot be sent.
        """
        acked, explicit = self.take_acks() if acks is None else acks
        failed_rows = _moved(self._failed_rows)
        failed, prolonged = (_each(_moved_keys(said)) for said in (self._failed, self._prolonged))
        return Settled(acked, explicit, [*failed_rows, *failed], prolonged, _moved(self._unread))


@dataclass(frozen=True, slots=True)
class Settled:
    """What a bolt has said since the last flush."""

    acked: list[tuple[InputBatch, Int | None]]
    explicit: list[tuple[InputBatch, int | Int]]
    failed: list[tuple[InputBatch, Int]]
    prolonged: list[tuple[InputBatch, Int]]
    unread: list[U64]

    def messages(self) -> Iterator[OutMessage]:
        """One for each spout task that is concerned, once the edges of all rows emitted before are known."""
        columns = [batch.acks(rows) for batch, rows in self.acked if batch.tracked]
        for batch, row_or_rows in self.explicit:
            if batch.tracked:
                rows = np.atleast_1d(np.asarray(row_or_rows, dtype=np.intp))
                columns.append(batch.acks(rows))
                batch.tell(rows)
        roots, xors = NO_IDS, NO_IDS
        if columns:
            roots, xors = fold(np.concatenate([c[0] for c in columns]), np.concatenate([c[1] for c in columns]))
        failed, prolonged = self._roots_of(self.failed), self._roots_of(self.prolonged)
        if self.unread:
            failed = distinct(np.sort(np.concatenate([failed, *self.unread])))
        frames: dict[int, list[bytes]] = {}
        for spout, part in by_task(roots):
            frames[spout] = [roots[part].tobytes(), xors[part].tobytes(), b"", b"", b""]
        for place, named in ((2, failed), (4, prolonged)):
            for spout, part in by_task(named):
                frames.setdefault(spout, [b""] * 5)[place] = named[part].tobytes()
        for spout, columns_of in frames.items():
            yield OutMessage(Header(kind=ACKS, target=spout), columns_of, 0, sum(map(len, columns_of)))

    @staticmethod
    def _roots_of(rows: list[tuple[InputBatch, Int]]) -> U64:
        parts = [batch.roots_of(numbers)[0] for batch, numbers in rows if batch.tracked]
        return distinct(np.sort(np.concatenate(parts))) if parts else NO_IDS


def _no_tuple(given: Any) -> Misuse:
    return Misuse(f"ack(), fail() and reset_timeout() take a tuple that process got, not {printable(given, 200)}")


def _each(rows: Iterable[tuple[InputBatch, int]]) -> list[tuple[InputBatch, Int]]:
    return [(batch, np.array([index], dtype=np.intp)) for batch, index in rows]


def _moved(said: list[T]) -> list[T]:
    """In two steps, as another thread may append between them."""
    taken = said[:]
    del said[: len(taken)]
    return taken


def _moved_keys(said: dict[T, None]) -> list[T]:
    taken = list(said)
    for each in taken:
        del said[each]
    return taken


def settled(batch: Any, index: int) -> bool:
    """Whether a tuple is acked or failed already."""
    return isinstance(batch, InputBatch) and (index < batch.acked_below or index in batch.settled)


def closed(batch: Any, index: int) -> bool:
    """Whether nothing may be anchored to a tuple: it is settled, and not by a row that was refused."""
    return settled(batch, index) and index not in batch.refused

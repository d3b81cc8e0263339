"""What the records of a Trident batch become: the same rows whenever the batch comes again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn

from ardea.errors import FailedException, UserError
from ardea.kafka.marks import PartitionId
from ardea.kafka.rows import Skips
from ardea.kafka.source import check_size, size_bound, unfit, unfit_row
from ardea.trident.operations import Collector

Undecodable = Literal["fail", "skip", "emit"]


class BatchRows:
    """Of one task."""

    def __init__(
        self,
        translate: Callable[[Any], Sequence[Any] | None],
        width: int,
        undecodable: Undecodable,
        most: int,
        skips: Skips,
        ends: Callable[[UserError], NoReturn],
    ) -> None:
        """What becomes of records.

        Args:
            translate: the author's, from a message to a row of ``width`` values, or None to leave it out.
            width: of a row.
            undecodable: what happens to records that cannot be translated, or are too large.
            most: bytes of a record.
            skips: hears of those that are passed over.
            ends: the task, where it cannot go on.
        """
        self._translate, self._width, self._undecodable = translate, width, undecodable
        self._most, self._skips, self._ends = most, skips, ends

    def emit(self, place: PartitionId, messages: Sequence[Any], collector: Collector) -> None:
        """A row for each record, unless it is left out."""
        translate, emit, width = self._translate, collector.emit, self._width
        aside = self._undecodable == "emit"
        all_fit = not messages or size_bound(messages) <= self._most
        for message in messages:
            try:
                if not all_fit:
                    check_size(message, self._most)
                row = translate(message)
                count = width if row is None else len(row)
            except FailedException:
                raise
            except UserError as error:
                what = f"the record at offset {message.offset()} of {place} cannot be emitted: {error.message}"
                self._ends(UserError(what, hint=error.hint))
            except Exception as error:
                self._unfit(place, message, error, collector)
                continue
            if count != width:
                counts = f"translate gave {count} values where {width} are declared"
                self._ends(UserError(f"the record at offset {message.offset()} of {place}: {counts}"))
            if row is not None:
                emit((*row, None) if aside else row)

    def _unfit(self, place: PartitionId, message: Any, error: Exception, collector: Collector) -> None:
        """A record that cannot be translated, or is too large."""
        unread = unfit(place, message, error)
        if self._undecodable == "fail":
            self._ends(unread)
        self._skips(place, error, unread)
        if self._undecodable == "emit":
            collector.emit((*[None] * self._width, list(unfit_row(place, message, error, self._most - self._width))))

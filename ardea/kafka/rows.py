"""What the records of a partition become: rows, or batches of them, on their way out of a spout's task."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from itertools import compress, groupby, repeat
from typing import Any

import numpy as np

from ardea.component import Spout
from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.kafka.client import kafka
from ardea.kafka.marks import Marks, Numbers, Offsets, PartitionId, row_ids
from ardea.kafka.source import UNDECODABLE, Source, check_size, size_bound, unfit, unfit_row
from ardea.kafka.stamps import PartitionTimes
from ardea.kafka.traces import continue_traces
from ardea.protocol.arrow import arrow

Skips = Callable[[PartitionId, Exception, UserError], None]
"""Told of a record that cannot be emitted: what was raised, and the sentence about it."""


def by_place(kind: Any, messages: list[Any], topics: Collection[str]) -> Iterator[tuple[PartitionId, list[Any]]]:
    """Runs of one partition.

    Args:
        kind: the class of the messages.
        messages: as the client has given them.
        topics: all that they may be of; where it is one, no message is asked for it.
    """
    first, *others = topics or {""}
    for partition, run in groupby(messages, kind.partition):
        if not others:
            yield PartitionId(first, partition), list(run)
            continue
        for topic, some in groupby(run, kind.topic):
            yield PartitionId(topic, partition), list(some)


class Rows:
    """Of one task.

    Attributes:
        size: bytes of what was taken since it was set to 0, at most.
    """

    def __init__(
        self,
        spout: Spout,
        source: Source,
        context: TopologyContext,
        numbers: Numbers,
        times: PartitionTimes,
        skips: Skips,
        most: int,
    ) -> None:
        """``spout`` emits them; ``most``: bytes of a record."""
        self._spout, self._source, self._context = spout, source, context
        self._numbers, self._times, self._skips, self._most = numbers, times, skips, most
        self._message = kafka().Message
        self._gathered: defaultdict[PartitionId, list[tuple[Any, Offsets]]] = defaultdict(list)  # not emitted yet
        self.size = 0

    def take(self, place: PartitionId, marks: Marks, messages: list[Any]) -> None:
        """Records of one partition, in order; those that its marks do not ask for are passed over."""
        first, last = messages[0].offset(), messages[-1].offset()
        if last - first == len(messages) - 1:  # they ascend: there are no gaps
            offsets = np.arange(first, last + 1, dtype=np.int64)
        else:
            offsets = np.fromiter(map(self._message.offset, messages), np.int64, len(messages))
        if first < marks.position or (marks.end is not None and last >= marks.end):
            end = math.inf if marks.end is None else marks.end
            good = (offsets >= marks.position) & (offsets < end)
            messages, offsets = list(compress(messages, good.tolist())), offsets[good]
        if messages:
            try:
                # With "fail", a row with too long a key ends the topology all the same, as it leaves: keys cost time.
                fails = self._source.undecodable == "fail"
                largest = max(map(len, messages)) if fails else size_bound(messages)
                self.size += largest * len(messages)
                if largest > self._most:
                    raise ValueError("too large")
                rows = self._translated(messages)
            except UserError:
                raise
            except Exception:  # of the author's function
                for message in messages:
                    self._single(place, marks, message)
            else:
                self._follow(place, messages, offsets)
                self._emit(place, marks, rows, offsets)
        marks.passed(last + 1)

    def emit_gathered(self) -> None:
        """What ``translate_batch`` made of a partition's records at hand, as few batches."""
        for place, parts in self._gathered.items():
            number = self._numbers[place]
            for _, alike in groupby(parts, lambda part: part[0].schema):
                batches, offsets = zip(*alike, strict=True)
                ids = row_ids(number, np.concatenate(offsets))
                try:
                    batches = arrow().Table.from_batches(batches).combine_chunks().to_batches()
                except arrow().ArrowException:  # of dictionaries that do not go together
                    pass
                for batch in batches:
                    self._spout.emit_batch(batch, ids[: batch.num_rows])
                    ids = ids[batch.num_rows :]
        self._gathered.clear()

    def _follow(self, place: PartitionId, messages: list[Any], offsets: Offsets) -> None:
        """Traces that the records bring go on."""
        if (go_on := self._context.continue_trace) is None:
            return
        ids: Any = zip(repeat(place), offsets.tolist())
        if self._source.translate_batch is not None:
            ids = row_ids(self._numbers[place], offsets).tolist()
        continue_traces(go_on, ids, messages)

    def _translated(self, messages: list[Any]) -> Any:
        """A list of rows, or a record batch."""
        if (translate := self._source.translate_batch) is None:
            return list(map(self._source.translate, messages))
        batch = translate(messages)
        if not isinstance(batch, arrow().RecordBatch):
            raise UserError(
                f"translate_batch made a value of type {type(batch).__qualname__}, not a pyarrow.RecordBatch"
            )
        if batch.num_rows != len(messages):
            raise UserError(f"translate_batch made {batch.num_rows} rows of {len(messages)} records")
        return batch

    def _emit(self, place: PartitionId, marks: Marks, rows: Any, offsets: Offsets) -> None:
        self._times.rows(place, rows)
        if self._source.translate_batch is not None:
            self._gathered[place].append((rows, offsets))
            marks.read(offsets)
            return
        emit = self._spout.emit
        left_out = []
        for row, tup_id in zip(rows, zip(repeat(place), offsets.tolist()), strict=True):
            if row is None:
                left_out.append(tup_id[1])
            else:
                emit(row, tup_id)
        marks.read(np.setdiff1d(offsets, left_out) if left_out else offsets)

    def _single(self, place: PartitionId, marks: Marks, message: Any) -> None:
        """One of a batch with a record that is too large, or that cannot be translated."""
        offset = message.offset()
        try:
            check_size(message, self._most)
            rows = self._translated([message])
        except UserError:
            raise
        except Exception as error:
            unread = unfit(place, message, error)
            if self._source.undecodable == "fail":
                raise unread from error
            self._skips(place, error, unread)
            if self._source.undecodable == "emit":
                self._spout.emit(unfit_row(place, message, error, self._most), (place, offset), UNDECODABLE)
                marks.read([offset])
        else:
            self._follow(place, [message], np.array([offset]))
            self._emit(place, marks, rows, np.array([offset]))

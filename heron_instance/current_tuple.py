"""Which tuple a bolt was processing when its process died: kept in a file, read by the task's next life.

Where ``topology.max.tuple.replays`` is set, the next life names the roots of that tuple in its hello, so that a row
which kills its process counts as failed, not as lost, and becomes a dead letter in the end.  Where all goes back to a
snapshot instead, it is the hash of the row that is reported, and only a task that is told to notes it.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ardea.heron_instance.input_batch import InputBatch
from ardea.protocol.ids import NO_IDS, U64
from ardea.tuples import Tuple

_POSITION = struct.Struct("=II")  # place in the batch + 1 (0: in none), rows
FIRST_BYTES = 64 * 1024


U32 = NDArray[np.uint32]


def roots_of(batch: InputBatch) -> tuple[U64, U32]:
    """The roots of the trees that each row is in."""
    rows = len(batch.rows) if batch.tracked else 0
    known = batch.trees.counts
    counts = np.ones(rows, dtype=np.uint32) if known is None else known.astype(np.uint32)
    return batch.trees.roots, counts[:rows]


class CurrentTuple:
    """One task's file: position, number of rows, an offset into the ids for each row and the end, the ids.

    The pages are shared with the kernel, which keeps them when the process is killed.  ``armed``: tuples are noted.
    """

    def __init__(self, path: Path, ids: Callable[[InputBatch], tuple[U64, U32]] = roots_of) -> None:
        """``ids``: what each row of a batch is called, flat, and how many names it has; none: nothing is noted."""
        self._path, self._ids = path, ids
        self.armed = True
        self._map = self._open(FIRST_BYTES)
        self._rows = 0

    @staticmethod
    def left(path: Path) -> U64:
        """The ids of the tuple inside ``process`` when the former life ended; empty if there was none."""
        try:
            content = path.read_bytes()
            place, rows = _POSITION.unpack_from(content)
            if not place:
                return NO_IDS
            offsets = np.frombuffer(content, "=u4", rows + 1, _POSITION.size)
            first = _POSITION.size + offsets.nbytes
            ids = np.frombuffer(content, "=u8", int(offsets[-1]), first)
            return ids[offsets[place - 1] : offsets[place]]
        except (OSError, ValueError, IndexError, struct.error):
            return NO_IDS  # none, or it died while it wrote this

    def begin(self, batch: InputBatch) -> None:
        """The next tuples are of this batch."""
        self.clear()
        if not self.armed:
            return
        ids, counts = self._ids(batch)
        rows = len(counts)
        offsets = np.concatenate((np.zeros(1, dtype=np.uint32), np.cumsum(counts, dtype=np.uint32)))
        content = offsets.tobytes() + ids.tobytes()
        end = _POSITION.size + len(content)
        if end > len(self._map):
            self._map.close()
            self._map = self._open(end * 2)
        self._map[_POSITION.size : end] = content
        self._rows = rows

    def enter(self, index: int) -> None:
        """The tuple at ``index`` is about to be processed."""
        if self._rows:
            _POSITION.pack_into(self._map, 0, index + 1, self._rows)

    def recording(self, process: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        """A ``process`` whose tuple is known here, should it be its last."""
        enter = self.enter

        def recorded(tup: Tuple) -> None:
            enter(tup._index)
            process(tup)

        return recorded

    def clear(self) -> None:
        """No tuple is being processed."""
        _POSITION.pack_into(self._map, 0, 0, 0)

    def close(self) -> None:
        """The process ends in order."""
        self._map.close()
        self._path.unlink(missing_ok=True)

    def _open(self, size: int) -> mmap.mmap:
        """On a disk that is full nobody is to die of it: then the next life hears of no tuple."""
        try:
            with self._path.open("w+b") as file:
                file.write(bytes(size))  # takes the room now: a page that has none when it is touched is a SIGBUS
                file.flush()
                return mmap.mmap(file.fileno(), size)
        except OSError:
            return mmap.mmap(-1, size)

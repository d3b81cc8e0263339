"""Which rows of a sink a snapshot covers, and when all of them lie in the store."""

from __future__ import annotations

import pytest

from ardea.heron_instance import intervals
from ardea.heron_instance.commits import Commits
from ardea.heron_instance.intervals import Intervals
from ardea.protocol.wire_pb2 import SnapshotReport, StateFile
from ardea.snapshots.marks import Mark
from ardea.snapshots.rows_file import mark_of, rows_of
from ardea.snapshots.savepoint import NUMBER
from ardea.topology_master.sink_figures import SinkFigures


class Store:
    """Writes when it is told to."""

    def __init__(self):
        self.files, self.begun = {}, []

    def write(self, file, content, done):
        self.begun.append((file, b"".join(content), done))

    def finish(self, error=None):
        file, content, done = self.begun.pop(0)
        if error is None:
            self.files[file] = content
        done(error)

    def aside(self, function, done):
        """A database that never answers."""


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def kept(store, monkeypatch):
    monkeypatch.setattr(intervals, "FILE", 1)  # each call makes a file
    kept = Intervals(Mark("t-1", "sink", 2, 0), "3-7", store)
    kept.begin(timeline=4, snapshot=5)
    return kept


def test_what_comes_after_the_barrier_is_not_covered_though_it_is_stored(kept, store):
    kept.add([("a",)])
    kept.freeze(8)
    kept.add([("b",)])
    store.finish()
    store.finish()
    kept.look(0.0)
    assert [file.name for file in kept.files(8)] == ["t4/0.6/3-7-1.rows"]
    assert [[stretch.mark.number for stretch in group] for group in kept.counting(8)] == [[6]]
    assert [file.name for file in kept.files(9)] == ["t4/0.6/3-7-1.rows", "t4/0.9/3-7-2.rows"]


def test_a_snapshot_is_whole_once_all_its_rows_are_stored(kept, store):
    kept.add([("a",)])
    kept.add([("b",)])
    kept.freeze(8)
    store.finish()
    assert kept.writing(8)
    store.finish(OSError("no space left"))
    kept.look(1.0)
    assert (kept.files(8), kept.writing(8), kept.error) == (None, False, "rows cannot be stored: no space left")
    assert kept.look(1.5) == 2.0
    assert store.begun == []
    kept.look(2.0)
    store.finish()
    kept.look(2.0)
    names = [file.name for file in kept.files(8)]
    assert names == ["t4/0.6/3-7-1.rows", "t4/0.6/3-7-3.rows"], "a name is never written twice"
    assert [list(rows_of(store.files[name], name)) for name in names] == [[("a",)], [("b",)]]
    assert {mark_of(store.files[name], name) for name in names} == {Mark("t-1", "sink", 2, 6)}
    assert kept.unstored == 0


@pytest.mark.parametrize(("topology", "seconds"), [("t-1", 80.0), ("former-1", 100.0)])
def test_what_a_savepoint_had_is_as_old_as_the_topology_that_began_from_it(kept, store, topology, seconds):
    """The number of the interval is the former topology's, and may be above all that this one ever has."""
    kept.restored(StateFile(name="t0/0.1/1-1.rows"), Mark(topology, "sink", 0, (5 << 32) + 7))
    commits, figures = Commits(None, kept, store), SinkFigures()
    commits.advance(0.0, NUMBER)
    for number, now in ((NUMBER, 100.0), ((1 << 32) + 1, 110.0), ((5 << 32) + 8, 120.0)):
        figures.committed(number, now)
    figures.heard(1, SnapshotReport(timeline=1, unwritten=commits.waiting, oldest=commits.oldest))
    [sink] = figures.status(str, 200.0)
    assert (sink.intervals, sink.seconds) == (1, seconds)
    assert list(figures.troubles(str, 10.0, 200.0, 0.0))

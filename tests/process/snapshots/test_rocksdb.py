"""The state of real tasks lies in RocksDB: after a kill the counts are exact, and nothing is left on the disk."""

from __future__ import annotations

import pytest

from tests.process.snapshots.test_effectively import WORDS, Counted


@pytest.mark.thorough
def test_whoever_is_killed_all_is_counted_once(tmp_path):
    with Counted(tmp_path, WORDS // 2, ends=True, backend="rocksdb") as topology:
        topology.running()
        topology.until(lambda: min(topology.check()) > 0, "a snapshot has words")
        scratch = topology.until(lambda: list(topology.folder.glob("**/task-*.state/*/CURRENT")), "tasks opened theirs")
        timeline = topology.record().timeline
        topology.returned("count-1", topology.kill("count-1"))
        topology.until(lambda: topology.record().timeline > timeline, "a rollback")
        topology.finish()
        lists = [name for name in topology.store.names() if name.endswith(".manifest")]
        number = max(int(term) << 32 | int(counter) for term, counter, _ in (name.split(".") for name in lists))
        positions, counts = topology.committed(number)
        assert (positions, sum(counts.values())) == ([WORDS // 2, WORDS // 2], WORDS)
        assert {path.parents[1].name for path in scratch} <= {"task-1.state", "task-2.state", "task-3.state"}
        assert list(topology.folder.glob("**/task-*.state")) == []

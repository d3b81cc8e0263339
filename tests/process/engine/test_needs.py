"""What Trident, Kafka and Spark need of the engine, on real processes."""

from __future__ import annotations

import pytest

from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster


def test_a_coordinator_of_batches_and_columns_by_key(tmp_path):
    with Running("needs.py", tmp_path) as topology:
        outcome = topology.finish()
    module = topology.module
    batches = list(range(len(module.SIZES)))

    [master] = topology.left(module.MASTER)
    assert master["verdicts"] == [[kind, tx] for tx in batches for kind in ("batch", "commit")]
    assert master["idles"] > 0
    wanted = {"got": [size for size in module.SIZES if size], "told": batches, "committed": batches}
    for reader in topology.left("b-0"):
        assert reader | {"got": [size for size in reader["got"] if size]} == wanted
    assert outcome.components[module.MASTER].failed == 0

    assert topology.left("columns") == [module.ARROW_ROWS]
    assert outcome.components["columns"].failed > 0
    tasks = topology.left("by_key")
    assert sum(task["sums"]["columns"] for task in tasks) == sum(range(module.ARROW_ROWS))
    assert all(task["words"]["columns"] == task["words"]["rows"] for task in tasks)
    assert sum(len(task["words"]["rows"]) for task in tasks) == 997

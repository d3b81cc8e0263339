"""What is stored of the positions of a partitioned source, after its tasks have become fewer."""

from __future__ import annotations

from ardea.trident.partitioned import stored_positions
from ardea.trident.store import MemoryStore, StreamStore


def test_a_position_of_a_task_that_is_no_more_does_not_win_over_one_that_is_committed():
    """All tasks write as a transaction commits, so that what a higher one has left is older than that."""
    store = StreamStore(MemoryStore(), "topology", "stream")
    for task, positions in [(2, {"c": 1}), (10, {"a": 1, "b": 1}), (0, {"a": 2, "c": 2}), (1, {"b": 2})]:
        store.put(f"positions/7/{task}", positions)
    store.put("positions/8/10", {"a": 3})
    assert stored_positions(store) == {7: {"a": 2, "b": 2, "c": 2}, 8: {"a": 3}}
    assert list(stored_positions(store, below=8)) == [7]

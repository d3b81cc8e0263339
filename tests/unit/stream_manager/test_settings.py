"""What a manager counts is what its histogram says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ardea.metrics import Identity, Registry
from ardea.stream_manager.settings import ManagerStatistics


@given(sizes=st.lists(st.integers(1, 200_000)))
def test_batches_fall_into_the_buckets_of_the_histogram(sizes):
    statistics = ManagerStatistics()
    histogram = Registry(Identity("words", 1, "stream_manager")).histogram("ardea_stmgr_batch_tuples")
    for size in sizes:
        statistics.batch(size)
        histogram.observe(size)
    assert statistics.sizes == histogram.buckets
    assert statistics.rows == histogram.sum

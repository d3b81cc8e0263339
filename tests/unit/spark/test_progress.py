"""The mark of a partition is the first batch that is not completely acked, in this life and the next."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ardea.spark.progress import MAX_ROWS, Progress, ids_of


@given(st.data(), st.lists(st.lists(st.integers(1, 4), max_size=4), min_size=1, max_size=3))
def test_the_mark_is_the_first_batch_with_a_gap(data, partitions):
    with tempfile.TemporaryDirectory() as folder:
        progress = Progress(Path(folder))
        batches = {(p, b): ids_of(p, b, rows) for p, sizes in enumerate(partitions) for b, rows in enumerate(sizes)}
        for p in range(len(partitions)):
            assert progress.mark(p) == 0
        for ids in batches.values():
            progress.emitted(ids)
        rows = [(key, tup_id) for key, ids in batches.items() for tup_id in ids]
        order = data.draw(st.permutations(rows))
        acked = order[: data.draw(st.integers(0, len(order)))]
        for _, tup_id in acked:
            progress.acked(tup_id)
        whole = {key for key, ids in batches.items() if {i for k, i in acked if k == key} == set(ids)}
        for p, sizes in enumerate(partitions):
            expected = next((b for b in range(len(sizes)) if (p, b) not in whole), len(sizes))
            assert progress.mark(p) == expected
            assert Progress(Path(folder)).mark(p) == expected


@given(st.sets(st.tuples(st.integers(0, 1 << 20), st.integers(0, (1 << 32) - 1)), min_size=2, max_size=5))
def test_no_two_rows_share_an_id(batches):
    ranges = [ids_of(partition, batch, MAX_ROWS) for partition, batch in sorted(batches)]
    assert all(a[-1] < b[0] for a, b in itertools.pairwise(ranges))

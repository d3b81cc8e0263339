"""A transaction is written once by each partition, whatever dies between two steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import FailedException, UserError
from ardea.kafka.control import Committed, decode, encode, is_committed, resume


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3), st.integers(1, 9)), max_size=20))
def test_the_newest_record_of_each_partition_counts_and_others_are_passed_over(written):
    records = [encode(name, partition, Committed(txid, 4)) for name, partition, txid in written]
    strange = [(None, b"[1,1]"), (b"key", None), (b"key", b"value"), (b'["a",0]', b'"no"'), (b'["\xff",0]', b"[1,1]")]
    expected = {partition: Committed(txid, 4) for name, partition, txid in written if name == "a"}
    assert decode("a", [*records, *strange]) == expected


def crash(log, txid, size, stop):
    """One attempt of a transaction in all partitions; dies before partition ``stop``."""
    for partition in range(size):
        if partition == stop:
            return False
        last = resume("s", decode("s", log), partition, size)
        if not is_committed("s", txid, last):
            log.append(encode("s", partition, Committed(txid, size)))
            log.append((b"record", b"%d/%d" % (txid, partition)))
    return True


@given(st.lists(st.tuples(st.integers(1, 4), st.lists(st.integers(0, 3), max_size=4)), min_size=1, max_size=8))
def test_every_partition_writes_every_transaction_once(history):
    log: list[tuple[bytes, bytes]] = []
    for txid, (size, crashes) in enumerate(history, 1):
        for stop in crashes:
            crash(log, txid, size, stop)
        assert crash(log, txid, size, None)
    records = [value for key, value in log if key == b"record"]
    assert records == [b"%d/%d" % (txid, p) for txid, (size, _) in enumerate(history, 1) for p in range(size)]


def test_another_number_of_partitions_waits_for_the_open_transaction():
    found = {0: Committed(7, 2), 1: Committed(6, 2)}
    with pytest.raises(
        UserError, match="state s had 2 partitions, has 3 now, and some have not committed transaction 7"
    ):
        resume("s", found, 2, 3)
    found[1] = Committed(7, 2)
    assert resume("s", found, 2, 3) == 7
    assert resume("s", {}, 0, 3) == 0


def test_a_state_that_is_ahead_refuses():
    assert is_committed("s", 5, 5)
    assert not is_committed("s", 6, 5)
    with pytest.raises(FailedException, match="state s has committed transaction 5, and 4 comes now"):
        is_committed("s", 4, 5)

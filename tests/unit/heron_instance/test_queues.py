"""The queue between two threads: order, bounds, counters."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from ardea.heron_instance.queues import BoundedQueue


@given(st.lists(st.one_of(st.none(), st.integers(0, 50)), max_size=50))
def test_the_counters_follow_every_put_and_take(steps):
    """None takes, a number puts that many bytes."""
    made, model = BoundedQueue("data_in", 4, 100), []
    puts = 0
    for size in steps:
        if size is None:
            assert made.take() == (model.pop(0)[0] if model else None)
        else:
            puts += 1
            model.append((puts, size))
            made.put(puts, size)
        told = made.statistics()
        assert (told.depth, told.bytes, told.puts) == (len(model), sum(s for _, s in model), puts)
        assert made.empty == (not model)
        assert made.full == (len(model) >= 4 or sum(s for _, s in model) >= 100)


def test_the_bounds_can_be_moved():
    """They follow the executor's speed while the queue is in use."""
    made = BoundedQueue("data_in", 10, 100)
    made.put("a", 60)
    assert not made.full
    made.capacity_bytes = 50
    assert made.full
    assert made.statistics().capacity_bytes == 50


def test_each_put_wakes_a_reader_that_sleeps_elsewhere():
    """After the item is there, so that the reader that wakes finds it."""
    found = []
    made = BoundedQueue("data_out", 10, 100, lambda: found.append(made.take()))
    made.put("a")
    made.put("b")
    assert found == ["a", "b"]


def test_a_reader_waits_for_the_other_thread():
    """One writer, one reader, nothing lost or reordered."""
    made = BoundedQueue("data_in", 10, 100)
    writer = threading.Thread(target=lambda: [made.put(number, 1) for number in range(1000)])
    writer.start()
    got = [made.take(10.0) for _ in range(1000)]
    writer.join()
    assert got == list(range(1000))
    assert made.empty
    assert made.take(0.0) is None

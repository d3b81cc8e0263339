"""Storm's tables of windows, by their numbers (WindowManagerTest)."""

from __future__ import annotations

import math

import pytest

from ardea.errors import UserError
from ardea.windows.storm import Count, Duration, WindowedBolt, WindowManager

FIRST = {1: 603, 2: 605, 3: 607, 4: 618, 5: 626, 6: 636}
"""Numbers of tuples, and their stamps."""


def micros(seconds):
    return round(seconds * 1e6)


def fed(manager, stamps, watermark=None):
    """Windows of events by number, each (tuples, new, expired)."""
    found = [window for number, stamp in stamps.items() for window in manager.add(number, micros(stamp))]
    if watermark is not None:
        found += manager.rise(watermark if math.isinf(watermark) else micros(watermark))
    return [(list(window.tuples), list(window.new), list(window.expired)) for window in found]


def windows(found):
    return [tuples for tuples, _, _ in found]


def test_sliding_by_number():
    found = fed(WindowManager(Count(5), Count(2), event=False), dict.fromkeys(range(1, 9), 0.0))
    assert found == [
        ([1, 2], [1, 2], []),
        ([1, 2, 3, 4], [3, 4], []),
        ([2, 3, 4, 5, 6], [5, 6], [1]),
        ([4, 5, 6, 7, 8], [7, 8], [2, 3]),
    ]


def test_tumbling_by_number():
    found = fed(WindowManager(Count(3), Count(3), event=False), dict.fromkeys(range(1, 7), 0.0))
    assert found == [([1, 2, 3], [1, 2, 3], []), ([4, 5, 6], [4, 5, 6], [1, 2, 3])]


def test_what_is_too_old_leaves_without_a_window():
    manager = WindowManager(Count(5), Duration(1000), event=False)
    fed(manager, dict.fromkeys(range(1, 101), 0.0))
    assert manager.left() == list(range(1, 96))


def test_nothing_leaves_before_the_first_watermark():
    manager = WindowManager(Duration(100), Duration(100), event=True)
    fed(manager, {number: number for number in range(1, 101)})
    assert manager.left() == []
    assert windows(fed(manager, {}, 100)) == [[*range(1, 101)]]
    fed(manager, {number: number for number in range(101, 201)}, 201)
    assert manager.left() == [*range(1, 101)]


def test_by_the_clock():
    manager = WindowManager(Duration(1), Duration(1000), event=False)
    now = 5000.0
    fed(manager, dict.fromkeys(range(1, 51), now - 1) | dict.fromkeys(range(51, 101), now))
    assert manager.left() == [*range(1, 51)]
    fed(manager, dict.fromkeys(range(101, 201), now - 1))
    (window,) = manager.tick(micros(now + 0.1))
    assert window.tuples == [*range(51, 101)]
    assert sorted(window.expired) == [*range(1, 51), *range(101, 201)]
    fed(manager, dict.fromkeys(range(201, 301), now))
    (window,) = manager.tick(micros(now + 0.2))
    assert (window.tuples, window.new) == ([*range(51, 101), *range(201, 301)], [*range(201, 301)])


def test_by_event_time():
    manager = WindowManager(Duration(20), Duration(10), event=True)
    assert fed(manager, {1: 603, 2: 605, 3: 607}, 609) == []
    assert fed(manager, {4: 618, 5: 626, 6: 636}, 631) == [
        ([1, 2, 3], [1, 2, 3], []),
        ([1, 2, 3, 4], [4], []),
        ([4, 5], [5], [1, 2, 3]),
    ]
    assert fed(manager, {7: 825, 8: 826, 9: 827, 10: 839}, 834) == [
        ([5, 6], [6], [4]),
        ([6], [], [5]),
        ([7, 8, 9], [7, 8, 9], []),
    ]


def test_so_many_each_time():
    manager = WindowManager(Count(3), Duration(10), event=True)
    assert windows(fed(manager, FIRST, 631)) == [[1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert windows(fed(manager, {7: 665, 8: 666, 9: 667, 10: 679}, 674)) == [[4, 5, 6], [4, 5, 6], [4, 5, 6], [7, 8, 9]]


def test_a_time_each_so_many():
    manager = WindowManager(Duration(20), Count(3), event=True)
    stamps = {1: 603, 2: 605, 3: 607, 4: 618, 5: 625, 6: 626, 7: 629, 8: 636}
    assert windows(fed(manager, stamps, 631)) == [[1, 2, 3], [3, 4, 5, 6]]
    assert windows(fed(manager, {9: 665, 10: 666, 11: 667, 12: 669, 13: 679}, 674)) == [[9], [9, 10, 11, 12]]


@pytest.mark.parametrize(
    ("length", "interval", "expected"),
    [
        (2, 2, [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]),
        (5, 2, [[1, 2], [1, 2, 3, 4], [2, 3, 4, 5, 6], [4, 5, 6, 7, 8], [6, 7, 8, 9, 10]]),
    ],
)
def test_equal_stamps(length, interval, expected):
    manager = WindowManager(Count(length), Count(interval), event=True)
    stamps = dict(enumerate([10, 10, 11, 12, 12, 12, 12, 13, 14, 15], start=1))
    assert windows(fed(manager, stamps, 20)) == expected


@pytest.mark.parametrize(("length", "interval"), [(4, 2), (3, 3), (2, 5), (4, 1)])
@pytest.mark.parametrize("bound", [False, True], ids=["before", "at the watermark"])
def test_of_equal_stamps_that_a_window_parts_the_others_are_counted_too(length, interval, bound):
    """The watermark rises stamp by stamp; a row whose stamp it equals may come after it."""
    manager = WindowManager(Count(length), Count(interval), event=True)
    found, number, kept = [], 0, []
    for stamp in range(1, 51):
        found += fed(manager, {number: stamp, number + 1: stamp}, stamp if bound else None)
        found += fed(manager, {number + 2: stamp}, stamp)
        number += 3
        kept.append(len(manager._events))
    found += fed(manager, {}, 51)
    ends = range(interval, 151, interval)
    assert windows(found) == [[*range(max(0, end - length), end)] for end in ends]
    assert max(kept) <= length + interval + 3


def test_out_of_order():
    manager = WindowManager(Duration(20), Duration(10), event=True)
    stamps = {1: 603, 2: 605, 3: 607, 4: 618, 5: 626, 6: 632, 7: 629, 8: 636}
    assert windows(fed(manager, stamps, 631)) == [[1, 2, 3], [1, 2, 3, 4], [4, 5, 7]]


@pytest.mark.parametrize(
    ("length", "stamps", "expected"),
    [
        (Duration(10), {1: 12, 2: 5}, [([2], [2], []), ([1], [1], [2])]),
        (Duration(20), {1: 12, 2: 5}, [([2], [2], []), ([1, 2], [1], []), ([1], [], [2])]),
        (Count(2), {1: 18, 2: 5, 3: 6, 4: 7}, [([3, 4], [3, 4], [2]), ([1, 4], [1], [3])]),
    ],
)
def test_new_is_what_the_window_before_had_not_in_whichever_order_it_came(length, stamps, expected):
    assert fed(WindowManager(length, Duration(10), event=True), stamps, math.inf) == expected


@pytest.mark.parametrize(
    ("length", "interval", "expected"),
    [
        (Count(2), Count(2), ([1], [1], [2, 3])),
        (Count(5), Count(2), ([1, 2, 3], [1], [])),
        (Count(1), Count(2), ([1], [1], [3])),
        (Duration(15), Count(2), ([1, 3], [1], [2])),
    ],
)
def test_the_last_window_has_what_none_has_had_in_whichever_order_it_came(length, interval, expected):
    manager = WindowManager(length, interval, event=True)
    fed(manager, {1: 30, 2: 10, 3: 20}, math.inf)
    ((tuples, new, expired),) = [(window.tuples, window.new, window.expired) for window in manager.last(0)]
    assert (tuples, new, expired) == expected
    assert manager.last(0) == []


def test_a_stamp_on_a_bound_is_in_one_window():
    manager = WindowManager(Duration(0.7), Duration(0.7), event=True)
    stamps = {number: 0.7 * number for number in range(1, 100)}
    assert windows(fed(manager, stamps, math.inf)) == [[number] for number in stamps]


@pytest.mark.parametrize(
    ("length", "interval", "late"),
    [
        (Duration(10), Duration(10), [20]),
        (Duration(5), Duration(10), [20]),  # 22 is between two windows, and has no window that it could miss
        (Duration(20), Duration(10), []),
        (Count(5), Duration(10), []),
        (Duration(10), Count(1), []),
    ],
)
def test_a_stamp_of_the_watermark_is_late_if_its_windows_have_passed(length, interval, late):
    manager = WindowManager(length, interval, event=True)
    assert not manager.missed(micros(20))
    fed(manager, {1: 18, 2: 21}, 20)
    assert [stamp for stamp in (20, 20.5, 22, 30) if manager.missed(micros(stamp))] == late


def test_a_stamp_of_the_watermark_is_in_a_window_that_had_none_yet():
    manager = WindowManager(Duration(10), Duration(10), event=True)
    assert windows(fed(manager, {1: 5}, 10)) == [[1]]
    assert fed(manager, {}, 30) == []
    assert not manager.missed(micros(30))
    assert windows(fed(manager, {2: 30}, 31)) == [[2]]


def test_the_end_of_time():
    manager = WindowManager(Duration(20), Duration(10), event=True)
    assert windows(fed(manager, {1: 603, 2: 625}, math.inf)) == [[1], [1], [2], [2]]
    assert manager.left() == [1, 2]


def test_windows_of_so_many_end_with_time_although_their_tuples_never_leave():
    manager = WindowManager(Count(2), Duration(10), event=True)
    assert windows(fed(manager, {1: 603, 2: 605, 3: 625}, math.inf)) == [[1, 2], [1, 2], [2, 3]]
    assert manager.last(0) == []


@pytest.mark.parametrize("watermark", [math.inf, 32_503_680_000])
def test_a_stamp_far_ahead_ends_few_windows_of_so_many(watermark):
    manager = WindowManager(Count(2), Duration(1), event=True)
    found = windows(fed(manager, {1: 100, 2: 101, 3: 103, 4: 32_503_680_000}, watermark))
    assert found == [[1], [1, 2], [1, 2], [2, 3], [3, 4]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Count(0), "a number of tuples"),
        (lambda: Duration("soon"), "a number of seconds"),
        (lambda: Duration(1e13), "10,000 years at most"),
        (lambda: type("B", (WindowedBolt,), {"window_length": 5}), "window_length is 5"),
        (
            lambda: type("B", (WindowedBolt,), {"window_length": Count(5), "late_tuple_stream": "late"}),
            "only with a timestamp field",
        ),
    ],
)
def test_what_can_be_no_window_is_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        wrong()

"""The rules of the minimum, and of a source's partitions, whatever comes in whatever order (docs/time.md)."""

from __future__ import annotations

import math
from datetime import date, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import UserError
from ardea.watermarks import DAY, NEVER, Minimum, SourceTime, StampCounts, Timestamps, stamps_of

PARTS = "abc"
TIMES = st.integers(0, 100).map(float)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(PARTS), TIMES),
        st.tuples(st.sampled_from(["rest", "end", "again", "add", "remove"]), st.sampled_from(PARTS), st.just(0.0)),
    ),
    max_size=40,
)


class Model:
    """By definition: what each part has said last, and whether it counts."""

    def __init__(self):
        self.said = dict.fromkeys("ab", NEVER)
        self.state = dict.fromkeys("ab", "active")

    def step(self, what, part, time):
        if what == "add":
            self.said.setdefault(part, NEVER)
            self.state.setdefault(part, "active")
        elif what == "remove":
            self.said.pop(part, None)
            self.state.pop(part, None)
        elif part in self.state:
            self.of_known(what, part, time)

    def of_known(self, what, part, time):
        if self.state[part] == "ended" and what in ("say", "again"):
            self.said[part] = NEVER
        if what == "say":
            self.said[part] = max(time, self.said[part])
        if what != "rest" or self.state[part] == "active":
            self.state[part] = {"say": "active", "again": "active", "rest": "idle", "end": "ended"}[what]

    @property
    def where_nobody_counts(self):
        idle = [self.said[part] for part, state in self.state.items() if state == "idle"]
        return max(idle) if idle else math.inf if self.state else NEVER

    @property
    def counting(self):
        return [self.said[part] for part, state in self.state.items() if state == "active"]


@given(STEPS)
def test_a_minimum_only_rises_and_passes_no_part_that_counts_by_itself(steps):
    minimum, model, before, highest = Minimum("ab"), Model(), NEVER, NEVER
    for what, part, time in steps:
        model.step(what, part, time)
        (minimum.say if what == "say" else getattr(minimum, what))(*((part, time) if what == "say" else (part,)))
        counting = model.counting
        highest = max(highest, min(counting) if counting else model.where_nobody_counts)
        assert minimum.watermark == highest >= before
        assert minimum.idle == (not counting)
        before = minimum.watermark


def test_what_has_said_nothing_holds_the_minimum():
    minimum = Minimum("ab")
    minimum.say("a", 7.0)
    assert minimum.watermark == NEVER
    minimum.say("b", 5.0)
    assert minimum.watermark == 5.0


def test_an_idle_part_is_left_out_and_wakes_without_moving_it_backwards():
    minimum = Minimum("ab")
    minimum.say("a", 7.0)
    minimum.rest("b")
    assert minimum.watermark == 7.0
    minimum.say("b", 3.0)
    minimum.say("a", 9.0)
    assert minimum.watermark == 7.0, "it waits for b again"
    minimum.say("b", 8.0)
    assert minimum.watermark == 8.0


def test_a_new_part_holds_it_and_lowers_nothing():
    minimum = Minimum("a")
    minimum.say("a", 7.0)
    minimum.keep("ab")
    minimum.say("a", 9.0)
    assert minimum.watermark == 7.0
    minimum.keep("a")
    assert minimum.watermark == 9.0


def test_a_new_part_holds_it_though_the_last_active_one_goes_with_the_same_change():
    minimum = Minimum("abc")
    minimum.say("a", 7.0)
    minimum.say("b", 5.0)
    minimum.say("c", 50.0)
    minimum.rest("c")
    minimum.rest("a")
    assert minimum.watermark == 5.0
    minimum.keep("acd")
    assert minimum.watermark == 5.0


def test_the_end_of_all_is_infinite_and_an_idle_part_has_not_ended():
    minimum = Minimum("ab", floor=4.0)
    minimum.rest("a")
    minimum.end("b")
    assert (minimum.watermark, minimum.idle) == (4.0, True)
    minimum.end("a")
    assert minimum.watermark == math.inf


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_where_all_are_silent_the_highest_counts_whoever_was_silent_first(order):
    minimum = Minimum("ab")
    minimum.say("a", 7.0)
    minimum.say("b", 5.0)
    for part in order:
        minimum.rest(part)
    assert (minimum.watermark, minimum.idle) == (7.0, True)


def test_a_later_life_is_waited_for_again():
    minimum = Minimum("ab")
    minimum.say("a", 7.0)
    minimum.end("b")
    minimum.again("b")
    minimum.say("a", 9.0)
    assert minimum.watermark == 7.0


def test_it_says_nothing_of_parts_that_it_does_not_have():
    minimum = Minimum("a")
    minimum.say("z", 3.0)
    minimum.end("z")
    minimum.again("z")
    minimum.rest("z")
    assert "z" not in minimum


# --- a source ---------------------------------------------------------------------------------------------------------

SOURCE_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("row"), st.sampled_from(PARTS), st.integers(0, 200).map(float)),
        st.tuples(st.just("wait"), st.just(""), st.sampled_from([1.0, 4.0, 11.0])),
    ),
    max_size=40,
)


def source(partitions, now=100.0, **options):
    time = SourceTime(Timestamps("at", **options), lambda: now, StampCounts())
    for partition in partitions:
        time.add(partition)
    time.remove("")
    return time


@given(SOURCE_STEPS)
def test_no_partition_that_is_not_idle_is_passed_by_more_than_its_lateness(steps):
    time = source(PARTS, lateness=5.0, idle_after=10.0, max_ahead=50.0)
    newest, silent, before = dict.fromkeys(PARTS, NEVER), dict.fromkeys(PARTS, 0.0), NEVER
    idle, ahead, heard = dict.fromkeys(PARTS, False), 0, {*PARTS}
    for what, partition, value in steps:
        if what == "row":
            time.emits(partition, [value])
            ahead += value > 150.0
            if value <= 150.0:
                newest[partition] = max(newest[partition], value)
                silent[partition], idle[partition] = 0.0, False
                heard.add(partition)
        else:
            time.waited(value)
            silent = {each: 0.0 if each in heard else seconds + value for each, seconds in silent.items()}
            heard.clear()
            idle = {each: idle[each] or silent[each] >= 10.0 for each in PARTS}
        counting = [newest[each] - 5.0 for each in PARTS if not idle[each]]
        expected = max(before, min(counting) if counting else max(newest.values()) - 5.0)
        assert (time.watermark, time.idle, time.counts.ahead) == (expected, not counting, ahead)
        before = time.watermark


def test_one_stamp_of_the_far_future_does_not_move_it():
    time = source("a")
    time.emits("a", [100.0 + DAY + 1.0])
    assert (time.watermark, time.counts.ahead) == (NEVER, 1)
    time.emits("a", [7.0, 100.0 + DAY + 1.0, 9.0])
    assert (time.watermark, time.counts.ahead) == (9.0, 2)
    time.emits("a", [100.0 + DAY])
    assert (time.watermark, time.counts.ahead) == (100.0 + DAY, 2)


@given(st.lists(st.one_of(st.none(), st.just("x"), st.floats(), st.sampled_from([150.0, 150.5, 1e9]))))
def test_which_rows_are_ahead_is_said_of_each_or_of_no_one(stamps):
    each = [isinstance(stamp, float) and stamp > 150.0 for stamp in stamps]
    assert source("a", max_ahead=50.0).ahead(stamps) == (each if any(each) else None)


@pytest.mark.parametrize(
    "stamps",
    [
        [None, 7.0, "x", math.nan, 5.0],
        [math.nan, 7.0],
        [5.0, math.nan, 7.0],
        [5, math.nan, 7],
        [5.0, 7.0, np.float32("nan")],
        [7.0, None],
        ["x", 7.0],
        [7.0, 10**400],
    ],
)
def test_what_is_no_stamp_says_nothing_and_is_counted(stamps):
    time = source("a")
    time.emits("a", stamps)
    assert (time.watermark, time.counts.none) == (7.0, len(stamps) - sum(s in (5.0, 7.0) for s in stamps))


def test_rows_of_which_none_has_a_stamp_leave_it_where_it_is():
    time = source("a")
    for stamps in ([None], ["x", "y"], [True], []):
        time.emits("a", stamps)
    assert (time.watermark, time.counts.none) == (NEVER, 4)


def test_rows_below_what_readers_have_heard_are_late():
    time = source("a", lateness=2.0)
    time.emits("a", [9.0, 3.0])
    assert time.counts.late == 0, "nobody has heard anything yet"
    time.told = time.watermark
    time.emits("a", [7.0, 6.0, 8.0])
    assert time.counts.late == 1


@pytest.mark.parametrize(
    "type_", ["int64", "float64", "timestamp[us]", "timestamp[ns]", "timestamp[ms, tz=UTC]", "int32"]
)
def test_columns_say_the_same(type_):
    arrow = pytest.importorskip("pyarrow")
    time = source("a")
    kind = arrow.timestamp("ms", "UTC") if "tz" in type_ else arrow.type_for_alias(type_)
    scale = {"timestamp[us]": 10**6, "timestamp[ns]": 10**9, "timestamp[ms, tz=UTC]": 10**3}.get(type_, 1)
    batch = arrow.record_batch(
        [arrow.array([0, 0, 0]), arrow.array([3 * scale, 9 * scale, None]).cast(kind)], ["n", "at"]
    )
    time.emits("a", stamps_of(batch.slice(0, 2), 1))
    assert (time.watermark, time.counts.none) == (9.0, 0)
    time.emits("a", stamps_of(batch, 1))
    assert (time.watermark, time.counts.none) == (9.0, 1)


def test_scalars_are_the_values_that_they_arrive_as():
    arrow = pytest.importorskip("pyarrow")
    time = source("a", now=10.0, max_ahead=10.0)
    time.emits("a", stamps_of([("x", np.int64(5)), ("y", np.int64(7))], 1))
    assert (time.watermark, time.counts.none) == (7.0, 0)
    stamps = [arrow.scalar(9), arrow.scalar(8.0), arrow.scalar(21), arrow.scalar(None), arrow.scalar("8")]
    assert time.ahead(stamps) == [False, False, True, False, False]
    time.emits("a", stamps)
    assert (time.watermark, time.counts.none, time.counts.ahead) == (9.0, 2, 1)


def test_columns_of_texts_have_no_stamps():
    arrow = pytest.importorskip("pyarrow")
    time = source("a")
    for column in (["x", "y"], ["x", None], [None, None]):
        time.emits("a", stamps_of(arrow.record_batch([arrow.array(column)], ["at"]), 0))
    assert (time.watermark, time.counts.none) == (NEVER, 6)


@pytest.mark.parametrize("dictionary", [False, True], ids=["plain", "dictionary"])
@pytest.mark.parametrize("type_", ["date32", "date64"])
def test_dates_are_no_stamps_in_columns_either(type_, dictionary):
    arrow = pytest.importorskip("pyarrow")
    dates = [date(2020, 1, 1), None, date(2020, 1, 2)]
    column = arrow.array(dates, type_)
    batch = arrow.record_batch([column.dictionary_encode() if dictionary else column], ["at"])
    for stamps in (stamps_of([(each,) for each in dates], 0), stamps_of(batch, 0)):
        time = source("a", now=4e9)
        time.emits("a", stamps)
        assert (time.watermark, time.counts.none, time.ahead(stamps)) == (NEVER, 3, None)


@pytest.mark.parametrize(("unit", "watermark"), [("s", 7.0), ("ms", 0.007), ("us", 7e-6)])
def test_times_of_columns_that_no_clock_has_are_ahead(unit, watermark):
    arrow = pytest.importorskip("pyarrow")
    time = source("a")
    time.emits("a", stamps_of(arrow.record_batch({"at": arrow.array([7, 2**62], arrow.timestamp(unit))}), 0))
    assert (time.watermark, time.counts.ahead) == (watermark, 1)


@pytest.mark.parametrize("type_", ["int64", "uint64"])
def test_whole_numbers_beside_a_null_are_what_they_are(type_):
    """As a double this one is rounded up, and beyond what the windows take it for."""
    arrow = pytest.importorskip("pyarrow")
    time = source("a", now=2e9, unit="ns")
    time.emits("a", stamps_of(arrow.record_batch({"at": arrow.array([1_700_000_039_999_999_999, None], type_)}), 0))
    assert (time.watermark, time.counts.none) == (1_700_000_039.999999, 1)


def test_rows_that_will_be_refused_have_no_stamps():
    arrow = pytest.importorskip("pyarrow")
    assert stamps_of(arrow.record_batch([arrow.array([1, 2])], ["n"]), 1) == []
    assert stamps_of([(1, 2.0), (1,)], 1) == []
    assert stamps_of([(1, 2.0), 3], 1) == []


def test_a_partition_that_cannot_be_read_is_not_idle():
    time = source("ab", idle_after=10.0)
    time.emits("a", [50.0])
    time.waited(9.0)
    time.unreadable("b")
    time.emits("a", [51.0])
    time.waited(9.0)
    time.readable("b")
    time.emits("a", [51.0])
    time.waited(9.0)
    time.emits("a", [51.0])
    time.waited(9.0)
    assert time.watermark == NEVER
    time.emits("a", [52.0])
    time.waited(1.0)
    assert (time.watermark, time.idle) == (52.0, False)


def test_a_partition_with_a_row_after_the_task_stood_still_is_not_idle():
    """The row came at the end of that time, not before it; of the other one nothing did."""
    time = source("ab", idle_after=10.0)
    time.waited(1.0)
    time.emits("a", [50.0])
    time.emits("b", [60.0])
    time.waited(1.0)
    time.emits("a", [51.0])
    time.waited(30.0)
    assert (time.watermark, time.idle) == (51.0, False)
    time.waited(9.0)
    assert not time.idle
    time.waited(1.0)
    assert time.idle


def test_what_was_heard_of_a_partition_that_is_gone_or_cannot_be_read_says_nothing_of_it():
    time = source("ab", idle_after=10.0)
    time.emits("a", [50.0])
    time.unreadable("a")
    time.emits("b", [60.0])
    time.remove("b")
    time.waited(30.0)
    time.waited(30.0)
    assert (time.watermark, time.idle, [*time._since]) == (50.0, False, ["a"])


def test_partitions_that_are_not_known_yet_hold_it():
    time = SourceTime(Timestamps("at"), lambda: 100.0, StampCounts())
    time.add("a")
    time.emits("a", [7.0])
    assert (time.watermark, time.idle) == (NEVER, False)
    time.remove("")
    assert time.watermark == 7.0


def test_a_source_that_has_no_partition_or_has_finished_is_idle():
    time = source("a")
    assert not time.idle
    time.remove("a")
    assert (time.idle, time.watermark) == (True, NEVER)
    plain = SourceTime(Timestamps("at"), lambda: 100.0, StampCounts())
    plain.emits("", [3.0])
    plain.finished()
    assert (plain.idle, plain.watermark) == (True, 3.0)


def test_what_was_saved_goes_on_where_it_was():
    time = source("ab", lateness=1.0)
    time.emits("a", [7.0])
    time.emits("b", [5.0])
    after = SourceTime(time.timestamps, lambda: 100.0, StampCounts())
    after.restore(time.watermark, time.saved())
    after.add("b")
    after.remove("")
    assert after.watermark == 4.0
    after.emits("b", [2.0])
    assert after.watermark == 4.0
    after.emits("b", [9.0])
    assert after.watermark == 8.0


@pytest.mark.parametrize("order", [1, -1])
def test_what_another_task_knew_of_a_partition_once_is_not_what_was_saved_of_it(order):
    """After going back each task has been given what all had."""
    time = source("ab", lateness=1.0)
    time.restore(4.0, [("a", 9.0), ("b", 7.0), ("a", 2.0), ("b", 3.0)][::order])
    time.add("a")
    time.known()
    assert (time.watermark, time.saved()) == (8.0, [("a", 9.0)])


@pytest.mark.parametrize(
    ("unnamed", "saved", "watermark"),
    [([9.0, 7.0], [("", 7.0)], 6.0), ([9.0, NEVER], [], 4.0), ([9.0], [("", 9.0)], 8.0), ([], [], 4.0)],
)
def test_a_partition_without_a_name_is_another_one_in_each_task(unnamed, saved, watermark):
    time = SourceTime(Timestamps("at", lateness=1.0), lambda: 100.0, StampCounts())
    time.restore(4.0, [("", 9.0), ("", 7.0)], unnamed)
    assert (time.watermark, time.saved()) == (watermark, saved)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"field": ""}, "name of a field"),
        ({"field": 3}, "name of a field"),
        ({"lateness": -1}, "lateness takes a number of seconds above 0"),
        ({"lateness": "soon"}, "30 s"),
        ({"idle_after": 0}, "idle_after takes"),
        ({"max_ahead": None}, "max_ahead takes"),
        ({"unit": "h"}, "'ms'"),
    ],
)
def test_what_an_author_says_is_checked(options, words):
    with pytest.raises(UserError) as caught:
        Timestamps(**{"field": "at", **options})
    assert words in caught.value.message


def test_texts_become_seconds():
    said = Timestamps("at", lateness="30 s", idle_after="1 min", max_ahead="2 h")
    assert (said.lateness, said.idle_after, said.max_ahead) == (30.0, 60.0, 7200.0)


@pytest.mark.parametrize(
    ("unit", "stamp", "seconds"),
    [
        ("s", 7, 7.0),
        ("ms", 7500, 7.5),
        ("ns", 2_000_000_000, 2.0),
        ("ns", 1_700_000_039_999_999_999, 1_700_000_039.999999),
        ("ns", -1, -1e-6),
        ("ms", datetime.fromisoformat("1970-01-01T00:00:03"), 3.0),
        ("s", datetime.fromisoformat("1970-01-01T02:00:03+02:00"), 3.0),
        ("ms", np.int64(7500), 7.5),
        ("ns", np.uint64(2_000_000_000), 2.0),
        ("s", np.float32(7.5), 7.5),
        ("ms", np.datetime64("1970-01-01T00:00:03"), 3.0),
        ("s", np.datetime64(3_000_000_001, "ns"), None),
        ("s", np.datetime64("1970-01-01"), None),
        ("s", np.bool_(True), None),
        ("s", np.array([1, 2]), None),
        ("s", None, None),
        ("s", "7", None),
        ("s", True, None),
        ("s", math.nan, None),
        ("s", math.inf, math.inf),
        ("s", -math.inf, None),
        ("s", -1e305, None),
        ("ns", -(10**30), None),
    ],
)
def test_stamps_become_seconds(unit, stamp, seconds):
    assert Timestamps("at", unit=unit).seconds(stamp) == seconds

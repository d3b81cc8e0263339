"""Windows against an oracle in plain Python: any order of rows, any watermark, any restart (docs/windows.md)."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ardea.backends.memory import KeyedTable, Lower
from ardea.windows import CountSliding, CountTumbling, Global, Session, Sliding, Sum, Tumbling
from ardea.windows.counted import Counted, Whole
from ardea.windows.kinds import MICROS
from ardea.windows.panes import Panes
from ardea.windows.sessions import Sessions
from tests.sizes import share

OF = {
    Tumbling: Panes,
    Sliding: Panes,
    Session: Sessions,
    CountTumbling: Counted,
    CountSliding: Counted,
    Global: Whole,
}


class Driven:
    """Windows of rows, which are numbered, and all that was seen of them."""

    def __init__(self, kind, most=1000):
        self.most = most
        self.kind, self.table = kind, KeyedTable(kind.fold.zero, Lower("windows", None), normal=True)
        self.watermark = -math.inf
        self.restart()
        self.seen = []  # (key, start, end, firing, rows)
        self.late = []

    def restart(self):
        of = OF[type(self.kind)]
        time = (self.watermark * MICROS,) if of is Panes else ()
        self.open = of(self.kind, self.table, *time)

    def add(self, rows):
        """(key, stamp in seconds, number)."""
        keys, stamps, items = [row[0] for row in rows], np.array([row[1] for row in rows]) * MICROS, rows
        late = self.open.add(keys, stamps, [(item[2],) for item in items], self.watermark * MICROS)
        self.late += [rows[place][2] for place in late]
        self._note(self.open.at_once())

    def step(self):
        found = self.open.step(self.watermark * MICROS, self.most)
        self._note([] if found is None else [found])

    def early(self, windows):
        """(end in seconds, key)."""
        self._note(self.open.early([(end * MICROS, key) for end, key in windows]))

    def rise(self, watermark):
        self.watermark = max(self.watermark, watermark)

    def settle(self):
        while self.open.due(self.watermark * MICROS):
            self.step()

    def end(self):
        self.rise(math.inf)
        self.settle()
        assert len(self.table) == 0, "something is kept for ever"

    def _note(self, found):
        for window, keys, values in found:
            for key, value in zip(keys, values, strict=True):
                self.seen.append((key, window.start, window.end, window.firing, [number for (number,) in value]))


SECONDS = st.integers(-30, 120)
EVENTS = st.lists(
    st.one_of(
        st.lists(st.tuples(st.sampled_from("abc"), SECONDS), min_size=1, max_size=6),
        st.tuples(st.just("rise"), SECONDS),
        st.just("restart"),
        st.just("step"),
    ),
    max_size=25,
)


def ends_of(kind, stamp):
    """The ends of all windows that a row of that stamp is in."""
    size, every, offset = (each // MICROS for each in (kind.size_us, kind.every_us, kind.offset_us))
    begin = (stamp - offset) // every * every + offset
    starts = range(begin - (size // every + 1) * every, begin + 1, every)
    return [start + size for start in starts if start + size > stamp]


KINDS = st.builds(
    lambda size, every, offset, lateness: (
        Tumbling(size, on="at", offset=offset, allowed_lateness=lateness)
        if every >= size
        else Sliding(size, every, on="at", offset=offset, allowed_lateness=lateness)
    ),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(0, 50),
    st.sampled_from([0, 0, 7, 30]),
)


def numbered(events):
    count = 0
    for event in events:
        if isinstance(event, list):
            yield [(key, stamp, count + place) for place, (key, stamp) in enumerate(event)]
            count += len(event)
        else:
            yield event


@settings(max_examples=share(80), deadline=None)
@given(KINDS, EVENTS, st.sampled_from([1, 2, 1000]))
def test_panes_see_what_plain_python_sees(kind, events, at_once):
    """Each step is done before the next event: it is known which rows a window has."""
    lateness = kind.lateness_us // MICROS
    expected, late, contents = [], [], defaultdict(list)
    driven = Driven(kind, most=at_once)
    for event in numbered([*events, ("rise", 10_000)]):
        before = driven.watermark
        if event == "restart":
            driven.restart()
        elif isinstance(event, tuple):
            driven.rise(event[1])
            driven.settle()
            expected += [
                (key, end, "on time", rows[:])
                for (key, end), rows in sorted(contents.items(), key=lambda entry: entry[0][1])
                if before < end <= driven.watermark
            ]
        elif isinstance(event, list):
            driven.add(event)
            again = {}
            for key, stamp, number in event:
                ends = ends_of(kind, stamp)
                if max(ends) + lateness <= before:
                    late.append(number)
                    continue
                for end in ends:
                    if end > before or end + lateness > before:
                        contents[key, end].append(number)
                    if end <= before < end + lateness:
                        again[key, end] = None
            expected += [(key, end, "late", contents[key, end][:]) for key, end in again]
    assert sorted(driven.late) == sorted(late)
    seen = [(key, int(end), firing, sorted(rows)) for key, _, end, firing, rows in driven.seen]
    assert sorted(seen) == sorted((key, end, firing, sorted(rows)) for key, end, firing, rows in expected)
    assert all(end - start == kind.size_us / MICROS for _, start, end, _, _ in driven.seen)
    assert len(driven.table) == 0


@settings(max_examples=share(60), deadline=None)
@given(KINDS, EVENTS)
def test_panes_that_are_seen_in_slices_are_seen_once_over_restarts(kind, events):
    """Rows that are not late for any window; between two slices there may be rows, other watermarks and restarts."""
    contents = defaultdict(list)
    driven = Driven(kind, most=1)
    for event in numbered(events):
        if event == "restart":
            driven.restart()
        elif event == "step":
            driven.step()
        elif isinstance(event, tuple):
            driven.rise(event[1])
        elif rows := [row for row in event if min(ends_of(kind, row[1])) > driven.watermark]:
            driven.add(rows)
            for key, stamp, number in rows:
                for end in ends_of(kind, stamp):
                    contents[key, end].append(number)
    driven.end()
    assert driven.late == []
    seen = sorted((key, int(end), sorted(rows)) for key, _, end, _, rows in driven.seen)
    assert seen == sorted((key, end, sorted(rows)) for (key, end), rows in contents.items())
    assert {firing for *_, firing, _ in driven.seen} <= {"on time"}


@settings(max_examples=share(60), deadline=None)
@example(Tumbling(10, on="at", allowed_lateness=7), [[("a", 5)], ("rise", 12), [("a", 6)]])
@example(
    Tumbling(10, on="at", allowed_lateness=10),
    [[("a", 5)], [("a", 15)], ("rise", 20), "step", "step", [("b", 16)]],
)  # before a pane that is over by then is deleted
@example(
    Tumbling(10, on="at", allowed_lateness=10),
    [[("a", 5), ("b", 5)], [("a", 15)], ("rise", 20), "step", "step", "step", "step", [("b", 16)]],
)  # while it is
@given(KINDS, EVENTS)
def test_between_two_slices_late_rows_are_neither_lost_nor_seen_on_time_twice(kind, events):
    follow(Driven(kind, most=1), numbered(events), {})


def follow(driven, events, marks):
    """``marks``: up to there a key has seen its windows, where that is further than time."""
    lateness, wanted, ahead, late = driven.kind.lateness_us // MICROS, defaultdict(set), set(), []
    for event in events:
        if event == "restart":
            driven.restart()
        elif event == "step":
            driven.step()
        elif isinstance(event, tuple):
            driven.rise(event[1])
        elif isinstance(event, list):
            driven.add(event)
            for key, stamp, number in event:
                time, ends = max(driven.watermark, marks.get(key, -math.inf)), ends_of(driven.kind, stamp)
                late += [number] if max(ends) + lateness <= time else []
                for end in ends:
                    if end + lateness > time:
                        wanted[key, end].add(number)
                    if end > time:
                        ahead.add((key, end))
    driven.end()
    assert driven.late == late
    assert lateness or "late" not in {firing for *_, firing, _ in driven.seen}
    last, on_time = {}, []
    for key, _, end, firing, rows in driven.seen:
        last[key, int(end)] = rows
        assert len(rows) == len(set(rows))
        if firing == "on time":
            on_time.append((key, end))
    assert len(on_time) == len(set(on_time))
    assert ahead <= set(on_time)
    for window, numbers in wanted.items():
        assert numbers <= set(last.get(window, ())), window


@settings(max_examples=share(60), deadline=None)
@example(
    Tumbling(60, on="at", allowed_lateness=600),
    [[("a", 61)], ("rise", 120)],
    [("rise", 100)],
    [[("a", 110), ("b", 105)], ("rise", 120)],
)
@example(
    Sliding(60, 30, on="at"),
    [[("a", 61), ("a", 95)], ("rise", 120)],
    [("rise", 100)],
    [[("a", 70), ("a", 115), ("b", 70)]],
)
@given(KINDS, EVENTS, EVENTS, EVENTS)
def test_of_tasks_that_become_one_no_row_is_lost_if_time_was_further_on_in_one(kind, first, second, events):
    """Time is that of the other one from then on: what a key has seen stays seen."""
    driven, times = Driven(kind, most=1), []
    for keys, past in (("ab", first), ("c", second)):
        task = Driven(kind)
        for event in numbered(past):
            if isinstance(event, tuple):
                task.rise(event[1])
                task.settle()
            elif isinstance(event, list) and (rows := [row for row in event if row[0] in keys]):
                task.add([(key, stamp, -1 - number) for key, stamp, number in rows])
        times.append(task.watermark)
        driven.table.update(task.table)
    driven.rise(min(times))
    driven.restart()
    follow(driven, numbered(events), {key: end / MICROS for (key, pane), end in driven.table.items() if pane is None})


@pytest.mark.parametrize(
    "kind",
    [
        Tumbling(10, on="at", early=5),
        Tumbling(10, on="at", early=5, allowed_lateness=10),
        Sliding(10, 5, on="at", early=5),
    ],
    ids=["tumbling", "late", "sliding"],
)
def test_between_two_slices_a_window_is_seen_early_of_keys_that_have_not_seen_it(kind):
    driven = Driven(kind, most=1)
    driven.add([("a", 5, 0), ("b", 5, 1)])
    driven.rise(10)
    driven.step()
    ((first, *_),) = driven.seen
    (other,) = {"a", "b"} - {first}
    driven.early([(10, "a"), (10, "b")])
    driven.restart()
    driven.settle()
    assert [(key, firing) for key, _, end, firing, _ in driven.seen if end == 10] == [
        (first, "on time"),
        (other, "early"),
        (other, "on time"),
    ]
    assert all(rows == [{"a": 0, "b": 1}[key]] for key, *_, rows in driven.seen)
    driven.end()


@pytest.mark.parametrize(("before", "after"), [(10, 0), (0, 10), (20, 10), (10, 20)])
@pytest.mark.parametrize("steps", range(6))
def test_another_version_may_allow_another_lateness(before, after, steps):
    driven = Driven(Tumbling(10, on="at", allowed_lateness=before), most=1)
    driven.add([("a", 5, 0), ("b", 6, 1), ("a", 15, 2)])
    driven.rise(20)
    for _ in range(steps):
        driven.step()
    driven.kind = Tumbling(10, on="at", allowed_lateness=after)
    driven.restart()
    driven.end()
    seen = [(key, end, firing, rows) for key, _, end, firing, rows in driven.seen]
    assert sorted(seen) == [("a", 10, "on time", [0]), ("a", 20, "on time", [2]), ("b", 10, "on time", [1])]


@pytest.mark.parametrize("every", [10, 5])
@pytest.mark.parametrize("put", ["add", "add_parts"])
def test_of_late_rows_those_that_a_fold_has_not_added_leave_nothing(every, put):
    kind = Sliding(10, every, on="at", fold=Sum("value"), allowed_lateness=10)
    table = KeyedTable(kind.fold.zero, Lower("windows", None), normal=True)
    panes = Panes(kind, table, 12 * MICROS)
    with pytest.raises(TypeError):
        getattr(panes, put)(["a", "b", "c"], np.array([5, 5, 5]) * MICROS, [1, "text", 2], 12 * MICROS)
    assert {key for key, _ in table} == {"a"}
    assert [(seen.window.firing, seen.keys, seen.values) for seen in panes.at_once()] == [("late", ["a"], [1])]


@pytest.mark.parametrize("every", [10, 5])
def test_what_a_raising_batch_has_left_does_not_outlive_its_pane(every):
    """Where no row came between."""
    kind = Sliding(10, every, on="at", fold=Sum("value"), allowed_lateness=5)
    panes = Panes(kind, KeyedTable(kind.fold.zero, Lower("windows", None), normal=True), 12 * MICROS)
    with pytest.raises(TypeError):
        panes.add(["a", "b"], np.array([5, 5]) * MICROS, [1, "text"], 12 * MICROS)
    while panes.due(40 * MICROS):
        panes.step(40 * MICROS)
    panes.add(["c"], np.array([41]) * MICROS, [1], 40 * MICROS)
    assert list(panes.at_once()) == []


@settings(max_examples=share(80), deadline=None)
@given(st.integers(1, 20), st.sampled_from([0, 0, 9]), EVENTS)
def test_sessions_see_what_plain_python_sees(gap, lateness, events):
    kind = Session(gap, on="at", allowed_lateness=lateness)
    driven, accepted, late = Driven(kind), defaultdict(list), []
    for event in numbered([*events, ("rise", 10_000)]):
        if event == "restart":
            driven.restart()
        elif isinstance(event, tuple):
            driven.rise(event[1])
            driven.settle()
        elif isinstance(event, list):
            before = len(driven.late)
            driven.add(event)
            gone = set(driven.late[before:])
            for key, stamp, number in event:
                if number in gone:
                    late.append(number)
                    assert stamp + gap + lateness <= driven.watermark
                else:
                    accepted[key].append((stamp, number))
    last = {}  # of each session, by any of its rows, what was seen last
    for key, start, end, _, rows in driven.seen:
        assert rows
        for number in rows:
            last[number] = (key, start, end, tuple(sorted(rows)))
    if not lateness:
        numbers = [number for *_, rows in driven.seen for number in rows]
        assert len(numbers) == len(set(numbers)), "a row is in two sessions"
    for key, rows in accepted.items():
        for stamp, number in rows:
            owner, start, end, _ = last[number]
            assert owner == key
            assert start <= stamp <= end - gap
    assert sorted([*late, *last]) == list(range(len(late) + len(last)))
    assert len(driven.table) == 0


@settings(max_examples=share(60), deadline=None)
@given(st.integers(1, 20), st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 99)), max_size=30), st.randoms())
def test_without_late_rows_the_order_of_rows_says_nothing_of_sessions(gap, rows, chance):
    def sessions(order):
        driven = Driven(Session(gap, on="at"))
        for row in order:
            driven.add([row])
        driven.end()
        return sorted((key, start, end, sorted(found)) for key, start, end, _, found in driven.seen)

    given_rows = [(key, stamp, number) for number, (key, stamp) in enumerate(rows)]
    other = given_rows[:]
    chance.shuffle(other)
    found = sessions(given_rows)
    assert found == sessions(other)
    for key in "ab":  # as plain Python has them
        expected, stamps = [], sorted((stamp, number) for owner, stamp, number in given_rows if owner == key)
        for stamp, number in stamps:
            if expected and stamp - expected[-1][1] < gap:
                expected[-1][1] = stamp
                expected[-1][2].append(number)
            else:
                expected.append([stamp, stamp, [number]])
        assert [(start, last + gap, sorted(found)) for start, last, found in expected] == [
            (start, end, numbers) for owner, start, end, numbers in found if owner == key
        ]


@pytest.mark.parametrize(
    ("stamps", "most"),
    [
        (range(500), 1),
        (range(500, 0, -1), 1),
        ([*range(0, 500, 100), *range(500)], 5),  # of which rows make one
    ],
)
def test_a_session_is_due_once_however_many_rows_it_has(stamps, most):
    driven = Driven(Session(5, on="at"))
    for stamp in stamps:
        driven.add([("a", stamp, stamp)])
    assert len(driven.open._due) == most
    driven.rise(max(stamps) + 4)
    assert not driven.open.due(driven.watermark * MICROS)
    assert (driven.open.next, len(driven.open._due)) == ((max(stamps) + 5) * MICROS, 1)
    driven.restart()
    assert driven.open.next == (max(stamps) + 5) * MICROS
    driven.end()
    assert len(driven.seen) == 1
    assert (driven.open._due, driven.open._expected) == ([], {})


def test_a_session_that_has_been_seen_and_goes_on_is_due_before_it_would_have_been_forgotten():
    driven = Driven(Session(5, on="at", allowed_lateness=20))
    driven.add([("a", 10, 1)])
    driven.rise(15)
    driven.settle()
    assert driven.open.next == 35 * MICROS
    driven.add([("a", 14, 2)])
    assert driven.open.next == 19 * MICROS
    driven.rise(19)
    driven.settle()
    assert driven.open.next == 39 * MICROS
    driven.end()
    assert [(start, end, firing) for _, start, end, firing, _ in driven.seen] == [
        (10, 15, "on time"),
        (10, 19, "on time"),
    ]
    assert driven.open._due == []


@settings(max_examples=share(60), deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.lists(st.sampled_from("ab"), max_size=30), st.integers(0, 30))
def test_windows_by_number(rows, every, keys, restart):
    every = min(every, rows)
    for kind, step in ((CountTumbling(rows), rows), (CountSliding(rows, every), every)):
        driven, mine = Driven(kind), defaultdict(list)
        expected = []
        for number, key in enumerate(keys):
            if number == restart:
                driven.restart()
            driven.add([(key, 0, number)])
            mine[key].append(number)
            if len(mine[key]) % step == 0:
                expected.append((key, mine[key][-rows:]))
        driven.rise(math.inf)
        driven.settle()
        tumbles = isinstance(kind, CountTumbling)
        rest = [
            (key, found[len(found) // rows * rows :] if tumbles else found[-rows:])
            for key, found in mine.items()
            if len(found) % step
        ]
        assert sorted((key, found) for key, *_, found in driven.seen) == sorted(expected + rest)


@pytest.mark.parametrize("kind", [CountTumbling, lambda rows: CountSliding(rows, rows)])
def test_a_window_by_number_that_has_more_rows_than_those_of_an_update_is_seen_with_the_next(kind):
    driven = Driven(kind(5))
    driven.add([("a", 0, number) for number in range(4)])
    driven.kind = kind(2)
    driven.restart()
    for number in range(4, 7):
        driven.add([("a", 0, number)])
    assert [rows[-2:] for *_, rows in driven.seen] == [[3, 4], [5, 6]]


@pytest.mark.parametrize(("kind", "seen"), [(CountTumbling(3), [[6]]), (CountSliding(4, 3), [[3, 4, 5, 6]])])
def test_windows_by_number_of_keys_that_no_row_has_any_more_are_seen_at_once(kind, seen):
    """Once each, but for those that have nothing new; the key that rows have goes on."""
    driven = Driven(kind)
    driven.add([(key, 0, number) for key, most in ((None, 7), (2, 6), (0, 1)) for number in range(most)])
    driven.seen.clear()
    driven.open = Counted(kind, driven.table, (0,))
    driven.settle()
    assert [(key, firing, rows) for key, _, _, firing, rows in driven.seen] == [(None, "on time", *seen)]
    assert [key for key, _ in driven.table] == [0]
    assert not driven.open.due(0.0)

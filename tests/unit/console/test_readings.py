"""What is known, since when, and who is asked next; seconds are those of the test."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ardea.console.readings import (
    ENDED,
    FORGOTTEN,
    LOOKED_AT,
    SILENT,
    UNDER_WAY,
    Answer,
    Key,
    Pace,
    Readings,
    State,
)
from ardea.errors import NotFound, Unreachable

LIST, ONE = Key("list"), Key("topology", "t-1")
PACES = {"list": Pace(2.0, 10.0), "topology": Pace()}


def asked(readings: Readings, now: float) -> list[Key]:
    return [key for key, _ in readings.due(now)]


def heard(readings: Readings, key: Key, now: float, answer: Answer | None = None) -> None:
    """An ask, and its answer at once."""
    readings.want(key, now)
    assert key in asked(readings, now)
    readings.answered(key, now, answer or Answer("said"))


def test_only_the_list_is_asked_for_while_nobody_looks():
    readings = Readings(PACES)
    assert asked(readings, 0.0) == [LIST]
    readings.answered(LIST, 0.1, Answer([]))
    assert readings.wait(0.1) == 9.9
    assert asked(readings, 9.9) == []
    assert asked(readings, 10.0) == [LIST]


def test_however_many_look_one_is_asked_once_a_second():
    readings = Readings(PACES)
    times = []
    for tick in range(100):
        now = tick / 10
        for _ in range(100):
            readings.want(ONE, now)
        if ONE in asked(readings, now):
            times.append(now)
            readings.answered(ONE, now, Answer("said"))
    assert times == [float(second) for second in range(10)]


def test_what_was_dear_is_asked_for_less_often_and_is_fresh_for_longer():
    readings = Readings(PACES)
    heard(readings, ONE, 0.0, Answer("much", slower=2.5))
    readings.want(ONE, 2.4)
    assert (readings.is_fresh(ONE, 2.4), asked(readings, 2.4)) == (True, [])
    assert (readings.is_fresh(ONE, 2.5), asked(readings, 2.5)) == (False, [ONE])
    readings.answered(ONE, 2.6, Answer("little"))
    readings.want(ONE, 3.5)
    assert asked(readings, 3.5) == [ONE]


def test_a_look_is_new_when_nobody_has_looked_for_a_while():
    readings = Readings(PACES)
    assert [readings.want(ONE, now) for now in (0.0, 1.0, LOOKED_AT, 2 * LOOKED_AT, 2 * LOOKED_AT)] == [
        True, False, False, True, False,
    ]  # fmt: skip


def test_nobody_is_asked_twice_at_a_time():
    readings = Readings(PACES)
    readings.want(ONE, 0.0)
    assert ONE in asked(readings, 0.0)
    readings.want(ONE, 4.0)
    assert ONE not in asked(readings, 4.0)


def test_whom_nobody_looks_at_any_more_is_asked_no_more_and_then_forgotten():
    readings = Readings(PACES)
    heard(readings, ONE, 0.0)
    assert ONE in asked(readings, LOOKED_AT - 0.1)
    readings.answered(ONE, LOOKED_AT, Answer("said"))
    assert ONE not in asked(readings, LOOKED_AT + 1.5)
    assert readings.look(ONE, FORGOTTEN - 0.1).said == "said"
    asked(readings, FORGOTTEN)
    assert readings.look(ONE, FORGOTTEN).state is State.UNKNOWN


def test_an_answer_that_does_not_come_makes_it_stale_and_keeps_what_was_known():
    readings = Readings(PACES)
    heard(readings, ONE, 0.0)
    readings.want(ONE, 1.0)
    assert ONE in asked(readings, 1.0)
    assert readings.look(ONE, 0.9 + SILENT).state is State.LIVE
    look = readings.look(ONE, 1.0 + SILENT)
    assert (look.state, look.said, look.good) == (State.STALE, "said", 0.0)
    assert look.error is not None
    assert look.error.message == "no answer for 5 s"
    readings.answered(ONE, 7.0, Answer("more"))
    assert readings.look(ONE, 7.0)[:3] == (State.LIVE, "more", 7.0)


def test_a_refusal_is_told_with_what_was_known_before():
    readings = Readings(PACES)
    heard(readings, ONE, 0.0)
    readings.failed(ONE, Unreachable("no way"))
    look = readings.look(ONE, 1.0)
    assert (look.state, look.said, str(look.error)) == (State.STALE, "said", "no way")


def test_of_a_silent_master_the_rest_is_new_and_the_age_is_its_own():
    readings = Readings(PACES)
    heard(readings, ONE, 0.0)
    heard(readings, ONE, 1.0, Answer("processes only", trouble="the master is silent"))
    look = readings.look(ONE, 1.0)
    assert (look.state, look.said, look.good, str(look.error)) == (
        State.STALE,
        "processes only",
        0.0,
        "the master is silent",
    )


def test_what_is_over_is_as_of_its_end_and_asked_for_seldom():
    readings = Readings(PACES)
    heard(readings, ONE, 3.0, Answer("the end", over=True))
    for second in range(4, 3 + ENDED):
        readings.want(ONE, second)
        assert ONE not in asked(readings, second)
        assert readings.is_fresh(ONE, second)
    heard(readings, ONE, 3.0 + ENDED, Answer("the end", over=True))
    look = readings.look(ONE, 20.0)
    assert (look.state, look.good) == (State.OVER, 3.0)


def test_one_that_is_gone_is_over_with_what_was_known():
    readings = Readings(PACES)
    heard(readings, ONE, 0.0)
    readings.failed(ONE, NotFound("it is gone"), over=True)
    assert readings.look(ONE, 1.0)[:2] == (State.OVER, "said")


@given(st.lists(st.tuples(st.sampled_from(["want", "due", "answer", "fail"]), st.integers(0, 20), st.floats(0, 3))))
def test_asks_are_bounded_and_no_one_is_asked_faster_than_its_pace(steps):
    readings, now = Readings(PACES), 0.0
    under_way, last = set(), {}
    for what, number, passed in steps:
        now += passed
        key = Key("topology", f"t-{number}")
        if what == "want":
            readings.want(key, now)
        elif what == "due":
            for each, _ in readings.due(now):
                assert each not in under_way
                assert now - last.get(each, -math.inf) >= PACES[each.kind].looked_at - 1e-9
                under_way.add(each)
                last[each] = now
        elif under_way:
            key = sorted(under_way)[number % len(under_way)]
            under_way.discard(key)
            if what == "answer":
                readings.answered(key, now, Answer(number))
            else:
                readings.failed(key, Unreachable("no"))
        assert len(under_way) <= UNDER_WAY
        assert readings.wait(now) >= 0


def test_those_for_whom_there_is_no_room_come_first_the_next_time():
    readings, keys = (
        Readings({"topology": Pace(first=True)}),
        [Key("topology", f"t-{number:02}") for number in range(20)],
    )
    for key in keys:
        readings.want(key, 0.0)
    first = asked(readings, 0.0)
    assert len(first) == UNDER_WAY
    assert asked(readings, 0.5) == []
    for key in first:
        readings.answered(key, 1.0, Answer("said"))
    assert set(asked(readings, 1.0)).isdisjoint(first)


FLOODED = {"topology": Pace(first=True), "history": Pace(5.0, most=10)}


def test_others_have_half_of_the_asks_and_come_after_the_first():
    readings = Readings(FLOODED)
    for number in range(30):
        readings.want(Key("history", f"t names-{number}"), 0.0)
    readings.want(ONE, 0.0)
    assert [key.kind for key, _ in readings.due(0.0)] == ["topology", *["history"] * (UNDER_WAY // 2)]
    for number in range(UNDER_WAY):
        readings.want(Key("topology", f"u-{number}"), 0.1)
    assert [key.kind for key, _ in readings.due(0.1)] == ["topology"] * (UNDER_WAY // 2 - 1), "the rest is not theirs"


def test_what_was_looked_at_longest_ago_makes_room():
    readings = Readings(FLOODED)
    for number in range(30):
        readings.want(Key("history", str(number)), float(number) / 10)
    keys = [Key("history", str(number)) for number in range(30)]
    for _ in range(3):
        for key, _ in readings.due(3.0):
            readings.answered(key, 3.0, Answer("said"))
    assert [key for key in keys if readings.look(key, 3.0).said == "said"] == keys[20:]


def test_what_cannot_be_asked_because_others_do_not_answer_is_stale_too():
    readings = Readings(FLOODED)
    heard(readings, ONE, 0.0)
    for number in range(UNDER_WAY):
        readings.want(Key("topology", f"u-{number}"), 0.5)
    assert len(readings.due(0.5)) == UNDER_WAY
    for tenths in range(5, 100):
        readings.want(ONE, tenths / 10)
        assert readings.due(tenths / 10) == []
        look = readings.look(ONE, tenths / 10)
        assert look.state is (State.LIVE if tenths < 60 else State.STALE)
    assert (look.good, str(look.error)) == (0.0, "no answer for 9 s")


def test_who_looks_again_after_a_while_waits_for_an_answer_before_it_is_late():
    readings = Readings(FLOODED)
    heard(readings, ONE, 0.0)
    readings.want(ONE, 50.0)
    assert readings.look(ONE, 50.0).state is State.LIVE
    assert readings.look(ONE, 51.0).state is State.LIVE

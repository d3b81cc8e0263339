"""Tasks that begin, die and begin again, at any moment and in any order: no record is passed over."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ardea.errors import UserError
from ardea.kafka.assignment import Assignment
from ardea.kafka.beginning import Stored, mark_of
from ardea.kafka.marks import PartitionId, to_commit
from ardea.kafka.source import Source, key_and_value
from ardea.kafka.survey import Span, Survey
from tests.sizes import share

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ONE, TWO, OTHER = PartitionId("t", 0), PartitionId("t", 1), PartitionId("u", 0)


def source(start="committed", otherwise="earliest", end=None) -> Source:
    return Source(["t"], key_and_value, None, None, start, otherwise, end, "fail", "fail")


def survey(spans, stored=None, moments=None, missing=()) -> Survey:
    spans = {place: Span(*span) for place, span in spans.items()}
    return Survey(tuple(sorted(spans)), missing, stored or {}, spans, moments or {})


def lines(where, **options):
    """Where task 0 draws the line: [0] has records 5 to 20, of which 9 is committed; [1] 0 to 7."""
    found = survey({ONE: (5, 20), TWO: (0, 7)}, {ONE: Stored(9)}, {NOON: {ONE: 12, TWO: 3}})
    return dict(Assignment(source(where, **options), "run-1", 0, 2).decide(found, ()).line)


def test_where_a_topology_begins():
    assert lines("earliest") == {ONE: 5, TWO: 0}
    assert lines("latest") == {ONE: 20, TWO: 7}
    assert lines(NOON) == {ONE: 12, TWO: 3}
    assert lines("committed") == {ONE: 9, TWO: 0}
    assert lines("committed", otherwise="latest") == {ONE: 9, TWO: 7}
    assert lines("committed", otherwise=NOON) == {ONE: 9, TWO: 3}


def test_others_wait_for_the_line_and_a_former_runs_does_not_count():
    task = Assignment(source("latest"), "run-2", 1, 2)
    before = survey({TWO: (0, 7)}, {TWO: Stored(3, mark_of("run-1"))})
    assert task.decide(before, ()) == ({}, {}, (), ())
    assert not task.begun


def test_behind_the_line_a_partition_goes_on_and_a_new_one_begins_at_its_first_record():
    task = Assignment(source("latest"), "run-1", 0, 1)
    steps = task.decide(survey({ONE: (5, 20), TWO: (2, 7)}, {ONE: Stored(9, mark_of("run-1"))}), ())
    assert {place: marks.position for place, marks in steps.gained.items()} == {ONE: 9, TWO: 2}
    assert not steps.line


def test_an_offset_without_a_mark_was_set_on_purpose_and_one_of_another_run_is_an_error():
    stored = {ONE: Stored(9, mark_of("run-1")), TWO: Stored(4)}
    steps = Assignment(source(), "run-1", 0, 1).decide(survey({ONE: (0, 20), TWO: (0, 7)}, stored), ())
    assert steps.gained[TWO].position == 4
    stored[TWO] = Stored(4, mark_of("other-2"))
    with pytest.raises(UserError, match=r"topology other-2 commits to the same consumer group as run-1; t\[1\]"):
        Assignment(source(), "run-1", 0, 1).decide(survey({ONE: (0, 20), TWO: (0, 7)}, stored), ())


def test_a_bounded_spout_has_ends_ignores_later_partitions_and_demands_its_topics():
    stored = {ONE: Stored(5, mark_of("run-1"))}
    for end, last in (("latest", 20), (NOON, 12), ({ONE: 15}, 15)):
        task = Assignment(source(end=end), "run-1", 0, 1)
        moments = {NOON: {ONE: 12, TWO: 1}}
        steps = task.decide(survey({ONE: (5, 20)}, stored, moments), ())
        assert steps.gained[ONE].end == last
        assert not task.decide(survey({ONE: (5, 20), TWO: (0, 7)}, stored, moments), [ONE]).gained
    with pytest.raises(UserError, match="there is no t, so that it cannot be read to its end"):
        Assignment(source(end="latest"), "run-1", 0, 1).decide(survey({}, missing=("t",)), ())
    with pytest.raises(UserError, match=r"there is no t\[1\]"):
        Assignment(source(end={TWO: 3}), "run-1", 0, 1).decide(survey({ONE: (5, 20)}), ())


def test_a_partition_is_left_to_others_when_they_are_more_and_is_gone_when_two_surveys_do_not_find_it():
    places = {ONE: (0, 9), TWO: (0, 9), OTHER: (0, 9)}
    found = survey(places, {place: Stored(0, mark_of("run-1")) for place in places})
    without = survey({ONE: (0, 9)}, {ONE: Stored(0, mark_of("run-1"))})
    kept = Assignment(source(), "run-1", 0, 2)
    [left] = kept.decide(found, [ONE, TWO]).lost
    assert kept.decide(found, [place for place in (ONE, TWO) if place != left]).lost == []
    assert Assignment(source(), "run-1", 1, 2).decide(found, ()).gained.keys() >= {left}
    task = Assignment(source(), "run-1", 0, 1)
    assert task.decide(found, places) == ({}, {}, [], [])
    assert task.decide(without, places) == ({}, {}, [], []), "a broker that has just begun may not know of it"
    assert task.decide(found, places) == ({}, {}, [], [])
    assert task.decide(without, places) == ({}, {}, [], [])
    assert task.decide(without, places) == ({}, {}, [], [TWO, OTHER])


class Lives(RuleBasedStateMachine):
    """A topic that grows, a group that stores, two tasks that come and go; commits may be slow or lost.

    With ``start="latest"`` every record that is written after the line has to be done, before its offset is passed.
    """

    @initialize(tasks=st.integers(1, 3))
    def begin(self, tasks):
        self.count = tasks
        self.ends = {ONE: 4, TWO: 0}
        self.stored: dict[PartitionId, Stored] = {}
        self.line: dict[PartitionId, int] | None = None
        self.done: set[tuple[PartitionId, int]] = set()
        self.lives = [self.life(index) for index in range(tasks)]

    def life(self, index):
        return Assignment(source("latest"), "run", index, self.count), {}

    @rule(place=st.sampled_from([ONE, TWO, PartitionId("t", 2), PartitionId("t", 3)]), count=st.integers(1, 5))
    def write(self, place, count):
        self.ends[place] = self.ends.get(place, 0) + count

    @rule(data=st.data(), lost=st.booleans())
    def look(self, data, lost):
        assignment, marks = data.draw(st.sampled_from(self.lives))
        found = survey({place: (0, end) for place, end in self.ends.items()}, dict(self.stored))
        needs = assignment.needs(found.places)
        found = found._replace(spans={place: found.spans[place] for place in needs})
        steps = assignment.decide(found, marks)
        marks.update(steps.gained)
        if steps.line and not lost:
            self.store(steps.line)

    def store(self, offsets):
        if self.line is None:
            self.line = dict(offsets)
        self.stored.update({place: Stored(offset, mark_of("run")) for place, offset in offsets.items()})

    @rule(data=st.data(), acks=st.booleans(), lost=st.booleans())
    def work(self, data, acks, lost):
        _, marks = data.draw(st.sampled_from(self.lives))
        for place, mark in marks.items():
            offsets = list(range(mark.position, self.ends[place]))
            if offsets:
                mark.read(offsets)
                if acks:
                    mark.done(offsets)
                    self.done.update((place, offset) for offset in offsets)
        changed = to_commit(marks)
        if changed and not lost:
            self.store(changed)

    @rule(data=st.data())
    def die(self, data):
        index = data.draw(st.integers(0, self.count - 1))
        self.lives[index] = self.life(index)

    @invariant()
    def nothing_is_passed_over(self):
        for place, (offset, _) in getattr(self, "stored", {}).items():
            assert self.line is not None
            for before in range(self.line.get(place, 0), offset):
                assert (place, before) in self.done

    @invariant()
    def no_partition_has_two_tasks(self):
        held = [place for _, marks in getattr(self, "lives", ()) for place in marks]
        assert len(held) == len(set(held))


Lives.TestCase.settings = settings(max_examples=share(60), stateful_step_count=40, deadline=None)
TestLives = Lives.TestCase

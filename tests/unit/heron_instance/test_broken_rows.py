"""What a spout says of rows whose trees are broken."""

from __future__ import annotations

import logging

import pytest

from ardea.component import Spout
from ardea.heron_instance.broken_rows import BURST, TOLD, BrokenRows, rank
from ardea.shortened import LENGTH, shortened


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Odd(Spout):
    def describe_tup_id(self, tup_id):
        return 1 / tup_id


@pytest.fixture
def clock():
    return Clock()


def note(broken, number):
    broken.note("failed", number, number, ["heron"], "default")


def test_the_log_has_a_burst_and_then_a_line_a_second(clock, caplog):
    caplog.set_level(logging.INFO)
    broken = BrokenRows(Spout(), clock)
    for number in range(100):
        note(broken, number)
    assert len(caplog.messages) == BURST
    assert caplog.messages[3] == "tup_id 3 failed (tree 0000000000000003): ('heron') of stream default"
    clock.now = 1.0
    note(broken, 100)
    note(broken, 101)
    assert caplog.messages[int(BURST) :] == [
        "tup_id 100 failed (tree 0000000000000064): ('heron') of stream default; so were 90 rows before"
    ]


def test_the_master_hears_once_a_second_of_those_that_any_task_would_choose(clock):
    broken = BrokenRows(Spout(), clock)
    assert broken.version == 0
    for number in range(1, 21):
        note(broken, number)
    assert broken.version == 1
    chosen = sorted(range(1, 21), key=rank)[:TOLD]
    assert broken.last == {number: f"tup_id {number}" for number in broken.last}
    assert sorted(broken.last) == sorted(chosen)
    note(broken, 21)
    assert broken.version == 1
    assert sorted(broken.last) == sorted(chosen), "not before the next second"
    clock.now = 1.0
    assert broken.version == 2
    assert broken.last == {21: "tup_id 21"}
    assert broken.version == 2


def test_no_tree_comes_after_all_trees():
    assert max([0, 1, 2, 1 << 63, (1 << 64) - 1], key=rank) == 0


def test_whatever_an_author_calls_a_row(clock, caplog):
    caplog.set_level(logging.INFO)
    broken = BrokenRows(Odd(), clock)
    note(broken, 0)
    note(broken, 2)
    assert [message.partition(" failed")[0] for message in caplog.messages] == [
        "a tup_id that cannot be shown (ZeroDivisionError)",
        "0.5",
    ]


def test_values_take_a_line_whatever_they_are():
    class Bad:
        def __repr__(self):
            raise ValueError

    assert shortened([]) == "()"
    assert shortened(["a\nb", 1]) == r"('a\nb', 1)"
    assert shortened([Bad()]).startswith("(<Bad instance at ")
    assert len(shortened(["x" * 70] * 100)) == LENGTH + len("...")

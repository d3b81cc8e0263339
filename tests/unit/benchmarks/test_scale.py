"""The page about scale shows what was measured last, and what was measured is what the page promises."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.processes import Usage
from benchmarks.scale import ScaleResult, sizes
from benchmarks.scale_page import page
from benchmarks.scale_processes import KindCost, costs

ROOT = Path(__file__).parents[3]


@pytest.fixture
def measured():
    return msgspec.json.decode((ROOT / "benchmarks" / "scale.json").read_bytes(), type=list[ScaleResult])


def test_the_page_shows_what_was_measured(measured):
    assert page(measured) in (ROOT / "docs" / "scale.md").read_text()


def test_a_manager_and_the_master_grow_with_the_containers(measured):
    """Over the whole range; from size to size the figures of a shared machine differ."""
    first, last = measured[0], measured[-1]
    growth = last.containers / first.containers
    assert (first.containers, last.containers) == (16, 256)
    first, last = first.costs["rest"], last.costs["rest"]
    assert last.manager_ms / first.manager_ms <= growth**1.1
    assert last.master_ms / first.master_ms <= growth**1.1


@pytest.fixture(scope="module")
def six():
    """Six containers of a spout and a bolt; the update adds one bolt."""
    (found,) = sizes([6], 2)
    return found.costs


def test_few_messages_are_said_at_rest(six):
    """A tenth of them, but to and from the master."""
    links = 2 * 12 + 6 * 5
    assert six["awake"].messages == links + 2 * 6
    assert links / 13 + 2 * 6 <= six["rest"].messages <= links / 9 + 2 * 6
    assert set(six["rest"].kinds) == {"HEARTBEAT"}


def test_few_messages_are_said_at_a_start(six):
    """Between managers two hellos and one message about tasks, each way; each task hears of the others once."""
    kinds = six["start"].kinds
    assert kinds["HELLO"] <= 2 * 6 * 5 + 8 * 12
    assert kinds["TASKS"] == 6 * 5 + 12


def test_markers_travel_once_to_each_container(six):
    """At the rest and at the end: to the own manager, from there to each other one, and to each bolt."""
    assert six["end"].kinds["MARKER"] == 2 * (6 + 6 * 5 + 6 * 7)


def test_what_happens_is_measured(six):
    assert set(six) == {"start", "awake", "rest", "rate", "update", "death", "end"}
    assert six["rate"].kinds["ROWS"] >= 6 * 4
    assert six["death"].kinds["REGISTER"] == 1


def test_processes_are_told_apart_by_kind():
    """Of those that were there at both times."""
    before = {1: Usage("idle", 1.0, 5), 2: Usage("idle", 1.0, 5), 3: Usage("stream-manager", 2.0, 5)}
    after = {
        1: Usage("idle", 1.5, 10_000_000), 2: Usage("idle", 1.1, 20_000_000), 4: Usage("idle", 9.0, 5),
        3: Usage("stream-manager", 4.0, 40_000_000),
    }  # fmt: skip
    found = costs(before, after, 10.0)
    assert found == {
        "idle": KindCost(2, pytest.approx(3.0), 15.0),
        "stream-manager": KindCost(1, pytest.approx(20.0), 40.0),
    }

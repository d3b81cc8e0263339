"""What is deleted once a snapshot counts, and what never is."""

from __future__ import annotations

import pytest

from ardea.snapshots.manifest import File, Manifest, Part, state_name
from ardea.snapshots.retention import Abandoned, superfluous

NUMBER = (2 << 32) + 5
NEEDED = "t1/2.3/1-1.base", "t3/2.4/1-1.delta", "t3/2.5/1-1.delta"
COMMITTED = Manifest(number=NUMBER, timeline=3, parts={1: Part("count", 0, tuple(File(name, 0, 1) for name in NEEDED))})


@pytest.mark.parametrize(
    "name",
    [
        "t1/2.3/2-1.base",  # of a former timeline, and not named
        "t2/2.5/1-1.delta",
        "t2/9.9/1-1.delta",  # whatever its number
        "t3/2.4/1-2.delta",  # of this one, of a snapshot that was abandoned
        "t3/2.5/1-1.delta.77.part",
        "t3/1.99/1-1.base",
        "2.4.manifest",
        "1.99.manifest",
    ],
)
def test_nobody_needs(name):
    assert superfluous([*NEEDED, "2.5.manifest", name], COMMITTED) == [name]


@pytest.mark.parametrize(
    "name",
    [
        "t3/2.6/1-1.delta",  # the next snapshot's
        "t3/3.1/1-1.delta",
        "t4/2.1/1-1.delta",  # of a timeline that this master does not know yet
        "2.6.manifest",
        "3.1.manifest",
        "notes.txt",
        "t3/README",
    ],
)
def test_stays(name):
    assert superfluous([name], COMMITTED) == []


def test_names_are_those_that_tasks_give():
    name = state_name(2, NUMBER, "1-1.base")
    assert name == "t2/2.5/1-1.base"
    assert superfluous([name], COMMITTED) == [name]


NAMED = "t3/2.7/1-1.base", "t3/2.9/1-1.delta", "t3/2.8/2-1-1.rows", "t4/2.1/1-1.base"
ABANDONED = Abandoned(since=(3, 2 << 32), timeline=5, stored={1: (2 << 32) + 9, 2: 0}, named=frozenset(NAMED))


@pytest.mark.parametrize(
    ("name", "goes"),
    [
        ("t5/2.8/1-1.delta", True),  # the task has stored a later one, and does not name it
        ("t5/2.8/1-1-3.rows", True),
        ("t5/2.8/1-1.delta.77.part", True),
        ("t5/2.9/1-1.delta", False),  # its newest
        ("t5/2.10/1-1.delta", False),  # the next one's
        ("t5/2.8/2-1.delta", False),  # nothing that this task has stored is known
        ("t5/2.8/3-1.delta", False),
        ("t4/2.99/2-1.delta", True),  # of a former timeline
        ("t4/1.5/2-1-1.rows", True),  # rows are of an interval, which may begin before the master's first snapshot
        ("t3/2.1/1-1.base", True),
        ("t3/1.99/1-1.base", False),  # a list of a predecessor may name it
        ("t2/2.1/1-1.base", False),
        ("t6/2.1/1-1.base", False),  # a successor's
        ("2.8.manifest", False),
        ("t5/README", False),
        ("t5/2.8/README", False),
    ],
)
def test_while_no_snapshot_counts(name, goes):
    assert ABANDONED.superfluous([*NAMED, name]) == ([name] if goes else [])

"""What is deleted once a snapshot counts, and what never is."""

from __future__ import annotations

import pytest

from ardea.snapshots.manifest import File, Manifest, Part, state_name
from ardea.snapshots.retention import superfluous

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

"""The page about scale shows what was measured last, and what was measured is what the page promises."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.scale import ScaleResult, page, sizes

ROOT = Path(__file__).parents[3]


@pytest.fixture
def measured():
    return msgspec.json.decode((ROOT / "benchmarks" / "scale.json").read_bytes(), type=list[ScaleResult])


def test_the_page_shows_what_was_measured(measured):
    assert page(measured) in (ROOT / "docs" / "scale.md").read_text()


def test_a_manager_and_the_master_grow_with_the_containers(measured):
    """Over the whole range; from size to size the figures of a shared machine differ.

    The master's calls grow as the containers do, its time a little more: one heap holds all that is simulated.
    """
    first, last = measured[0], measured[-1]
    growth = last.containers / first.containers
    assert (first.containers, last.containers) == (16, 256)
    assert last.rest.manager_ms / first.rest.manager_ms <= growth**1.1
    assert last.rest.master_ms / first.rest.master_ms <= growth**1.15


def test_few_messages_are_said_at_rest():
    """A tenth of them between managers; each is heard by its own tasks and the master each second."""
    (found,) = sizes([6], 2)
    own = 2 * 6 * 2 + 2 * 6
    assert found.awake.messages == own + 6 * 5
    assert own + 6 * 5 / 13 <= found.rest.messages <= own + 6 * 5 / 9
    assert set(found.rest.kinds) == {"HEARTBEAT"}

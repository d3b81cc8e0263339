"""A simulated cluster that does nothing says what the page about it promises."""

from __future__ import annotations

from benchmarks.scale import sizes


def test_few_messages_are_said_at_rest():
    """A tenth of them between managers; each is heard by its own tasks and the master each second."""
    (found,) = sizes([6], 2)
    own = 2 * 6 * 2 + 2 * 6
    assert found.awake.messages == own + 6 * 5
    assert own + 6 * 5 / 13 <= found.rest.messages <= own + 6 * 5 / 9
    assert set(found.rest.kinds) == {"HEARTBEAT"}

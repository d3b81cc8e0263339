"""What a task hears of an order: of the lives in a timeline, only whether its own is one."""

from __future__ import annotations

import pytest

from ardea.protocol.wire_pb2 import SNAPSHOTS, Order, SnapshotOrder
from ardea.stream_manager.timelines import own

LIFE = 3 << 32 | 5
ORDER = Order(
    kind=SNAPSHOTS,
    term=2,
    version=7,
    snapshots=SnapshotOrder(timeline=4, restore=8, lives={1: LIFE, 2: 9}, begun=11, committed=10, abandoned=6),
)


def test_it_hears_of_itself_as_it_knows_itself():
    """Without the admission, of which a task does not know."""
    said = own(ORDER, 1, LIFE)
    assert dict(said.snapshots.lives) == {1: 5}
    said.snapshots.ClearField("lives")
    rest = Order()
    rest.CopyFrom(ORDER)
    rest.snapshots.ClearField("lives")
    assert said == rest


@pytest.mark.parametrize("life", [LIFE + 1, LIFE - 1, 4 << 32 | 5, 0])
def test_another_life_is_not_in_it(life):
    assert dict(own(ORDER, 1, life).snapshots.lives) == {}

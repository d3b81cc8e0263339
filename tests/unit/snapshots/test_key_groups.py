"""Who owns a key."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ardea.protocol.keys import key_hash
from ardea.snapshots.key_groups import Keys, group_of, owned_by, owners


@given(st.integers(1, 800).flatmap(lambda groups: st.tuples(st.just(groups), st.integers(1, groups))))
def test_all_groups_are_owned_once_and_evenly(sizes):
    groups, tasks = sizes
    owned = [owned_by(index, tasks, groups) for index in range(tasks)]
    assert [group for each in owned for group in each] == list(range(groups))
    assert {len(each) for each in owned} <= {groups // tasks, -(-groups // tasks)}
    assert owners(tasks, groups) == [index for index, each in enumerate(owned) for _ in each]


def test_a_key_of_several_fields_is_a_tuple_of_them():
    one, two = Keys("count", 0, 1, 720, 1), Keys("count", 0, 1, 720, 2)
    assert two.group(("a", 1)) == group_of(key_hash(["a", 1]), 720)
    assert one.group(("a", 1)) == group_of(key_hash([("a", 1)]), 720)
    assert one.group("a") == two.group("a") == group_of(key_hash(["a"]), 720)


def test_groups_never_move():
    """Files of all snapshots rely on it."""
    keys = Keys("count", 0, 1, 720, 1)
    assert [keys.group(key) for key in ("heron", 7, None, 2.5, b"x")] == [361, 139, 438, 667, 125]

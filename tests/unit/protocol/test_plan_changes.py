"""A difference makes of a plan the next one, whatever the two are, and says little where little has changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import StateError
from ardea.plan.packing import ContainerPlan, InstancePlan, PackingPlan
from ardea.plan.resource import Resource
from ardea.plan.wire import packing_from_message, packing_to_bytes, packing_to_message
from ardea.protocol.plan_changes import difference, whole
from ardea.protocol.wire_pb2 import Address, Plan

SMALL = Resource(0.5, 1, 1)
NUMBERS = st.integers(1, 5)
HOLDINGS = st.dictionaries(NUMBERS, st.integers(0, 2), max_size=5)
"""Container -> how many tasks it has."""


def packed(holdings):
    containers = (
        ContainerPlan(n, tuple(InstancePlan(10 * n + i, "a", i, i, SMALL) for i in range(count)), SMALL)
        for n, count in sorted(holdings.items())
    )
    return packing_to_message(packing_to_bytes(PackingPlan("round robin", tuple(containers))))


def plan_of(version, epoch, shape, holdings, ports, keys, *, active):
    plan = Plan(version=version, epoch=epoch, build=1, term=3, shape=shape, packing=packed(holdings), active=active)
    plan.addresses.extend(Address(container=n, host="h", data_port=ports[n]) for n in sorted(ports))
    plan.keys.update({f"container-{n}": f"key {n} {which}" for n, which in keys.items()})
    return plan


PLANS = st.builds(
    plan_of, st.integers(1, 3), st.integers(1, 2), st.sampled_from([b"one", b"two"]), HOLDINGS,
    st.dictionaries(NUMBERS, st.integers(1, 3)), st.dictionaries(NUMBERS, st.integers(0, 1)), active=st.booleans(),
)  # fmt: skip


@given(PLANS, PLANS)
def test_the_difference_makes_of_one_plan_the_other(former, now):
    change = difference(former, now)
    assert change == now or (change.base == former.version and whole(former, change) == now)


ALL_THERE = st.builds(
    lambda version, shape, holdings, which: plan_of(
        version, 1, shape, holdings, dict.fromkeys(holdings, 1 + which), dict.fromkeys(holdings, which), active=True
    ),
    st.integers(1, 3), st.sampled_from([b"one", b"two"]), HOLDINGS, st.integers(0, 1),
)  # fmt: skip


@given(ALL_THERE, ALL_THERE)
def test_where_each_container_has_its_address_and_key_a_difference_does(former, now):
    change = difference(former, now)
    assert change.base == former.version
    assert whole(former, change) == now


def thousand(port=1, more=0, epoch=1, version=1):
    numbers = range(1, 1001)
    holdings, ports = dict.fromkeys(numbers, 4), dict.fromkeys(numbers, 1) | {7: port}
    if more:
        holdings, ports = holdings | {1001: more}, ports | {1001: 1}
    return plan_of(version, epoch, b"one", holdings, ports, dict.fromkeys(numbers, 0), active=True)


def test_one_address_of_a_thousand_is_said_alone():
    change = difference(thousand(), thousand(port=2, version=2))
    assert change.base == 1
    assert [address.container for address in change.addresses] == [7]
    assert change.ByteSize() < 50


def test_a_new_container_of_a_thousand_is_said_alone():
    former = thousand()
    now = thousand(more=4, epoch=2, version=2)
    change = difference(former, now)
    assert change.base == 1
    assert [container.number for container in packing_from_message(change.packing).containers] == [1001]
    assert change.ByteSize() < 500
    assert list(difference(now, former).gone) == [1001]


def test_where_an_address_is_taken_back_the_whole_plan_is_said():
    """No difference can say so: that does not happen while the container is there."""
    now = plan_of(2, 1, b"one", {1: 1}, {}, {}, active=True)
    assert difference(plan_of(1, 1, b"one", {1: 1}, {1: 5}, {}, active=True), now) == now


@pytest.mark.parametrize("packing", [b"{", packing_to_message(b"{"), packed({1: 1})[:-3]])
def test_a_change_that_cannot_be_read_is_an_error(packing):
    with pytest.raises(StateError):
        whole(thousand(), Plan(base=1, packing=packing))


def test_a_plan_that_grows_beyond_measure_when_it_is_unpacked_is_an_error():
    with pytest.raises(StateError, match="67,108,864 bytes"):
        packing_from_message(packing_to_message(bytes(70 << 20)))

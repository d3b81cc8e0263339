"""Every value that msgpack can carry arrives equal, tuples as lists, from one container in another."""

from __future__ import annotations

import dataclasses
import datetime as dt

from hypothesis import given, settings
from hypothesis import strategies as st

from ardea import Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout, run
from tests.simulation.parts import Identity
from tests.sizes import share

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.just(dt.UTC)).map(lambda time: time.replace(fold=0))
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(scalars, inner, max_size=4)
    ),
    max_leaves=12,
)


def as_received(value):
    """What becomes of a value on the way: tuples are lists."""
    if isinstance(value, list | tuple):
        return [as_received(each) for each in value]
    if isinstance(value, dict):
        return {key: as_received(each) for key, each in value.items()}
    return value


def exactly(value):
    """Distinguishes what Python's equality does not: 1, 1.0 and True, and -0.0."""
    if isinstance(value, list):
        return [exactly(each) for each in value]
    if isinstance(value, dict):
        return {(type(key), repr(key)): exactly(each) for key, each in value.items()}
    return type(value), repr(value)


@settings(max_examples=share(60))
@given(st.lists(values, min_size=1, max_size=20))
def test_round_trip_through_two_containers(rows):
    class Values(Topology):
        spout = RowsSpout.of(["word"], [[value] for value in rows]).spec()
        middle = Identity.spec(par=1, inputs=[spout])
        sink = CollectBolt.spec(inputs=[middle])

    with Cluster(Values, containers=2) as cluster:
        assert {task.container for task in cluster.plan.tasks.values()} == {1, 2}
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "SUCCEEDED"
    got = cluster.record.inputs("sink")
    assert [exactly(value) for (value,) in got] == [exactly(as_received(value)) for value in rows]


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int


def test_objects_of_the_authors_own_arrive_if_the_topology_pickles():
    """Heron's custom-serializer topology; by default such a value is refused, and its neighbours arrive."""

    class Points(Topology):
        spout = RowsSpout.of(["value"], [[Point(1, 2)], [7]]).spec()
        bolt = CollectBolt.spec(inputs=[spout])
        config = {"topology.stmgrs": 2}

    pickled = run(Points, config={"topology.serializer.pickle": True})
    assert pickled.inputs("bolt") == [(Point(1, 2),), (7,)]
    assert run(Points).inputs("bolt") == [(7,)]

"""The worked examples of the published analyses of Trident, as code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.testing import Cluster, run
from ardea.testing.inside import Inside
from ardea.trident import (
    Coordinator,
    Count,
    DirectorySpout,
    Emitter,
    FixedBatchSpout,
    MemoryMapState,
    QueryFunction,
    State,
    StateFactory,
    StateUpdater,
    TridentSpout,
    TridentTopology,
)
from ardea.trident.coordinators import SUCCESS, MasterBatchCoordinator
from ardea.trident.graph import Graph, PartitionNode, ProcessorNode, SpoutNode, merged

from .parts import AT_ONCE

# --- a general spout, of an analysis of the source ---------------------------------------------------------------


class DiagnosisEventSpout(TridentSpout):
    """Ten thousand events a batch, with the coordinator that has no say."""

    outputs = ["event"]

    def __init__(self, size, log):
        self.size, self.log = size, log

    def __deepcopy__(self, memo):
        return self

    def emitter(self, config, context, store):
        return DiagnosisEventEmitter(self.size, self.log)


class DiagnosisEventEmitter(Emitter):
    def __init__(self, size, log):
        self.size, self.log = size, log

    def emit_batch(self, attempt, metadata, collector):
        assert metadata is None
        for number in range(self.size):
            collector.emit([{"lat": number % 90, "lng": number % 180, "time": attempt.txid, "code": number % 7}])

    def success(self, txid):
        self.log.append(txid)


def test_a_spout_of_diagnosis_events():
    topology, sizes, successes = TridentTopology("diagnosis"), [], []
    events = topology.new_stream("events", DiagnosisEventSpout(10_000, successes))
    events.aggregate(Count(), "n").peek(lambda tup: sizes.append(tup["n"]))
    with Cluster(topology, config=AT_ONCE) as cluster:
        cluster.run_until(lambda: len(successes) >= 3)
    assert sizes[:3] == [10_000] * 3
    assert successes == list(range(1, len(successes) + 1)), "once each"


class Told(Coordinator):
    """Made in two places, of which each hears of what is committed."""

    def __init__(self, log):
        self.log = log

    def success(self, txid):
        self.log.append(txid)


def test_news_of_a_commit_that_is_lost_comes_with_the_next(monkeypatch):
    """Storm sends it once and forgets it."""
    told, successes, emit = [], [], MasterBatchCoordinator.emit

    class Spout(DiagnosisEventSpout):
        def coordinator(self, config, context, store):
            told.append([])
            return Told(told[-1])

    def lossy(self, values, **way):
        if not (way.get("stream") == SUCCESS and values[0] in (2, 3)):
            emit(self, values, **way)

    monkeypatch.setattr(MasterBatchCoordinator, "emit", lossy)
    topology = TridentTopology("diagnosis")
    topology.new_stream("events", Spout(1, successes)).map(lambda tup: tup)
    with Cluster(topology, config=AT_ONCE) as cluster:
        cluster.run_until(lambda: len(told) == 2 and min(map(len, (successes, *told))) >= 6)
    for heard in (successes, *told):
        assert heard == list(range(1, len(heard) + 1)), "once each, in order"


class Noting(Coordinator):
    """Metadata that say how they came about."""

    def __init__(self, log):
        self.log = log

    def initialize_transaction(self, txid, previous, current):
        self.log.append((txid, previous, current))
        return current or f"of {txid}"

    def is_ready(self, txid):
        return txid <= 3

    def finished(self, txid):
        return txid > 3


class NotingSpout(DiagnosisEventSpout):
    def coordinator(self, config, context, store):
        return Noting(self.log)

    def emitter(self, config, context, store):
        return NotingEmitter()


class NotingEmitter(Emitter):
    def emit_batch(self, attempt, metadata, collector):
        assert metadata == f"of {attempt.txid}"
        collector.emit([attempt.txid])


def test_metadata_are_the_same_in_each_attempt_also_over_a_death():
    topology, log, state = TridentTopology("noting"), [], MemoryMapState()
    topology.new_stream("x", NotingSpout(0, log)).persistent_aggregate(state, Count(), "n")
    with Cluster(topology, config=AT_ONCE, cost={"spout-x": 0.05}) as cluster:
        cluster.run_until(lambda: log)
        cluster.advance(0.02)
        cluster.kill("spout-x-0")  # the first attempt fails
        cluster.kill("$spoutcoord-spout-x-0")
        cluster.run_until(lambda: cluster.over)
    assert log[0] == (1, None, None)
    assert (1, None, "of 1") in log, "another attempt, in another life"
    assert (2, "of 1", None) in log
    assert list(state.values().values()) == [3]


# --- the planner's table, of the same --------------------------------------------------------------------------------


def test_sixteen_and_sixteen(tmp_path):
    topology = TridentTopology("words")
    spout = DirectorySpout.transactional(tmp_path, field="sentence")
    (
        topology.new_stream("spout1", spout)
        .parallelism_hint(16)
        .each("sentence", lambda tup: tup[0].split(), "word")
        .group_by("word")
        .persistent_aggregate(MemoryMapState(), Count(), "count")
        .parallelism_hint(16)
    )
    built = topology.build()
    assert {c.name: c.tasks for c in built.plan()} == {
        "$mastercoord-bg0": 1,
        "$spoutcoord-spout-spout1": 1,
        "spout-spout1": 16,
        "b-0": 16,
        "b-1": 16,
    }
    assert built.operations["b-0"] == ["aggregate -> word, count", "persist state1"]
    assert built.operations["b-1"] == ["each sentence -> word", "aggregate -> word, count"]
    committers = [c.name for c in built.plan() if any(i.stream == "$commit" for i in c.inputs)]
    assert committers == ["b-0"]


nodes = st.lists(
    st.tuples(st.sampled_from("pppr"), st.integers(0, 30), st.sampled_from(["", "", "", "s1", "s2"]), st.booleans()),
    min_size=1,
    max_size=14,
)


@given(nodes=nodes)
def test_groups(nodes):
    """They partition the processors, are connected or share a state, and no pair is left that may be merged."""

    def build():
        graph = Graph()
        graph.add(SpoutNode(0, ("a",)))
        for kind, parent, state, second in nodes:
            parents = [graph.nodes[parent % len(graph.nodes)]]
            if second and kind == "p":
                parents.append(graph.nodes[(parent * 7 + 3) % len(graph.nodes)])
            parents = tuple(dict.fromkeys(parents))
            if kind == "r":
                graph.add(PartitionNode(len(graph.nodes), ("a",), parents))
            else:
                graph.add(ProcessorNode(len(graph.nodes), ("a",), parents, state=state or None))
        return graph, merged(graph)

    graph, groups = build()
    inside = [node for group in groups for node in group.nodes]
    assert sorted(node.index for node in inside) == [n.index for n in graph.nodes if isinstance(n, ProcessorNode)]
    where = {node: group for group in groups for node in group.nodes}
    for group in groups:
        assert len(connected(group.nodes)) == 1
        behind = {where.get(child) for node in group.nodes for child in graph.children(node)} - {group}
        before = {where.get(parent) for node in group.nodes for parent in node.parents} - {group}
        for neighbours in (behind, before):
            assert len(neighbours) != 1 or neighbours == {None}
    _, again = build()
    assert [[n.index for n in g.nodes] for g in again] == [[n.index for n in g.nodes] for g in groups]


def connected(nodes):
    parts = []
    for node in nodes:
        touching = [part for part in parts if any(linked(node, other) for other in part)]
        parts = [part for part in parts if part not in touching] + [[node, *(n for part in touching for n in part)]]
    return parts


def linked(one, other):
    return one in other.parents or other in one.parents or (one.state is not None and one.state == other.state)


# --- the location database, of an introduction to states ----------------------------------------------------------


class LocationDB(State):
    """A state of the author's own; ``accesses`` counts those to the database behind it."""

    def __init__(self):
        self.locations, self.accesses = {}, 0

    def begin_commit(self, txid):
        pass

    def commit(self, txid):
        pass

    def set_location(self, user, location):
        self.accesses += 1
        self.locations[user] = location

    def get_location(self, user):
        self.accesses += 1
        return self.locations.get(user)

    def bulk_set_locations(self, users, locations):
        self.accesses += 1
        self.locations.update(zip(users, locations, strict=True))

    def bulk_get_locations(self, users):
        self.accesses += 1
        return [self.locations.get(user) for user in users]


class LocationDBFactory(StateFactory):
    def __init__(self, locations=()):
        self.made, self.locations = [], locations

    def make_state(self, config, partition_index, num_partitions):
        self.made.append(LocationDB())
        self.made[-1].locations.update(self.locations)
        return self.made[-1]


class QueryLocation(QueryFunction):
    def batch_retrieve(self, state, tuples):
        return [state.get_location(tup[0]) for tup in tuples]

    def execute(self, tup, location, collector):
        collector.emit([location])


class BulkQueryLocation(QueryLocation):
    def batch_retrieve(self, state, tuples):
        return state.bulk_get_locations([tup[0] for tup in tuples])


class LocationUpdater(StateUpdater):
    def update_state(self, state, tuples, collector):
        state.bulk_set_locations([tup[0] for tup in tuples], [tup[1] for tup in tuples])
        for user, location in tuples:
            collector.emit([user, location.upper()])


@pytest.mark.parametrize(("query", "accesses"), [(QueryLocation, 100), (BulkQueryLocation, 1)])
def test_a_static_location_database_is_queried(query, accesses):
    """A batch of 100 costs 100 accesses, or one in bulk; answers stand in the order of the tuples."""
    factory, seen = LocationDBFactory({f"user{n}": n for n in range(100)}), []
    topology = TridentTopology("locations")
    locations = topology.new_static_state(factory)
    users = topology.new_stream("users", FixedBatchSpout(["userid"], [[f"user{n}"] for n in range(99, -1, -1)], 100))
    asked = users.state_query(locations, "userid", query(), "location")
    asked.peek(lambda tup: seen.append((tup["userid"], tup["location"])))
    assert run(topology.build(), config=AT_ONCE).state == "SUCCEEDED"
    assert seen == [(f"user{n}", n) for n in range(99, -1, -1)]
    assert [state.accesses for state in factory.made] == [accesses]


def test_a_location_database_is_updated_and_queried_elsewhere():
    factory, new, seen = LocationDBFactory(), [], []
    topology = TridentTopology("locations")
    moves = topology.new_stream("moves", FixedBatchSpout(["user", "place"], [["ann", "rome"], ["bob", "oslo"]], 2))
    locations = moves.partition_persist(factory, ["user", "place"], LocationUpdater(), ["user", "place"])
    locations.new_values_stream().peek(lambda tup: new.append(tuple(tup)))
    asked = topology.new_stream("asked", FixedBatchSpout(["who"], [["bob"], ["eve"]] * 20, 2))
    asked = asked.broadcast().state_query(locations, "who", BulkQueryLocation(), "where")
    asked.peek(lambda tup: seen.append(tuple(tup)))
    assert run(topology.build(), containers=2, config=AT_ONCE).state == "SUCCEEDED"
    assert new == [("ann", "ROME"), ("bob", "OSLO")]
    assert seen[-2:] == [("bob", "oslo"), ("eve", None)]


def test_a_query_function_gives_as_many_answers_as_it_was_asked():
    class Short(QueryFunction):
        def batch_retrieve(self, state, tuples):
            return []

    topology = TridentTopology("short")
    state = topology.new_static_state(MemoryMapState())
    topology.new_stream("x", FixedBatchSpout(["a"], [[1]], 1)).state_query(state, "a", Short(), "b")
    with Cluster(topology, config=AT_ONCE) as cluster:
        cluster.run_until(lambda: cluster.record.failed["$mastercoord-bg0"])
        assert "Results size is different than argument size" in Inside(cluster).error("b-0-0")

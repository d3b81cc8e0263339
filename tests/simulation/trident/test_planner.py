"""From operations to components: Storm's groups and names, the same on every build; fields checked at each step."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ardea import CustomStreamGrouping, Spout, TopologyError
from ardea.errors import UserError
from ardea.testing import Cluster
from ardea.trident import (
    Count,
    DirectorySpout,
    FixedBatchSpout,
    Function,
    MapGet,
    MemoryMapState,
    RedisState,
    ReducerAggregator,
    SqliteState,
    StateUpdater,
    Sum,
    TridentTopology,
)

SIZE = "topology.spout.max.batch.size"


def spout(*fields):
    return FixedBatchSpout(list(fields), [], 10)


def stream(*fields):
    return TridentTopology("t").new_stream("tester", spout(*fields))


def word_count():
    topology = TridentTopology("words")
    counts = (
        topology.new_stream("tester", spout("sentence"))
        .each("sentence", lambda tup: tup[0].split(), "word")
        .group_by("word")
        .persistent_aggregate(MemoryMapState(), Count(), "count")
        .parallelism_hint(6)
    )
    return topology, counts


def wiring(plan, component):
    return {f"{i.component}:{i.stream}": i.grouping.describe() for i in plan[component].inputs}


def test_the_word_count_of_storms_tests():
    topology, _ = word_count()
    plan = topology.plan()
    assert {c.name: c.tasks for c in plan} == {
        "$mastercoord-bg0": 1,
        "$spoutcoord-spout-tester": 1,
        "b-0": 6,
        "b-1": 1,
        "spout-tester": 1,
    }
    assert wiring(plan, "b-0") == {
        "b-1:s2": "fields(word)",
        "b-1:$coord-bg0": "direct",
        "$mastercoord-bg0:$commit": "all",
    }
    assert wiring(plan, "b-1") == {"spout-tester:s1": "custom(Identity)", "spout-tester:$coord-bg0": "direct"}
    assert wiring(plan, "spout-tester") == {
        "$spoutcoord-spout-tester:$batch": "all",
        "$mastercoord-bg0:$success": "all",
    }


def test_a_query_shares_the_tasks_of_its_state():
    """Two batch groups meet in one component, which waits for the commit of one of them only."""
    topology, counts = word_count()
    asked = topology.new_stream("words", spout("args")).each("args", lambda tup: tup[0].split(), "word")
    asked = asked.group_by("word").state_query(counts, "word", MapGet(), "count")
    asked.aggregate(Sum(), "sum", "count").project("sum")
    plan = topology.plan()
    assert "$mastercoord-bg1" in [c.name for c in plan]
    ((shared, reads),) = [(c, reads) for c in plan if "$mastercoord-bg0:$commit" in (reads := wiring(plan, c.name))]
    assert "$mastercoord-bg1:$commit" not in reads
    assert len([source for source in reads if ":$coord-" in source]) == 2
    assert list(reads.values()).count("fields(word)") == 2
    assert shared.tasks == 6


def test_names_are_the_same_on_every_build():
    def build():
        topology = TridentTopology("named")
        one = topology.new_stream("one", spout("a")).name("abc").each("a", lambda _: [1], "b").shuffle()
        two = one.name("def").map(lambda tup: tup).shuffle().name("ghi").map(lambda tup: tup)
        two.group_by("a").persistent_aggregate(MemoryMapState(), Count(), "n")
        return topology.plan()

    plans = [build() for _ in range(100)]
    names = [c.name for c in plans[0]]
    assert {name.rpartition("-")[2] for name in names if name.startswith("b-")} == {"abc", "def", "ghi"}
    assert {plan.digest() for plan in plans} == {plans[0].digest()}


def test_what_streams_meet_in_has_the_names_of_all():
    topology = TridentTopology("meeting")
    one, two = (topology.new_stream(name, spout("a")).name(name).map(lambda tup: tup) for name in ("one", "two"))
    topology.merge([one, two]).shuffle().map(lambda tup: tup)
    names = [c.name for c in topology.plan() if c.name.startswith("b-")]
    assert names == ["b-0-one-two", "b-1-one-two-one-two"]


SEVERAL = """
from ardea.trident import Count, FixedBatchSpout, MapGet, MemoryMapState, TridentTopology
topology = TridentTopology("several")
one, two = (topology.new_stream(name, FixedBatchSpout(["a", "b"], [], 1)).name(name) for name in ("one", "two"))
merged = topology.merge([one.shuffle(), two.partition_by("a")])
counts = merged.group_by(["a", "b"]).persistent_aggregate(MemoryMapState(), Count(), "n")
joined = topology.join([one, two], ["a", "a"], ["a", "b", "c"])
joined.state_query(counts, ["a", "b"], MapGet(), "n").partition_by("n").name("last").peek(print)
for name in "xyz":
    joined.shuffle().name(name).peek(print)
plan = topology.plan()
print([(c.name, c.tasks, [s for s in c.streams], [(i.component, i.stream) for i in c.inputs]) for c in plan])
print(plan.digest())
"""


def test_names_are_the_same_in_every_process():
    """Whatever PYTHONHASHSEED is: who merged groups in the order of a set would number them by chance."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SEVERAL],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    (output,) = outputs
    assert "spout-one" in output
    assert "-last" in output


def test_one_topology_can_be_built_twice():
    topology, _ = word_count()
    assert topology.plan().digest() == topology.plan().digest()


def test_hints_hold_back_to_the_last_repartition_and_over_identity():
    topology = TridentTopology("hints")
    first = (
        topology.new_stream("one", DirectorySpout.transactional("in", field="a"))
        .map(lambda tup: tup)
        .parallelism_hint(3)
    )
    first.shuffle().map(lambda tup: tup).map(lambda tup: tup).parallelism_hint(2)
    assert {c.name: c.tasks for c in topology.plan() if not c.name.startswith("$")} == {
        "spout-one": 3,
        "b-0": 3,
        "b-1": 2,
    }


def test_a_batch_spout_has_one_task_and_holds_its_neighbours_to_it():
    topology = TridentTopology("one")
    topology.new_stream("one", spout("a")).map(lambda tup: tup).parallelism_hint(3).shuffle().filter(
        lambda _: True
    ).parallelism_hint(3)
    assert {c.name: c.tasks for c in topology.plan() if not c.name.startswith("$")} == {
        "spout-one": 1,
        "b-0": 1,
        "b-1": 3,
    }


def test_the_resources_of_storms_tests():
    """A component needs the sum of what its operations say; where none says anything, what any task does."""
    topology = TridentTopology("resources")
    lines = DirectorySpout.transactional("in", field="sentence")
    words = topology.new_stream("words", lines).parallelism_hint(5).resources(cpu=0.2, ram="768MiB")
    words = words.each("sentence", lambda tup: tup[0].split(), "word").resources(cpu=0.1, ram="512MiB")
    words = words.each("word", lambda tup: [tup[0] + "!"], "loud").parallelism_hint(10).resources(cpu=0.5, ram="1GiB")
    words.group_by("loud").persistent_aggregate(MemoryMapState(), Count(), "n").resources(cpu=1.5, ram="2GiB")
    found = {c.name: (round(c.resource.cpu, 9), c.resource.ram >> 20) for c in topology.plan()}
    assert found == {
        "$mastercoord-bg0": (1, 512),
        "$spoutcoord-spout-words": (0.2, 768),
        "spout-words": (0.2, 768),
        "b-0": (1.5, 2048),
        "b-1": (0.6, 1536),
    }


def test_a_spout_brings_its_configuration_along():
    class Brief(FixedBatchSpout):
        config = {SIZE: 7}

    class Plain(Spout):
        outputs = ["a"]
        config = {SIZE: 8}

    topology = TridentTopology("configured")
    topology.new_stream("brief", Brief(["a"], [], 1)).map(lambda tup: tup)
    topology.new_stream("plain", Plain).map(lambda tup: tup)
    found = {c.name: c.config.get(SIZE) for c in topology.plan()}
    assert {name: value for name, value in found.items() if value is not None} == {"spout-brief": 7, "spout-plain": 8}


def test_what_a_spout_may_have_at_most_holds_for_its_neighbours_by_identity_too():
    lines = DirectorySpout.transactional("in")
    lines.config = {"topology.max.task.parallelism": 2}
    topology = TridentTopology("limited")
    stream = topology.new_stream("lines", lines).parallelism_hint(4)
    stream.identity_partition().map(lambda tup: tup).shuffle().map(lambda tup: tup).parallelism_hint(3)
    tasks = {c.name: c.tasks for c in topology.plan() if not c.name.startswith("$")}
    assert tasks == {"spout-lines": 2, "b-0": 2, "b-1": 3}


def test_a_grouped_stream_can_have_a_name():
    topology = TridentTopology("named")
    rows = topology.new_stream("s", spout("a")).group_by("a").name("counted")
    rows.persistent_aggregate(MemoryMapState(), Count(), "n")
    assert [c.name for c in topology.plan() if c.name.startswith("b-")] == ["b-0-counted", "b-1-counted"]


def test_tracking_cannot_be_turned_off():
    topology, _ = word_count()
    topology.set_config({"topology.reliability.mode": "ATMOST_ONCE"})
    plan = topology.build().plan({"topology.acker.executors": 0})
    assert plan.config["topology.reliability.mode"] == "ATLEAST_ONCE"
    assert plan.config["topology.acker.executors"] == 1


class Reducer(ReducerAggregator):
    def init(self):
        return 0

    def reduce(self, current, tup):
        return current + 1


UNKNOWN = {
    "each": lambda s: s.each("x", lambda _: [], "y"),
    "filter": lambda s: s.filter(lambda _: True, "x"),
    "group_by": lambda s: s.group_by("x"),
    "aggregate": lambda s: s.aggregate(Sum(), "y", "x"),
    "grouped aggregate": lambda s: s.group_by("a").aggregate(Sum(), "y", "x"),
    "project": lambda s: s.project("x"),
    "partition_by": lambda s: s.partition_by("x"),
    "partition_aggregate": lambda s: s.partition_aggregate(Sum(), "y", "x"),
    "persistent_aggregate": lambda s: s.persistent_aggregate(MemoryMapState(), Sum(), "y", "x"),
    "reducing": lambda s: s.group_by("a").persistent_aggregate(MemoryMapState(), Reducer(), "y", "x"),
    "partition_persist": lambda s: s.partition_persist(MemoryMapState(), "x", StateUpdater()),
    "state_query": lambda s: s.state_query(static(s), "x", MapGet(), "y"),
    "first_n": lambda s: s.first_n(3, "x"),
}


@pytest.mark.parametrize("operation", UNKNOWN)
def test_unknown_fields_are_refused(operation):
    message = r"Trying to select non-existent field: 'x' from stream containing fields fields: <\[a, b\]>"
    with pytest.raises(TopologyError, match=message):
        UNKNOWN[operation](stream("a", "b"))


def static(stream):
    return stream._topology.new_static_state(MemoryMapState())


def twice(stream, state):
    stream.persistent_aggregate(state, Count(), "n")
    stream.group_by("a").persistent_aggregate(state, Count(), "n")


REFUSED = {
    "Additive operations cannot add fields with same name": lambda s: s.each("a", lambda _: [], "b"),
    "duplicate field": lambda s: s.group_by("a").aggregate(Count(), "a"),
    "gives one value": lambda s: s.aggregate(Count(), ["n", "m"]),
    "is no aggregator": lambda s: s.aggregate(Count, "n"),
    "gives one field": lambda s: s.persistent_aggregate(MemoryMapState(), Count(), ["n", "m"]),
    "is no StateFactory": lambda s: s.persistent_aggregate({}, Count(), "n"),
    "two states are written to /counts.db": lambda s: twice(s, SqliteState.opaque("/counts.db")),
    "two states are written to redis://redis:6379, counts": lambda s: twice(
        s, RedisState.opaque("redis://user:secret@redis:6379", "counts")
    ),
    "whole number from 1": lambda s: s.parallelism_hint(0),
    "cpu= takes a number above 0": lambda s: s.resources(cpu=0),
    "ram= takes a number of bytes": lambda s: s.resources(ram="much"),
    "not both": lambda s: s.chained_agg().aggregate(Count(), "n").partition_aggregate(Count(), "m").chain_end(),
    "without an aggregator": lambda s: s.chained_agg().chain_end(),
    "is no TridentSpout": lambda s: s._topology.new_stream("other", object()),
    "two streams 'tester'": lambda s: s._topology.new_stream("tester", spout("a")),
    "do not fit": lambda s: s._topology.merge([s, s.project("a")]),
    "static state": lambda s: s._topology.new_static_state(MemoryMapState()).new_values_stream(),
    r"each\(\) takes a function or a Function object, and 5": lambda s: s.each("a", 5, "n"),
    r"each\(\) takes a function or a Function object, and <class": lambda s: s.each("a", Function, "n"),
    r"filter\(\) takes a function or a Filter object": lambda s: s.filter("a"),
    r"map\(\) takes a function, and 'a' is none": lambda s: s.map("a"),
    r"flat_map\(\) takes a function, and None is none": lambda s: s.flat_map(None),
    r"peek\(\) takes a function": lambda s: s.peek("a"),
    r"partition_by\(\) of no field": lambda s: s.partition_by([]),
    r"group_by\(\) of no field": lambda s: s.group_by([]),
    r"partition\(\) takes a CustomStreamGrouping object": lambda s: s.partition("a"),
    r"partition_persist\(\) takes a StateUpdater object": lambda s: s.partition_persist(MemoryMapState(), "a", Count()),
    r"state_query\(\) takes a QueryFunction object": lambda s: s.state_query(static(s), "a", len, "n"),
    r"state_query\(\) takes a TridentState object, and <ardea.trident.memory": lambda s: s.state_query(
        MemoryMapState(), "a", MapGet(), "n"
    ),
    r"state_query\(\) takes a TridentState object, and <ardea.trident.stream": lambda s: s.state_query(
        s, "a", MapGet(), "n"
    ),
    "do not begin with": lambda s: s.each("a", lambda _: [], "$txid"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_mistakes_are_named_where_they_are_made(message):
    with pytest.raises(TopologyError, match=message):
        REFUSED[message](stream("a", "b"))


def test_a_state_that_the_topology_writes_may_be_asked_beside():
    """Another place, or only asked: nobody takes anything from anybody."""
    source = stream("a", "b")
    source.persistent_aggregate(SqliteState.opaque("/counts.db"), Count(), "n")
    source.persistent_aggregate(SqliteState.opaque("/others.db"), Count(), "n")
    counts = source._topology.new_static_state(SqliteState.opaque("/counts.db"))
    source.state_query(counts, "a", MapGet(), "n")
    source._topology.plan()


def test_a_static_state_needs_a_factory():
    with pytest.raises(TopologyError, match="'counts' is no StateFactory"):
        TridentTopology("asks").new_static_state("counts")


def test_a_topology_needs_a_stream():
    with pytest.raises(TopologyError, match="no stream"):
        TridentTopology("empty").build()


def test_the_same_stream_through_two_repartitions_into_one_group():
    topology = TridentTopology("twice")
    source = topology.new_stream("one", spout("a"))
    topology.merge([source.shuffle(), source.partition_by("a")]).map(lambda tup: tup)
    plan = topology.plan()
    assert len(plan["spout-one"].streams) == 3


class Own(CustomStreamGrouping):
    def choose_tasks(self, values):
        return []


def test_two_repartitions_in_a_row_both_happen():
    topology = TridentTopology("both")
    topology.new_stream("one", spout("a")).shuffle().partition(Own()).map(lambda tup: tup)
    assert [c.name for c in topology.plan() if c.name.startswith("b-")] == ["b-0", "b-1"]


def test_streams_that_merge_keep_their_numbers_of_tasks():
    """Storm forces the same number on all that merge, and a spout of one task forces one."""
    topology = TridentTopology("merge")
    many = topology.new_stream("many", DirectorySpout.transactional("in", field="a")).parallelism_hint(4)
    one = topology.new_stream("one", spout("a"))
    merged = topology.merge([many, one]).group_by("a")
    merged.persistent_aggregate(MemoryMapState(), Count(), "n").parallelism_hint(2)
    plan = topology.plan()
    tasks = {c.name: c.tasks for c in plan if not c.name.startswith("$")}
    assert (tasks["spout-many"], tasks["spout-one"]) == (4, 1)
    (reader,) = [c for c in plan if any(i.component == "spout-one" for i in c.inputs) and c.name.startswith("b-")]
    assert reader.tasks == 4
    reads = {i.component: i.grouping.describe() for i in reader.inputs if i.stream.startswith("s")}
    assert reads == {"spout-many": "custom(Identity)", "spout-one": "local_or_shuffle"}


def test_a_state_can_have_a_number_of_partitions_of_its_own():
    class Three(MemoryMapState):
        partitions = 3

    def build(hint=None):
        topology = TridentTopology("three")
        counts = topology.new_stream("s", spout("a")).group_by("a").persistent_aggregate(Three(), Count(), "n")
        return (topology if hint is None else counts.parallelism_hint(hint)._stream._topology).plan()

    assert {c.name: c.tasks for c in build()}["b-1"] == 3
    with pytest.raises(TopologyError, match="b-1 is to have 2 and 3 partitions"):
        build(2)


class Forgetting(StateUpdater):
    def update_state(self, state, tuples, collector):
        pass


def identical(folder, partitions=None, config=None):
    """A spout of two tasks, and behind it a state of so many partitions."""
    state, spout = MemoryMapState(), DirectorySpout.transactional(folder, pattern="x")
    state.partitions, spout.config = partitions, config or {}
    topology = TridentTopology("identity")
    lines = topology.new_stream("lines", spout).parallelism_hint(2)
    lines.identity_partition().partition_persist(state, "line", Forgetting())
    return topology


def test_an_identity_partition_before_a_state_with_another_number_of_partitions_is_refused(tmp_path):
    """When it is built; a state with a number of its own is the one that does not get that of those before it."""
    message = "same number of tasks: spout-lines has 2, its reader b-0 3"
    with pytest.raises(TopologyError, match=message) as refused:
        identical(tmp_path, 3).build()
    assert "partitions" in refused.value.hint
    assert {c.tasks for c in identical(tmp_path, 2).plan() if not c.name.startswith("$")} == {2}


@pytest.mark.parametrize("tasks", [2, 3])
def test_an_identity_partition_needs_equally_many_tasks(tmp_path, tasks):
    """Where the planner does not see it: the spout's configuration says how many."""
    (tmp_path / "x").write_text("a\n")
    with Cluster(identical(tmp_path, config={"topology.tasks": tasks})) as cluster:
        cluster.run_until(lambda: cluster.over)
        message = "Can only do an identity grouping when source and target have same number of tasks"
        fits = tasks == 2
        assert cluster.state == ("SUCCEEDED" if fits else "FAILED")
        assert (f"{message}: spout-lines has 3, its reader 2" in cluster.reason) != fits
        assert all(type(error) is UserError for _, error in cluster.record.errors)

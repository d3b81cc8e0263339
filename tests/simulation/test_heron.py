"""Heron's functional topologies (its Python ones), in simulated time: what arrives at the aggregator."""

from __future__ import annotations

from collections import Counter

import pytest

from ardea import Grouping, Topology
from ardea.testing import CollectBolt, RowsSpout, run

from .parts import AB, Identity, TupleCounter, Twice, WordCounter

containers = pytest.mark.parametrize("containers", [1, 2, 3])


def ended(topology, containers, seed=1):
    result = run(topology, containers=containers, seed=seed)
    assert (result.state, result.reason) == ("SUCCEEDED", "")
    assert Counter(result.acked["spout"]) == Counter(row.tup_id for row in result.emitted["spout"])
    return result


def shape(*, spouts=1, bolts=1, bolt=Identity, grouping=Grouping.SHUFFLE):
    """Spout -> bolt -> aggregator."""
    source = AB.spec("spout", par=spouts)
    middle = bolt.spec("bolt", par=bolts, inputs={source: grouping})
    return type("Shape", (Topology,), {"a": source, "b": middle, "c": CollectBolt.spec("sink", inputs=[middle])})


class Each(RowsSpout):
    """Every task emits all rows, as Heron's spouts do."""

    outputs = ["word"]
    rows = AB.rows

    def initialize(self, config, context):
        self.positions[:] = [[0, 1, 0]]


def fan(*, spouts, tasks, bolts):
    """``spouts`` spouts of ``tasks`` tasks each -> one bolt of ``bolts`` tasks -> aggregator."""
    sources = [Each.spec(f"spout{n}", par=tasks) for n in range(spouts)]
    middle = Identity.spec("bolt", par=bolts, inputs=sources)
    parts = {f"s{n}": source for n, source in enumerate(sources)}
    return type("Fan", (Topology,), {**parts, "b": middle, "c": CollectBolt.spec("sink", inputs=[middle])})


@containers
@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        pytest.param(shape(bolts=2, grouping=Grouping.ALL), 20, id="all_grouping"),
        pytest.param(shape(), 10, id="basic_one_task"),
        pytest.param(shape(bolt=Twice), 20, id="bolt_double_emit_tuples"),
        pytest.param(shape(bolts=3, grouping=Grouping.NONE), 10, id="none_grouping"),
        pytest.param(shape(bolts=3), 10, id="one_bolt_multi_tasks"),
        pytest.param(shape(bolts=3, grouping=Grouping.SHUFFLE), 10, id="shuffle_grouping"),
    ],
)
def test_one_spout(topology, expected, containers):
    """One spout task, ten tuples: as many as the shape says reach the aggregator, half of them A."""
    words = Counter(ended(topology, containers).inputs("sink"))
    assert words == {("A",): expected // 2, ("B",): expected // 2}


@containers
@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        pytest.param(fan(spouts=2, tasks=3, bolts=1), 60, id="multi_spouts_multi_tasks"),
        pytest.param(fan(spouts=1, tasks=3, bolts=3), 30, id="one_spout_bolt_multi_tasks"),
        pytest.param(fan(spouts=1, tasks=3, bolts=1), 30, id="one_spout_multi_tasks"),
    ],
)
def test_many_spout_tasks(topology, expected, containers):
    """Each spout task emits ten tuples."""
    result = run(topology, containers=containers, seed=3)
    assert result.state == "SUCCEEDED"
    assert Counter(result.inputs("sink")) == {("A",): expected // 2, ("B",): expected // 2}


@containers
def test_one_spout_two_bolts(containers):
    """Two bolts read one spout: each gets everything."""

    class TwoBolts(Topology):
        spout = AB.spec()
        one = Identity.spec(inputs=[spout])
        two = Identity.spec(inputs=[spout])
        sink = CollectBolt.spec(inputs=[one, two])

    assert len(ended(TwoBolts, containers).inputs("sink")) == 20


@containers
def test_fields_grouping(containers):
    """400 words A and B over two counting tasks: what each counted of its words adds up to 200 each."""

    class Fields(Topology):
        spout = RowsSpout.of(["word"], [["AB"[i % 2]] for i in range(400)]).spec()
        count = WordCounter.spec(par=2, inputs={spout: Grouping.fields("word")})
        sink = CollectBolt.spec(inputs=[count])

    last = {}
    for word, count in ended(Fields, containers).inputs("sink"):
        last[word] = max(count, last.get(word, 0))
    assert last == {"A": 200, "B": 200}


@containers
def test_global_grouping(containers):
    """Everything goes to one of three tasks."""

    class Global(Topology):
        spout = AB.spec()
        count = TupleCounter.spec(par=3, inputs={spout: Grouping.GLOBAL})
        sink = CollectBolt.spec(inputs=[count])

    assert sorted(ended(Global, containers).inputs("sink")) == [(0,), (0,), (10,)]

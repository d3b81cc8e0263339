"""``topology.max.tuple.replays``: a row that fails too often goes to ``__dead_letter``, and the others go on."""

from __future__ import annotations

import pytest

from ardea import Bolt, Spout, Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout, run

ROWS = [[n] for n in range(30)]
MOST = {"topology.max.tuple.replays": 3}
Numbers = RowsSpout.of(["n"], ROWS)


class Chokes(Bolt):
    """Raises on every tenth number."""

    outputs = ["n"]

    def initialize(self, config, context):
        self.seen = []

    def process(self, tup):
        self.seen.append(tup["n"])
        if not tup["n"] % 10:
            raise ValueError("poison")
        self.emit([tup["n"]])


class Silent(Chokes):
    """Never answers for every tenth number."""

    auto_ack = False

    def process(self, tup):
        self.seen.append(tup["n"])
        if tup["n"] % 10:
            self.emit([tup["n"]])
            self.ack(tup)


@pytest.mark.parametrize("containers", [1, 2])
@pytest.mark.parametrize("bolt", [Chokes, Silent])
def test_poison_is_put_aside(bolt, containers, caplog):
    """It is sent once and again three times; then its id, stream and values go to the readers of dead letters."""

    class Poisoned(Topology):
        source = Numbers.spec()
        middle = bolt.spec(inputs=[source])
        sink = CollectBolt.spec(inputs=[middle])
        morgue = CollectBolt.spec(inputs=[source["__dead_letter"]])
        config = {**MOST, "topology.message.timeout.secs": 2}

    with Cluster(Poisoned, containers=containers) as cluster:
        cluster.run_until(lambda: cluster.over, 300)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        seen = [n for (n,) in cluster.record.inputs("middle")]
        letters = cluster.record.inputs("morgue")
        acked = cluster.record.acked["source"]
    assert [seen.count(n) for n in range(30)] == [4 if not n % 10 else 1 for n in range(30)]
    assert sorted(letters) == [(n, "default", [n]) for n in (0, 10, 20)]
    assert sorted(acked) == list(range(30))
    assert sum("failed 4 times" in record.getMessage() for record in caplog.records) == 3


class Named(Spout):
    """Its ids are objects, which no row can hold."""

    outputs = ("n",)

    def initialize(self, config, context):
        self.left = [0, 1, 10]

    def next_tuple(self):
        if self.left:
            n = self.left.pop()
            self.emit([n], tup_id=frozenset([n]))
        else:
            self.finish()


def test_an_id_that_no_row_can_hold_is_a_text_in_its_letter():
    class Poisoned(Topology):
        source = Named.spec()
        middle = Chokes.spec(inputs=[source])
        morgue = CollectBolt.spec(inputs=[source["__dead_letter"]])
        config = MOST

    with Cluster(Poisoned) as cluster:
        cluster.run_until(lambda: cluster.over, 300)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        letters = cluster.record.inputs("morgue")
        acked = cluster.record.acked["source"]
    assert sorted(letters) == [(f"tup_id frozenset({{{n}}})", "default", [n]) for n in (0, 10)]
    assert set(acked) == {frozenset([n]) for n in (0, 1, 10)}


def test_without_a_reader_it_is_given_up():
    """The topology ends FAILED and says which row it was."""

    class Poisoned(Topology):
        source = Numbers.spec(config={"topology.max.tuple.replays": 0})
        middle = Chokes.spec(inputs=[source])

    result = run(Poisoned)
    assert result.state == "FAILED"
    assert result.reason.startswith("3 tuples were given up")
    assert "failed 1 times, more than topology.max.tuple.replays lets it, and nobody reads" in result.reason


def test_what_a_death_broke_does_not_count():
    """However often the bolt dies, its rows are no poison."""

    class Dies(Topology):
        source = Numbers.spec(config={"topology.max.tuple.replays": 0})
        sink = CollectBolt.spec(inputs=[source])
        morgue = CollectBolt.spec(inputs=[source["__dead_letter"]])

    with Cluster(Dies, cost={"sink": 0.01}, containers=2) as cluster:
        for _ in range(5):
            cluster.advance(0.2)
            cluster.kill("sink-0")
        cluster.run_until(lambda: cluster.over, 120)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        assert cluster.record.inputs("morgue") == []
        assert {n for (n,) in cluster.record.inputs("sink")} == set(range(30))


def test_a_letter_that_fails_is_sent_again_for_ever():
    """It is dead already: the reader of dead letters has to take it."""

    class Fussy(Bolt):
        def initialize(self, config, context):
            self.asked = 0

        def process(self, tup):
            self.asked += 1
            if self.asked < 9:
                raise ValueError("not now")

    class Poisoned(Topology):
        source = Numbers.spec()
        middle = Chokes.spec(inputs=[source])
        morgue = Fussy.spec(inputs=[source["__dead_letter"]])
        config = MOST

    result = run(Poisoned)
    assert (result.state, result.reason) == ("SUCCEEDED", "")
    assert len(result.inputs("morgue")) == 11

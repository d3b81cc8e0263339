"""DRPC: requests are answered by a topology while it counts; errors have Storm's names."""

from __future__ import annotations

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from ardea import FailedException, TopologyError
from ardea.drpc import DrpcError, DrpcErrorType, LocalDrpc, Requests
from ardea.drpc.endpoint import Endpoint
from ardea.testing import Cluster
from ardea.trident import (
    Aggregator,
    BatchSpout,
    Count,
    FilterNull,
    FixedBatchSpout,
    Function,
    MapGet,
    MemoryMapState,
    QueryFunction,
    SqliteState,
    Sum,
    TridentTopology,
)
from ardea.trident.drpc import DrpcAddress

from .parts import AT_ONCE


class Feeder(BatchSpout):
    """Storm's FeederBatchSpout: each ``feed`` is a batch."""

    outputs = ["sentence"]

    def __init__(self):
        self.batches, self.over = [], False

    def __deepcopy__(self, memo):
        return self

    def emit_batch(self, batch_id, collector):
        for sentence in self.batches[batch_id - 1]:
            collector.emit([sentence])

    def is_ready(self, batch_id):
        return batch_id <= len(self.batches)

    def finished(self, batch_id):
        return self.over and not self.is_ready(batch_id)


def split(tup):
    return tup[0].split()


class Counting:
    """The word count of Storm's TridentIntegrationTest, and its query."""

    def __init__(self):
        self.feeder, self.drpc = Feeder(), LocalDrpc()
        self.topology = TridentTopology("words")
        counts = (
            self.topology.new_stream("tester", self.feeder)
            .each("sentence", split, "word")
            .group_by("word")
            .persistent_aggregate(MemoryMapState(), Count(), "count")
            .parallelism_hint(6)
        )
        (
            self.topology.new_drpc_stream("words", self.drpc)
            .each("args", split, "word")
            .group_by("word")
            .state_query(counts, "word", MapGet(), "count")
            .aggregate(Sum(), "sum", "count")
            .project("sum")
        )

    def feed(self, cluster, *sentences):
        self.feeder.batches.append(sentences)
        wanted = len(self.feeder.batches)
        cluster.run_until(lambda: len(cluster.record.acked["$mastercoord-bg0"]) >= 2 * wanted)

    def ask(self, cluster, args):
        answer = self.drpc.submit("words", args)
        cluster.run_until(answer.done)
        return json.loads(answer.result())


def test_storms_word_count_with_queries():
    counting = Counting()
    with Cluster(counting.topology, containers=2, config=AT_ONCE) as cluster:
        counting.feed(cluster, "hello the man said", "the")
        assert counting.ask(cluster, "the") == [[2]]
        assert counting.ask(cluster, "hello") == [[1]]
        counting.feed(cluster, "the man on the moon", "where are you")
        assert counting.ask(cluster, "the") == [[4]]
        assert counting.ask(cluster, "man") == [[2]]
        assert counting.ask(cluster, "man where you the") == [[8]]
        counting.feeder.over = True
        counting.drpc.close()
        cluster.run_until(lambda: cluster.over)
        assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])


def test_its_plan():
    """Reference 3.11: the state's tasks serve two batch groups and wait for the commit of one."""
    plan = Counting().topology.plan()
    assert {c.name: c.tasks for c in plan} == {
        "$mastercoord-bg0": 1,
        "$spoutcoord-spout-tester": 1,
        "spout-tester": 1,
        "spout-words0": 1,
        "b-0": 1,  # knows who asks
        "b-1": 1,  # splits and counts
        "b-2": 6,  # the state
        "b-3": 1,  # splits requests
        "b-4": 1,  # adds up
        "b-5": 1,  # answers
    }
    reads = {f"{i.component}:{i.stream}": i.grouping.describe() for i in plan["b-2"].inputs}
    assert reads == {
        "$mastercoord-bg0:$commit": "all",
        "b-1:$coord-bg0": "direct",
        "b-1:s2": "fields(word)",
        "b-3:$coord-bg1": "direct",
        "b-3:s4": "fields(word)",
    }


def simple(operations, drpc=None):
    drpc = drpc or LocalDrpc()
    topology = TridentTopology("simple")
    operations(topology.new_drpc_stream("f", drpc))
    return topology, drpc


SQUARE = {"2": 4, "10": 100, "1": 1, "0": 0}


def test_a_stream_of_requests_alone():
    """Storm's DRPCIntegrationTest; requests are batches of their own, and many are open at once."""
    topology, drpc = simple(lambda s: s.map(lambda tup: int(tup["args"]) ** 2, "n").shuffle().parallelism_hint(3))
    with Cluster(topology, containers=2) as cluster:
        answers = {args: drpc.submit("f", args) for args in SQUARE}
        cluster.run_until(lambda: all(answer.done() for answer in answers.values()))
        assert {args: json.loads(answer.result()) for args, answer in answers.items()} == {
            args: [[n]] for args, n in SQUARE.items()
        }


def test_nothing_is_an_answer():
    topology, drpc = simple(lambda s: s.filter(lambda _: False).filter(FilterNull()))
    with Cluster(topology) as cluster:
        answer = drpc.submit("f", "x")
        cluster.run_until(answer.done)
        assert answer.result() == "[]"


HERE = r" at test_drpc\.py:\d+"


@pytest.mark.parametrize(
    ("error", "said"), [(FailedException("no"), "b-1-0: no"), (ValueError("no"), f"b-1-0: ValueError: no{HERE}")]
)
def test_what_raises_fails_the_request_and_no_other(error, said):
    def fragile(tup):
        if tup["args"] == "bad":
            raise error
        return tup["args"] + "!!!"

    topology, drpc = simple(lambda s: s.map(fragile, "x"))
    with Cluster(topology) as cluster:
        bad, good = drpc.submit("f", "bad"), drpc.submit("f", "aaa")
        cluster.run_until(lambda: bad.done() and good.done())
        assert good.result() == '[["aaa!!!"]]'
        with pytest.raises(DrpcError, match=f"^FAILED_REQUEST: {said}$") as caught:
            bad.result()
        assert caught.value.type is DrpcErrorType.FAILED_REQUEST


class Tells(Function):
    """A row for each name, until one is bad."""

    def execute(self, tup, collector):
        for name in tup["args"].split():
            if name == "bad":
                raise ValueError("no")
            collector.emit([f"secret of {name}"])


class Asks(QueryFunction):
    """The same, of a state."""

    def batch_retrieve(self, state, tuples):
        return [None] * len(tuples)

    def execute(self, tup, answer, collector):
        Tells().execute(tup, collector)


@pytest.mark.parametrize(
    "told",
    [
        lambda s: s.each("args", Tells(), "secret"),
        lambda s: s.state_query(s._topology.new_static_state(MemoryMapState()), "args", Asks(), "secret"),
    ],
    ids=["function", "query"],
)
def test_a_caller_gets_nothing_of_a_request_that_failed_before(told):
    topology, drpc = simple(lambda s: told(s).project("secret"))
    with Cluster(topology) as cluster:
        for args in ("alice bad", "bob"):
            answer = drpc.submit("f", args)
            cluster.run_until(answer.done)
        assert answer.result() == '[["secret of bob"]]'


def fails(tup):
    raise ValueError("no")


class Never(Aggregator):
    """Raises when the batch is complete."""

    def init(self, batch_id, collector):
        return None

    def aggregate(self, value, tup, collector):
        return value

    def complete(self, value, collector):
        raise ValueError("no")


@pytest.mark.parametrize(
    "operations",
    [
        lambda s: s.map(lambda tup: tup["args"], "x").shuffle().map(fails, "y").parallelism_hint(3),
        lambda s: (
            s.map(lambda tup: tup["args"], "x").shuffle().map(lambda tup: tup["x"], "y").shuffle().map(fails, "z")
        ),
        lambda s: s.shuffle().aggregate(Never(), "n", "args"),
    ],
)
def test_who_asks_hears_why_from_wherever_it_failed(operations):
    topology, drpc = simple(operations)
    with Cluster(topology, containers=2) as cluster:
        answer = drpc.submit("f", "x")
        cluster.run_until(answer.done)
        assert re.fullmatch(rf"FAILED_REQUEST: b-\d-\d: ValueError: no{HERE}", str(answer.exception()))


def test_a_request_that_takes_longer_than_the_message_timeout_is_told_so():
    topology, drpc = simple(lambda s: s.shuffle().map(lambda tup: tup["args"], "x"))
    with Cluster(topology, cost={"b-1": 40.0}) as cluster:
        answer = drpc.submit("f", "x")
        cluster.run_until(answer.done)
        assert str(answer.exception()) == (
            "SERVER_TIMEOUT: f gave no answer within topology.message.timeout.secs (30 s)"
        )


@pytest.mark.parametrize("victim", ["b-1-0", "spout-f0-0", "manager-1"])
def test_a_death_fails_what_is_open_and_later_requests_are_answered(victim):
    topology, drpc = simple(lambda s: s.shuffle().map(lambda tup: tup["args"], "x"))
    with Cluster(topology, containers=2, cost={"b-1": 0.05}) as cluster:
        answers = [drpc.submit("f", str(n)) for n in range(5)]
        cluster.at(0.06, lambda c: c.kill(victim))
        cluster.run_until(
            lambda: (not victim.startswith("spout") and all(a.done() for a in answers)) or cluster.time > 9
        )
        later = drpc.submit("f", "later")
        cluster.run_until(later.done)
        assert later.result() == '[["later"]]'
        for answer in answers:
            if answer.done() and (error := answer.exception()) is not None:
                assert error.type is DrpcErrorType.FAILED_REQUEST


def test_what_a_stream_of_requests_cannot_do(tmp_path):
    topology, _ = simple(lambda s: topology_merge(s))
    with pytest.raises(TopologyError, match="Cannot join DRPC stream with streams originating from other spouts"):
        topology.build()
    topology, _ = simple(
        lambda s: s.group_by("args").persistent_aggregate(SqliteState.opaque(tmp_path / "s"), Count(), "n")
    )
    with pytest.raises(TopologyError, match="requests are no transactions"):
        topology.build()
    with pytest.raises(TopologyError, match="two DRPC streams 'f'"):
        topology.new_drpc_stream("f")


def topology_merge(stream):
    topology = stream._topology
    other = topology.new_stream("other", FixedBatchSpout(["args"], [], 1))
    topology.merge([stream, other])


def test_requests():
    requests = Requests("f", 2)
    first, second = requests.submit("a"), requests.submit("b")
    with pytest.raises(DrpcError, match="INTERNAL_ERROR: 2 requests of f are waiting"):
        requests.submit("c")
    assert requests.take() is first
    assert requests.answer(first.id, "[]")
    assert not requests.answer(first.id, "[]"), "once"
    assert first.answer.result() == "[]"
    assert requests.timed_out(second, 3).type is DrpcErrorType.SERVER_TIMEOUT
    assert requests.take() is None, "nobody waits for it"
    third = requests.submit("c")
    requests.close()
    assert third.answer.exception().type is DrpcErrorType.SERVER_SHUTDOWN
    with pytest.raises(DrpcError, match="SERVER_SHUTDOWN"):
        requests.submit("d")


def test_a_caller_who_waits_too_long():
    with pytest.raises(DrpcError, match="SERVER_TIMEOUT"):
        LocalDrpc().execute("f", "x", timeout=0.01)


def test_in_a_pod_answers_come_to_its_ip(monkeypatch):
    """Pods do not know one another by name."""
    monkeypatch.setenv("POD_IP", "10.1.2.3")
    endpoint = Endpoint(Requests("counts", 1), "0.0.0.0", 0, 1.0, 1000)
    assert endpoint.address.startswith("10.1.2.3:")
    endpoint.close()


def test_a_source_that_is_not_there_any_more_is_an_error_of_the_connection():
    """Another server has the port by now, and does not speak HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as other, ThreadPoolExecutor(1) as pool:
        host, port = other.getsockname()

        def talks():
            connection, _ = other.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"220 mail\r\n\r\n")

        talking = pool.submit(talks)
        with pytest.raises(OSError, match="does not speak HTTP"):
            DrpcAddress("f", None, host, port).reply(("id", f"{host}:{port} token"), "why", failed=True)
        talking.result(10)

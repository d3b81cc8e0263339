"""A new version that cannot use the state of the former one is put back, and nothing is lost or counted twice."""

from __future__ import annotations

import random

import pytest

from ardea import Grouping, KeyedState, Timers, Topology
from ardea.errors import ProtocolError
from ardea.keyed import TaskState
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import Count, Counted, EffectivelyOnce, Words, states
from tests.simulation.snapshots.test_updates import CONFIG, Loud, all_counted
from tests.sizes import size


class OfText(Count):
    counts = KeyedState(default="", type=str)


class OfTextLater(Count):
    """A state that only ``initialize`` asks for."""

    counts = None

    def initialize(self, config, context):
        self.counts = context.keyed_state("counts", default="", type=str)


class Afraid(Count):
    """Raises each time."""

    def restored(self, snapshot_id):
        raise ValueError("what is this?")


class DiesYoung(Count):
    def initialize(self, config, context):
        raise ValueError("no such table")


class PositionIsText(Words):
    position = TaskState(default="", type=str)


class Reminded(Count):
    timers = Timers()

    def initialize(self, config, context):
        self.context = context

    def process(self, tup):
        super().process(tup)
        self.timers.set(tup["word"], self.context.now() + 20)

    def on_timer(self, name, key, at):
        pass


class RaisesLater(Reminded):
    """One task has its state, and raises at each timer; the other one cannot begin yet."""

    def restored(self, snapshot_id):
        if self.context.this_task_index == 1:
            raise ValueError("the database is away")

    def on_timer(self, name, key, at):
        raise ValueError("no such table")


def version(count=Count, words=Words):
    class Next(Topology):
        words_ = words.spec(name="words", par=2)
        count_ = count.spec(name="count", par=2, inputs={words_: Grouping.fields("word")})

    return EffectivelyOnce(Next)


@pytest.fixture
def cluster():
    with Cluster(EffectivelyOnce(Counted), containers=2, config=CONFIG, cost={"words": 0.02}) as topology:
        yield topology


@pytest.mark.parametrize(
    ("next_", "says"),
    [
        (version(OfText), "count: what the snapshot holds of state 'counts' at 'w"),
        (version(OfTextLater), "count: what the snapshot holds of state 'counts' at 'w"),
        (version(words=PositionIsText), "words: what the snapshot holds of state 'position' cannot be read: it is no"),
    ],
)
def test_types_that_do_not_read_the_state_put_the_former_version_back(cluster, next_, says):
    cluster.advance(3.0)
    began = cluster.time
    done = cluster.updated(cluster.update_request(next_, patience=60.0))
    assert done.step == "refused"
    assert "-0 cannot go on: " in done.reason or "-1 cannot go on: " in done.reason
    assert says in done.reason
    assert "Give fields that are new a default" in done.reason
    assert cluster.time < began + 30, "nobody waits for what no time will mend"
    records = Inside(cluster).store.records
    settled = [record for record in records if not record.tasks][-1]
    assert settled.restore == next(record for record in records if not record.tasks).restore, "(former plan, t+2, n)"
    all_counted(cluster)
    assert type(cluster.task("count-0", Count)) is Count


@pytest.mark.parametrize(
    ("bolt", "says"), [(Afraid, "raised ValueError: what is this?"), (DiesYoung, "all go back to their last snapshot")]
)
def test_what_raises_as_it_begins_has_the_patience_of_the_update(cluster, bolt, says):
    cluster.advance(3.0)
    done = cluster.updated(cluster.update_request(version(bolt), patience=20.0))
    assert done.step == "refused"
    assert done.reason.startswith("after 20 s, ")
    assert says in done.reason or "does not have its state yet" in done.reason
    all_counted(cluster)


def test_what_ends_timelines_before_all_have_begun_puts_the_former_version_back():
    with Cluster(version(Reminded), containers=2, config=CONFIG, cost={"words": 0.02}) as cluster:
        cluster.advance(3.0)
        began = cluster.time
        done = cluster.updated(cluster.update_request(version(RaisesLater), patience=60.0))
        assert (cluster.state, done.step) == ("RUNNING", "refused")
        assert "count has ended 4 timelines without a snapshot that counts in between" in done.reason
        assert "no such table" in done.reason
        assert cluster.time < began + 40, "nobody waits for what no time will mend"
        all_counted(cluster)
        assert type(cluster.task("count-0", Count)) is Reminded


def test_what_raises_once_is_no_reason(cluster, monkeypatch):
    raised = []

    def once(self, snapshot_id):
        if not raised:
            raised.append(snapshot_id)
            raise ValueError("the database is away")

    monkeypatch.setattr(Afraid, "restored", once)
    cluster.advance(3.0)
    assert cluster.updated(cluster.update_request(version(Afraid))).step == "done"
    assert raised
    all_counted(cluster)


def test_a_paused_topology_is_not_asked_whether_it_can_read(cluster):
    cluster.advance(3.0)
    cluster.deactivate()
    cluster.advance(1.0)
    assert cluster.updated(cluster.update_request(version())).step == "done"
    cluster.activate()
    all_counted(cluster)


def test_nothing_is_emitted_again_by_an_update_that_is_put_back():
    Loud.emitted = 0
    with Cluster(version(words=Loud), containers=2, config=CONFIG, cost={"words": 0.02}) as cluster:
        cluster.advance(3.0)
        assert cluster.updated(cluster.update_request(version(OfText, Loud))).step == "refused"
        all_counted(cluster)
        positions = states(Inside(cluster).store, Inside(cluster).store.records[-1].committed)[0]
    assert Loud.emitted == sum(positions)


def test_a_file_that_is_damaged_is_the_end_by_the_former_plan_too(cluster):
    cluster.advance(3.0)
    store = Inside(cluster).store
    request = cluster.update_request(version(OfText))
    cluster.update(request)
    cluster.run_until(lambda: "count-0" in cluster.names and cluster.update(request).step == "switching", 60)
    name = max(name for name in store.files if name.endswith((".base", ".delta")))
    store.files[name] = store.files[name][:-1]
    cluster.run_until(lambda: cluster.over, 120)
    assert cluster.state == "FAILED"
    assert name in cluster.reason


@pytest.mark.parametrize("seed", range(size(1, 1000, whole=10)))
def test_whoever_dies_while_it_is_put_back(seed):
    dice = random.Random(seed)
    options = {"containers": dice.randint(1, 3), "seed": seed, "config": CONFIG, "cost": {"words": 0.02}}
    with Cluster(EffectivelyOnce(Counted), **options) as cluster:
        cluster.run_until(lambda: counts_something(Inside(cluster).store), 60)  # code that reads nothing can read it
        cluster.advance(dice.uniform(0.0, 3.0))
        next_ = dice.choice([version(OfText), version(OfTextLater), version(words=PositionIsText), version(Afraid)])
        request = cluster.update_request(next_, patience=dice.choice([3.0, 20.0]))
        step = dice.choice(["draining", "switching", "putting back"])
        cluster.run_until(lambda: (seen := cluster.update(request)) is not None and seen.step in (step, "refused"), 300)
        for _ in range(4):
            cluster.kill(dice.choice([name for name in cluster.running if name != "report"]))
            cluster.advance(dice.choice([0.05, 0.3, 2.0]) * dice.random())
            if refused(cluster, request):
                break
        cluster.run_until(lambda: refused(cluster, request), 300)
        all_counted(cluster)


def counts_something(store):
    number = store.records[-1].committed if store.records else 0
    return number and bool(states(store, number)[1])


def refused(cluster, request):
    """A master that comes after it was put back knows nothing of it, but that another plan is in force."""
    try:
        progress = cluster.update(request)
    except ProtocolError as error:
        return error.code == "UPDATE_STALE"
    assert progress is None or progress.step != "done"
    return progress is not None and progress.step == "refused"

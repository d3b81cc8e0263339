"""Totals over lives, containers and metrics managers never fall."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.metrics import Identity, Lives, Overview, Registry, Summary, TaskSummary, Totals, by_component
from ardea.metrics_manager.metrics_state import MetricsState

ACKED = "ardea_instance_tuples_acked_total"
LATENCY = "ardea_spout_complete_latency_seconds"


class Task:
    """A process with lives, and all it ever counted."""

    def __init__(self, task: int = 1, component: str = "words", container: int = 1) -> None:
        self.identity = Identity("t", container, "heron_instance", component, task)
        self.acked = 0
        self.start(1)

    def start(self, life: int) -> None:
        self.registry = Registry(msgspec.structs.replace(self.identity, life=life))
        self.life = life

    def count(self, number: int, latency: float = 0.01) -> bytes:
        self.acked += number
        self.registry.counter(ACKED).value += number
        self.registry.histogram(LATENCY).observe(latency, number)
        self.registry.gauge("ardea_spout_pending_tuples").value = number
        self.registry.gauge("ardea_process_resident_memory_bytes").value = 1000
        return self.registry.snapshot()


def report(state: MetricsState, admission: int = 1, container: int = 1) -> bytes:
    return msgspec.msgpack.encode(state.summary(container, admission))


@given(st.lists(st.tuples(st.integers(1, 4), st.dictionaries(st.sampled_from("ab"), st.integers(0, 99)))))
def test_totals_of_lives_never_fall_whatever_comes_in_whatever_order(reports):
    lives: Lives[str] = Lives()
    before: dict[str, tuple[float, ...]] = {}
    for life, values in reports:
        lives.accept(life, {key: (value,) for key, value in values.items()})
        totals = lives.totals()
        assert all(totals[key] >= value for key, value in before.items())
        before = totals


@given(st.lists(st.lists(st.integers(0, 50), min_size=1), min_size=1))
def test_totals_are_exact_when_the_last_of_each_life_arrived(lives_of_increments):
    lives: Lives[str] = Lives()
    for life, increments in enumerate(lives_of_increments, start=1):
        counted = 0
        for increment in increments:
            counted += increment
            assert lives.accept(life, {"n": (counted,)})
    assert lives.totals()["n"] == (sum(map(sum, lives_of_increments)),)


def test_a_life_that_is_over_changes_nothing():
    lives: Lives[str] = Lives()
    lives.accept(2, {"n": (5,)})
    assert not lives.accept(1, {"n": (100,)})
    assert lives.totals() == {"n": (5,)}


class Machine:
    """A task, its metrics manager and the master, each of which may start anew."""

    def __init__(self) -> None:
        self.task, self.state, self.overview = Task(), MetricsState(), Overview()

    def step(self, what: str, number: int) -> None:
        if what == "task":
            self.task.start(self.task.life + 1)
        elif what == "metrics manager":
            self.state = MetricsState()
        elif what == "master":
            self.overview = Overview()
        self.state.accept(self.task.count(number), 0)
        self.overview.accept(report(self.state), 0)

    @property
    def acked(self) -> int:
        return by_component(self.overview.processes())["words"].acked


@given(st.lists(st.tuples(st.sampled_from(["run", "task", "metrics manager"]), st.integers(0, 9)), min_size=1))
def test_a_master_that_lives_is_exact_whoever_else_dies(steps):
    machine = Machine()
    for what, number in steps:
        machine.step(what, number)
        assert machine.acked == machine.task.acked


@given(st.lists(st.tuples(st.sampled_from(["run", "task", "master"]), st.integers(0, 9)), min_size=1))
def test_a_new_master_learns_of_former_lives_from_the_metrics_manager(steps):
    machine = Machine()
    for what, number in steps:
        machine.step(what, number)
        assert machine.acked == machine.task.acked


def test_a_replaced_container_begins_with_life_one_again_and_still_adds_up():
    overview, first, second = Overview(), MetricsState(), MetricsState()
    first.accept(Task().count(10), 0)
    overview.accept(report(first, admission=1), 0)
    second.accept(Task().count(3), 0)
    overview.accept(report(second, admission=2), 0)
    overview.accept(report(first, admission=1), 0)
    assert by_component(overview.processes())["words"].acked == 13


def test_components_sum_over_containers_and_managers_have_rows_of_their_own():
    overview = Overview()
    for container, tasks in {1: (1, 2), 2: (3,)}.items():
        state = MetricsState()
        for task in tasks:
            state.accept(Task(task, "words", container).count(task, latency=0.01 * task), 0)
        manager = Registry(Identity("t", container, "stream_manager"))
        manager.counter("ardea_process_cpu_seconds_total").value = 2.5
        state.accept(manager.snapshot(), 0)
        overview.accept(report(state, container=container), 0)
    words = by_component(overview.processes())
    assert list(words) == ["words"]
    assert (words["words"].tasks, words["words"].acked, words["words"].pending) == (3, 6, 6)
    assert words["words"].resident_memory_bytes == 3000
    assert words["words"].mean() == pytest.approx((0.01 + 2 * 0.02 + 3 * 0.03) / 6)
    assert 0.02 < words["words"].quantile(0.99) <= 0.05
    rows = [(row.container, row.process, row.task, row.totals.cpu_seconds) for row in overview.processes()]
    assert rows == [
        (1, "heron_instance", 1, 0),
        (1, "heron_instance", 2, 0),
        (1, "stream_manager", -1, 2.5),
        (2, "heron_instance", 3, 0),
        (2, "stream_manager", -1, 2.5),
    ]


def test_what_happened_since_an_earlier_look():
    task, state, overview = Task(), MetricsState(), Overview()
    looks = []
    for number, latency in ((100, 0.001), (10, 1.0)):
        state.accept(task.count(number, latency), 0)
        overview.accept(report(state), 0)
        looks.append(by_component(overview.processes())["words"])
    recent = looks[1].since(looks[0])
    assert (recent.acked, recent.pending, recent.tasks) == (10, 10, 1)
    assert recent.quantile(0.5) > 0.5 > looks[1].quantile(0.5)
    assert recent.quantile(0.5, "execute_duration") is None
    assert looks[1].since(looks[1]).mean() is None


def test_a_silent_container_has_nothing_pending_but_keeps_its_counts():
    task, state, overview = Task(), MetricsState(), Overview(expiry=60)
    state.accept(task.count(7), 0)
    overview.accept(report(state), 0)
    overview.expire(59)
    assert by_component(overview.processes())["words"].pending == 7
    overview.expire(60)
    totals = by_component(overview.processes())["words"]
    assert (totals.tasks, totals.pending, totals.acked) == (0, 0, 7)


def test_a_silent_task_has_nothing_pending_either():
    task, state, overview = Task(), MetricsState(expiry=60), Overview()
    state.accept(task.count(7), 0)
    state.expire(60)
    overview.accept(report(state), 60)
    totals = by_component(overview.processes())["words"]
    assert (totals.tasks, totals.pending, totals.acked) == (0, 0, 7)


def told(overview, task, state, now, admission=1):
    """The metrics manager of the task's container sends its summary."""
    overview.accept(report(state, admission, task.identity.container), now)
    return overview.processes({task.identity.task: 1})


def test_a_task_that_has_moved_is_one_process_with_all_that_it_has_counted():
    """To a container with a lower number; the manager of the former one goes on to tell of it."""
    overview, former, present = Overview(), (Task(container=2), MetricsState()), (Task(container=1), MetricsState())
    former[1].accept(former[0].count(5), 0)
    (row,) = told(overview, *former, 0)
    assert (row.container, row.totals.tasks, row.totals.acked) == (2, 1, 5)
    present[1].accept(present[0].count(3), 1)
    for manager, now in ((present, 1), (former, 2)):
        (row,) = told(overview, *manager, now)
        assert (row.container, row.totals.tasks, row.totals.acked, row.totals.pending) == (1, 1, 8, 3)


def test_without_a_plan_a_task_is_where_it_was_heard_last():
    overview = Overview()
    for now, container in enumerate((2, 1, 3)):
        task, state = Task(container=container), MetricsState()
        state.accept(task.count(1), 0)
        overview.accept(report(state, container=container), now)
        (row,) = overview.processes()
        assert (row.container, row.totals.acked) == (container, now + 1)


def test_masters_in_two_pods_are_two_processes_until_one_is_silent():
    """Both are container 0 in its first place."""
    overview = Overview(expiry=60)

    def tells(holder, memory, now):
        gauges = {"ardea_process_resident_memory_bytes": memory}
        master = TaskSummary("topology-master", "", -1, 1, {}, {}, gauges)
        overview.accept(msgspec.msgpack.encode(Summary(0, 1, [master], holder)), now)
        overview.expire(now)
        return [row.totals.resident_memory_bytes for row in overview.processes()]

    assert tells("a", 10.0, 0) == [10]
    assert tells("b", 20.0, 1) == [10, 20]
    assert tells("a", 11.0, 2) == [11, 20]
    assert tells("a", 12.0, 61) == [12]


def test_how_far_time_is_behind_is_known_as_long_as_the_task_says_so():
    registry, state, overview = Registry(Identity("t", 1, "count-0", "count", 1, 1)), MetricsState(), Overview()
    for lag in (12.5, None):
        if lag is None:
            registry.remove_gauge("ardea_watermark_lag_seconds")
        else:
            registry.gauge("ardea_watermark_lag_seconds").value = lag
        state.accept(registry.snapshot(), 0)
        overview.accept(report(state, container=1), 0)
        assert by_component(overview.processes())["count"].watermark_lag_seconds == lag


def test_a_component_is_as_far_behind_in_time_as_its_last_task_and_one_without_a_watermark_is_not():
    lags = Totals(watermark_lag_seconds=2.0), Totals(watermark_lag_seconds=-7.5), Totals()
    assert Totals.of_all(lags).watermark_lag_seconds == 2.0
    assert Totals.of_all(lags[1:]).watermark_lag_seconds == -7.5
    assert Totals.of_all([lags[2], lags[2]]).watermark_lag_seconds is None
    assert Totals.of_all([]) == Totals()
    assert lags[1].since(lags[0]).watermark_lag_seconds == -7.5
    assert lags[2].since(lags[0]).watermark_lag_seconds is None


def test_a_summary_is_decodable_by_its_struct():
    state = MetricsState()
    state.accept(Task().count(7), 0)
    told = msgspec.msgpack.decode(report(state), type=Summary)
    assert (told.container, told.admission) == (1, 1)
    assert isinstance(told.processes[0], TaskSummary)
    assert told.processes[0].current[ACKED] == (7,)
    with pytest.raises(msgspec.MsgspecError):
        Overview().accept(b"\xc1", 0)


def test_a_summary_of_a_metrics_manager_that_says_nothing_of_supervisors_is_read():
    """It ended with the processes once, under the same number of the protocol."""
    overview = Overview()
    told = overview.accept(msgspec.msgpack.encode([1, 1, []]), 0)
    assert (told.container, told.holder, told.supervised) == (1, "", [])


def test_who_holds_spouts_back_is_said_of_the_task_over_the_lives_of_its_manager():
    """Stream managers measure it; each of two containers reports its own tasks."""
    overview, paused = Overview(), "ardea_stmgr_backpressure_seconds_total"
    for container, lives in ((1, [{"count-0": 2.0, "count-1": 0.5}, {"count-0": 3.0}]), (2, [{"add-0": 1.0}])):
        state = MetricsState()
        for task in ("count-0", "count-1", "add-0"):
            if any(task in counts for counts in lives):
                name, _, index = task.partition("-")
                told = Registry(Identity("t", container, task, name, int(index) + 10 * container))
                state.accept(told.snapshot(), 0.0)
        for life, counts in enumerate(lives, start=1):
            manager = Registry(Identity("t", container, "stream-manager", life=life))
            for task, seconds in counts.items():
                manager.counter(paused, initiator=task).value = seconds
            state.accept(manager.snapshot(), float(life))
            overview.accept(report(state, container=container), float(life))
    rows = {row.process: row.totals.initiated_seconds for row in overview.processes()}
    assert rows == {"count-0": 5.0, "count-1": 0.5, "add-0": 1.0, "stream-manager": 0.0}
    assert by_component(overview.processes())["count"].initiated_seconds == 5.5


NESTED = b"\x91" * 3000 + b"\xc0"


def test_a_summary_that_is_nested_without_end_is_unreadable():
    """Elements beyond a struct's own are passed over one inside the other."""
    summary = msgspec.msgpack.encode(Summary(1, 1, []))
    with pytest.raises(msgspec.DecodeError):
        Overview().accept(bytes([summary[0] + 1]) + summary[1:] + NESTED, 0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_costs_itself_only(value):
    """A value of the author's may be one; a master that told of it would end, in each of its lives."""
    registry = Registry(Identity("t", 1, "heron_instance", "words", 1))
    registry.counter(ACKED).value = 7
    registry.gauge("ardea_user_value", metric="job-tasks").value = value
    state, overview = MetricsState(), Overview()
    state.accept(registry.snapshot(), 0)
    overview.accept(report(state), 0)
    assert by_component(overview.processes())["words"].acked == 7
    assert by_component(overview.processes())["words"].job_tasks == 0

    task = TaskSummary("p", "words", 1, 1, {ACKED: (value,)}, {ACKED: (3.0,), LATENCY: (1.0,), "x": (1.0,)}, {})
    other = Overview()
    other.accept(msgspec.msgpack.encode(Summary(1, 1, [task])), 0)
    assert by_component(other.processes())["words"].acked == 3
    assert by_component(other.processes())["words"].complete_latency == ()

"""What the metrics manager exports."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ardea.metrics import (
    JOB_TASKS,
    JOB_TASKS_DONE,
    STREAM_BATCHES,
    STREAM_BATCHES_OPEN,
    TRIDENT_LATENCY,
    AssignableMetric,
    HistogramValue,
    Identity,
    Overview,
    Registry,
    Snapshot,
    Totals,
    by_component,
)
from ardea.metrics.sinks import Sample
from ardea.metrics_manager.metrics_state import MetricsState, Result
from ardea.state.records import RunState

ACKED = "ardea_instance_tuples_acked_total"
DURATION = "ardea_instance_execute_duration_seconds"


def registry(task: int = 1, life: int = 1) -> Registry:
    return Registry(Identity("words-1", 1, "heron_instance", "count", task, life))


def find(state: MetricsState, name: str) -> list[Sample]:
    return [sample for sample in state.samples() if sample.name == name]


def test_a_sample_has_the_labels_of_its_scope_and_its_own():
    state, instance = MetricsState(), registry()
    instance.counter("ardea_instance_tuples_emitted_total", stream="default").value = 3
    assert state.accept(instance.snapshot(), 0) is Result.ACCEPTED
    (sample,) = state.samples()
    assert sample.value == 3
    assert sample.labels == {
        "topology": "words",
        "topology_id": "words-1",
        "container": "1",
        "component": "count",
        "task": "1",
        "stream": "default",
    }


def test_a_snapshot_whose_text_is_not_utf8_is_invalid():
    state, instance = MetricsState(), registry()
    instance.counter("ardea_instance_tuples_emitted_total", stream="default").value = 3
    broken = instance.snapshot().replace(b"default", b"defaul\xff")
    assert state.accept(broken, 0) is Result.INVALID
    assert not list(state.samples())


def test_a_snapshot_that_is_nested_without_end_is_invalid():
    snapshot = Registry(Identity("t", 1, "heron_instance", "words", 1)).snapshot()
    assert (
        MetricsState().accept(bytes([snapshot[0] + 1]) + snapshot[1:] + b"\x91" * 3000 + b"\xc0", 0) is Result.INVALID
    )


def test_managers_share_the_process_series_with_instances():
    state, manager, instance = MetricsState(), Registry(Identity("words-1", 1, "stream_manager")), registry()
    for process in (manager, instance):
        process.gauge("ardea_process_threads").value = 2
        state.accept(process.snapshot(), 0)
    labels = [(s.labels["process"], s.labels["component"], s.labels["task"]) for s in state.samples()]
    assert labels == [("heron_instance", "count", "1"), ("stream_manager", "", "")]


def test_buckets_are_cumulative():
    state, instance = MetricsState(), registry()
    histogram = instance.histogram(DURATION)
    for value in (1e-6, 1.5e-6, 1000.0):
        histogram.observe(value)
    state.accept(instance.snapshot(), 0)
    (sample,) = state.samples()
    assert (sample.value, sample.sum) == (3, histogram.sum)
    assert (sample.buckets["1e-06"], sample.buckets["2e-06"], sample.buckets["50"], sample.buckets["+Inf"]) == (
        1,
        2,
        2,
        3,
    )


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.booleans()), min_size=1))
def test_counters_are_exact_over_lives_lost_and_doubled_snapshots(steps):
    """A step: a new life or not, how much was counted, whether the snapshot is doubled and an old one comes late."""
    state, total, life, former = MetricsState(), 0, 1, None
    instance = registry()
    for restart, number, doubled in steps:
        if restart:
            former, life = instance.snapshot(), life + 1
            instance = registry(life=life)
        total += number
        instance.counter(ACKED).value += number
        instance.histogram(DURATION).observe(0.1, number)
        snapshot = instance.snapshot()
        state.accept(snapshot, 0)
        if doubled:
            state.accept(snapshot, 0)
            if former:
                assert state.accept(former, 0) is Result.STALE
        assert find(state, ACKED)[0].value == total
        assert find(state, DURATION)[0].buckets["+Inf"] == total


def test_a_silent_process_goes_and_comes_back_with_what_it_counted():
    state, quiet, loud = MetricsState(expiry=60), registry(1), registry(2)
    for instance in (quiet, loud):
        instance.counter(ACKED).value = 5
        state.accept(instance.snapshot(), 0)
    state.accept(loud.snapshot(), 30)
    assert state.expire(59) == ()
    assert [who.task for who in state.expire(60)] == [1]
    assert state.expire(61) == ()
    assert [sample.labels["task"] for sample in state.samples()] == ["2"]
    assert state.exported == 1
    again = registry(1, life=2)
    again.counter(ACKED).value = 1
    state.accept(again.snapshot(), 100)
    assert [sample.value for sample in find(state, ACKED)] == [6, 5]
    assert state.exported == 2


def test_a_gauge_that_is_no_longer_reported_goes():
    state, manager = MetricsState(), Registry(Identity("words-1", 1, "stream_manager"))
    manager.gauge("ardea_stmgr_held_bytes", destination=3).value = 10
    manager.counter("ardea_stmgr_reconnects_total", peer=2).value = 1
    state.accept(manager.snapshot(), 0)
    manager.remove_gauge("ardea_stmgr_held_bytes", destination=3)
    state.accept(manager.snapshot(), 1)
    assert [sample.name for sample in state.samples()] == ["ardea_stmgr_reconnects_total"]


def test_the_final_state_is_what_the_acting_master_tells_in_its_present_life():
    state = MetricsState()

    def master(life: int, told: str | None) -> None:
        registry = Registry(Identity("words-1", 0, "topology-master", life=life))
        for each in RunState if told else ():
            registry.gauge("ardea_tm_topology_state", state=each.value).value = int(each == told)
        state.accept(registry.snapshot(), 0)

    assert state.final_state is None
    master(1, "RUNNING")
    assert state.final_state is None
    master(1, "FAILED")
    assert state.final_state is RunState.FAILED
    master(2, None)  # it stands by, and knows nothing
    assert state.final_state is None


@given(st.binary(max_size=60))
def test_no_bytes_hurt(noise):
    state = MetricsState()
    state.accept(noise, 0)
    assert state.samples() == []


def test_series_of_another_version_are_left_out():
    state = MetricsState()
    told = Snapshot(
        Identity("words-1", 1, "heron_instance", "count", 1),
        [("ardea_of_tomorrow_total", (), 1), (ACKED, ("one label too many",), 1), (ACKED, (), 2)],
        [(ACKED, (), 3)],
        [(DURATION, (), HistogramValue([1, 2], 1.0))],
    )
    assert state.accept(msgspec.msgpack.encode(told), 0) is Result.ACCEPTED
    assert [(sample.name, sample.value) for sample in state.samples()] == [(ACKED, 2)]


def test_the_master_hears_of_jobs_that_run_elsewhere_of_batches_and_of_windows():
    state, instance, overview = MetricsState(), registry(), Overview()
    assert (Totals().batch, Totals().batches_open, Totals().batch_latency_ms) == (None, None, None)
    told = {
        JOB_TASKS: 12,
        JOB_TASKS_DONE: 5,
        STREAM_BATCHES: 7,
        STREAM_BATCHES_OPEN: 2,
        TRIDENT_LATENCY: 0.5,
        "other": 99,
    }
    for name, value in told.items():
        instance.user_metric(name, AssignableMetric(value))
    for firing, fired in (("on time", 5), ("late", 2)):
        instance.counter("ardea_windows_fired_total", firing=firing).value = fired
    instance.counter("ardea_windows_rows_refused_total", why="late").value = 3
    state.accept(instance.snapshot(), 0)
    overview.accept(msgspec.msgpack.encode(state.summary(1, 1)), 0)
    totals = by_component(overview.processes())["count"]
    assert (totals.windows_fired, totals.window_rows_refused) == (7, 3)
    assert (totals.job_tasks, totals.job_tasks_done) == (12, 5)
    assert (totals.batch, totals.batches_open, totals.batch_latency_ms) == (7, 2, 0.5)

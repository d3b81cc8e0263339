"""Instruments, user metrics and the snapshot of a process."""

from __future__ import annotations

import math
import subprocess
import sys
import threading

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.metrics import (
    SECONDS,
    AssignableMetric,
    CountMetric,
    Histogram,
    Identity,
    MeanReducer,
    MultiCountMetric,
    ReducedMetric,
    Registry,
    Snapshot,
    observe_process,
    quantile,
)
from ardea.metrics.user import MAX_KEYS

TASK = Identity("words", 1, "heron_instance", "count", 3)
MANAGER = Identity("words", 1, "stream_manager")

observations = st.lists(st.floats(0, 200), max_size=200)


def decode(registry: Registry) -> Snapshot:
    return msgspec.msgpack.decode(registry.snapshot(), type=Snapshot)


def counters(registry: Registry) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(name, labels): value for name, labels, value in decode(registry).counters}


def gauges(registry: Registry) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(name, labels): value for name, labels, value in decode(registry).gauges}


def test_a_snapshot_carries_identity_and_cumulative_values():
    registry = Registry(TASK)
    emitted = registry.counter("ardea_instance_tuples_emitted_total", stream="default")
    emitted.value += 3
    registry.snapshot()
    emitted.value += 4
    told = decode(registry)
    assert told.identity == TASK
    assert told.counters == [("ardea_instance_tuples_emitted_total", ("default",), 7)]


def test_the_same_labels_give_the_same_instrument():
    registry = Registry(TASK)
    name = "ardea_instance_tuples_executed_total"
    one = registry.counter(name, stream="a", source_component="x")
    assert registry.counter(name, source_component="x", stream="a") is one
    assert registry.counter(name, source_component="a", stream="x") is not one
    one.value += 1
    assert counters(registry)[name, ("x", "a")] == 1, "labels are in the order of the table"


def test_callables_are_read_at_each_snapshot():
    registry = Registry(TASK)
    now = {"pending": 1}
    registry.gauge("ardea_spout_pending_tuples", lambda: now["pending"])
    assert gauges(registry)["ardea_spout_pending_tuples", ()] == 1
    now["pending"] = 5
    assert gauges(registry)["ardea_spout_pending_tuples", ()] == 5


def test_a_callable_without_descriptors_costs_its_sample_only():
    registry = Registry(MANAGER)

    def fail() -> int:
        raise OSError(24, "Too many open files")

    registry.gauge("ardea_process_open_fds", fail)
    registry.gauge("ardea_process_threads").value = 2
    assert gauges(registry) == {("ardea_process_threads", ()): 2}


def test_a_removed_gauge_is_gone():
    registry = Registry(MANAGER)
    registry.gauge("ardea_stmgr_held_bytes", destination=7).value = 1
    registry.remove_gauge("ardea_stmgr_held_bytes", destination=7)
    registry.remove_gauge("ardea_stmgr_held_bytes", destination=7)
    assert gauges(registry) == {}


@pytest.mark.parametrize(
    ("identity", "kind", "name", "labels", "message"),
    [
        (TASK, "counter", "ardea_nonsense_total", {}, "not in ardea.metrics.SERIES"),
        (TASK, "gauge", "ardea_instance_tuples_acked_total", {}, "it is a counter"),
        (TASK, "counter", "ardea_instance_tuples_emitted_total", {"task": 1}, "with the labels \\('stream',\\)"),
        (MANAGER, "counter", "ardea_instance_tuples_acked_total", {}, "would not be unique"),
        (TASK, "gauge", "ardea_ack_tree_entries", {}, "would not be unique"),
    ],
)
def test_what_the_table_does_not_declare_is_refused(identity, kind, name, labels, message):
    with pytest.raises(ValueError, match=message):
        getattr(Registry(identity), kind)(name, **labels)


def test_numpy_numbers_and_huge_integers_travel():
    registry = Registry(TASK)
    registry.counter("ardea_instance_tuples_acked_total").value += np.int64(3)
    registry.counter("ardea_instance_tuples_failed_total").value = 1 << 70
    histogram = registry.histogram("ardea_instance_execute_duration_seconds")
    histogram.observe(np.float64(0.5), np.int64(2))
    told = decode(registry)
    assert [value for _, _, value in told.counters] == [3, float(1 << 70)]
    assert sum(told.histograms[0][2].buckets) == 2


@given(observations)
def test_array_and_single_observations_agree(values):
    one, many = Histogram(SECONDS), Histogram(SECONDS)
    for value in values:
        one.observe(value)
    many.observe_many(np.array(values, dtype=float))
    assert one.buckets == many.buckets
    assert math.isclose(one.sum, many.sum, abs_tol=1e-9)


@given(observations)
def test_buckets_count_what_is_at_most_their_bound(values):
    histogram = Histogram(SECONDS)
    histogram.observe_many(np.array(values, dtype=float))
    for index, bound in enumerate(SECONDS):
        assert sum(histogram.buckets[: index + 1]) == sum(value <= bound for value in values)
    assert sum(histogram.buckets) == len(values)


def test_one_observation_can_stand_for_many():
    histogram = Histogram((1.0, 2.0))
    histogram.observe(1.0, 3)
    histogram.observe(9.0, 2)
    assert (histogram.buckets, histogram.sum) == ([3, 0, 2], 21.0)


@given(st.lists(st.integers(0, 50), min_size=4, max_size=4), st.floats(0, 1), st.floats(0, 1))
def test_quantiles_lie_within_bounds_and_rise(buckets, low, high):
    bounds = (1.0, 2.0, 5.0)
    low, high = sorted((low, high))
    estimates = quantile(bounds, tuple(buckets), low), quantile(bounds, tuple(buckets), high)
    if not any(buckets):
        assert estimates == (None, None)
    else:
        assert 0 <= estimates[0] <= estimates[1] <= 5.0


def test_quantile_interpolates():
    assert quantile((1.0, 2.0), (10, 10, 0), 0.75) == pytest.approx(1.5)
    assert quantile((1.0, 2.0), (0, 0, 7), 0.5) == 2.0, "beyond the last bound nothing more is known"


def test_user_metrics_of_each_kind():
    registry = Registry(TASK)
    lines, words = CountMetric(), MultiCountMetric()
    level, mean = AssignableMetric(4), ReducedMetric(MeanReducer())
    for name, metric in {"lines read": lines, "words": words, "level": level, "mean": mean}.items():
        registry.user_metric(name, metric)
    lines.incr()
    lines.incr(4)
    words.incr("a", 2)
    words.incr("b;c")
    mean.update(1)
    mean.update(2)
    name = "ardea_user_counts_total"
    assert counters(registry) == {(name, ("lines_read", "")): 5, (name, ("words", "a")): 2, (name, ("words", "b_c")): 1}
    mean.update(7)
    level.update(2.5)
    assert gauges(registry) == {("ardea_user_value", ("level",)): 2.5, ("ardea_user_value", ("mean",)): 7}
    assert ("ardea_user_value", ("mean",)) not in gauges(registry), "a mean of nothing is not reported"


def test_a_snapshot_in_the_middle_of_an_update_doubles_no_value():
    taken: list[float] = []

    class Total:
        def init(self):
            return 0

        def reduce(self, state, value):
            if value == 10:
                reader.start()
                reader.join(0.1)  # without the lock it takes the old state here, which is then written again
            return state + value

        def extract(self, state):
            return state

    metric = ReducedMetric(Total())
    reader = threading.Thread(target=lambda: taken.append(metric.current()))
    metric.update(1)
    metric.update(10)
    reader.join()
    assert sum(taken) + metric.current() == 11


def test_counts_never_fall():
    for metric in (CountMetric(), MultiCountMetric()):
        with pytest.raises(ValueError, match="AssignableMetric"):
            metric.incr(*("key",) * isinstance(metric, MultiCountMetric), to_add=-1)


def test_keys_of_a_multi_count_are_bounded():
    metric = MultiCountMetric()
    for key in range(MAX_KEYS + 50):
        metric.incr(str(key))
    metric.incr("5")
    counts = metric.counts()
    assert len(counts) == MAX_KEYS + 1
    assert (counts["__other"], counts["5"]) == (50, 2)


def test_a_metric_that_is_retired_has_no_value_and_another_goes_on_from_its_counts():
    """As after a rollback, when another object of the component registers it anew, or does not."""
    registry = Registry(TASK)
    former, present = MultiCountMetric(), MultiCountMetric()
    registry.user_metric("se en", former)
    registry.user_metric("level", AssignableMetric(3))
    former.incr("a", 3)
    former.incr("b", 1)
    registry.retire("se en")
    registry.retire("level")
    name = "ardea_user_counts_total"
    counts = {(name, ("se_en", "a")): 3, (name, ("se_en", "b")): 1}
    assert (counters(registry), gauges(registry)) == (counts, {})
    registry.user_metric("se en", present)
    present.incr("a", 2)
    assert counters(registry) == counts | {(name, ("se_en", "a")): 5}


def test_a_metric_that_outlives_its_object_counts_once():
    """It is kept in ``task_data``, and registered again after each rollback."""
    registry, seen = Registry(TASK), CountMetric()
    for number in range(1, 4):
        registry.user_metric("seen", seen)
        seen.incr()
        assert counters(registry) == {("ardea_user_counts_total", ("seen", "")): number}
        registry.retire("seen")
        assert counters(registry) == {("ardea_user_counts_total", ("seen", "")): number}
    registry.user_metric("seen", another := CountMetric())
    another.incr()
    assert counters(registry) == {("ardea_user_counts_total", ("seen", "")): 4}


def test_keys_are_bounded_over_all_metrics_of_a_name():
    registry, known = Registry(TASK), {}
    for former in range(4):
        present = MultiCountMetric()
        registry.user_metric("seen", present)
        for key in range(400 * former, 400 * former + 600):
            present.incr(str(key))
        told = {labels[1]: value for (_, labels), value in counters(registry).items()}
        assert all(told[key] >= value for key, value in known.items())
        assert (sum(told.values()), len(told)) == (600 * (former + 1), min(400 * former + 600, MAX_KEYS + (former > 1)))
        known = told
        registry.retire("seen")


def test_a_reducer_that_raises_is_counted_and_stops_nothing():
    registry = Registry(TASK)
    broken = AssignableMetric()
    broken.value = "many"
    registry.user_metric("broken", broken)
    registry.user_metric("fine", AssignableMetric(1))
    assert gauges(registry) == {("ardea_user_value", ("fine",)): 1}
    assert counters(registry)["ardea_user_exceptions_total", ("ValueError",)] >= 1


def test_long_names_that_differ_at_their_ends_stay_apart():
    """As those of two partitions of a topic with a long name."""
    registry, keys = Registry(TASK), MultiCountMetric()
    for partition in range(2):
        registry.user_metric(f"kafka-lag/{'t' * 117}/{partition}", AssignableMetric(partition))
        keys.incr("k" * 128 + str(partition))
    told = {labels[0]: value for (_, labels), value in gauges(registry).items()}
    assert sorted(told.values()) == [0, 1]
    assert all(len(name) == 128 and name.startswith("kafka-lag/ttt") for name in told)
    assert list(keys.counts().values()) == [1, 1]
    registry.user_metric("a" * 128, AssignableMetric(2))
    assert gauges(registry)["ardea_user_value", ("a" * 128,)] == 2


def test_names_that_are_not_unicode_text_travel():
    registry = Registry(TASK)
    registry.user_metric("bad\udcff", CountMetric())
    assert ("ardea_user_counts_total", ("bad_", "")) in counters(registry)


def test_every_process_tells_its_resources():
    registry = Registry(Identity("words", 1, "heron_instance", "count", 3))
    observe_process(registry)
    told = gauges(registry)
    assert told["ardea_process_resident_memory_bytes", ()] > 5_000_000
    assert told["ardea_process_threads", ()] >= threading.active_count()
    assert told["ardea_process_open_fds", ()] >= 3
    counted = counters(registry)
    assert counted["ardea_process_cpu_seconds_total", ()] > 0
    assert {labels for name, labels in counted if name == "ardea_process_gc_collections_total"} == {
        ("0",),
        ("1",),
        ("2",),
    }


def test_instances_pay_for_nothing_but_msgspec():
    heavy = "{'numpy', 'pydantic', 'prometheus_client', 'rich', 'tenacity'}"
    code = f"import sys, ardea.metrics; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

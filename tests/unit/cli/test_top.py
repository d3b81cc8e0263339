"""What `ardea top` makes of two readings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.cli.top import Window
from ardea.metrics import SECONDS, ProcessTotals, Totals


def process(component: str, index: int, **totals: object) -> ProcessTotals:
    return ProcessTotals(1, f"{component}-{index}", component, index + 1, Totals(tasks=1, **totals))


def latency(count: int, seconds: float) -> tuple[float, ...]:
    """``count`` observations that took ``seconds`` in sum, all in the first bucket."""
    return (float(count), *[0.0] * len(SECONDS), seconds)


def test_rates_latencies_and_shares_are_those_of_the_time_between():
    window = Window({"numbers"})
    window.observe(
        10.0, [process("numbers", 0, emitted=100, acked=90, failed=1, busy_seconds=5.0, initiated_seconds=40.0)]
    )
    window.observe(
        12.0,
        [
            process(
                "numbers", 0, emitted=300, acked=190, failed=2, timed_out=1, lost=1, pending=7,
                busy_seconds=6.0, backpressured_seconds=0.5, initiated_seconds=41.5, complete_latency=latency(10, 0.02),
            )
        ],
    )  # fmt: skip
    component, task = window.rows()
    assert (component.task, task.task, task.container) == (None, "numbers-0", 1)
    assert (task.emitted, task.acked, task.failed, task.pending) == (100.0, 50.0, 1.5, 7)
    assert (task.capacity, task.back_pressure) == (0.5, 0.25)
    assert (task.initiates, task.initiated_seconds) == (0.75, 41.5)
    assert task.latency == pytest.approx(0.002)


def test_cpu_and_memory_are_those_of_the_processes():
    window = Window({"numbers"})
    window.observe(0.0, [process("add", 0, cpu_seconds=50.0), process("add", 1, cpu_seconds=1.0)])
    window.observe(
        2.0,
        [
            process("add", 0, cpu_seconds=51.0, resident_memory_bytes=50_000_000),
            process("add", 1, cpu_seconds=2.5, resident_memory_bytes=30_000_000),
        ],
    )
    component, first, second = window.rows()
    assert (first.cpu, second.cpu, component.cpu) == (0.5, 0.75, 1.25)
    assert (first.resident_memory_bytes, component.resident_memory_bytes) == (50_000_000, 80_000_000)


def test_a_bolts_latency_is_that_of_process():
    window = Window({"numbers"})
    window.observe(0.0, [process("add", 0)])
    window.observe(1.0, [process("add", 0, execute_duration=latency(4, 0.4), complete_latency=latency(4, 99.0))])
    assert window.rows()[0].latency == pytest.approx(0.1)


def test_a_component_is_as_busy_and_as_held_back_as_its_worst_task():
    window = Window(set())
    window.observe(0.0, [process("add", 0), process("add", 1)])
    window.observe(
        1.0,
        [
            process("add", 0, executed=1, busy_seconds=0.9, initiated_seconds=0.1),
            process("add", 1, executed=2, backpressured_seconds=0.8, initiated_seconds=0.7),
        ],
    )
    component, *_ = window.rows()
    assert (component.executed, component.capacity, component.back_pressure) == (3.0, 0.9, 0.8)
    assert (component.initiates, component.initiated_seconds) == (0.7, 0.7)


def test_managers_are_no_rows_and_one_reading_is_no_rate():
    window = Window(set())
    assert window.rows() == []
    window.observe(0.0, [process("add", 0, executed=10), ProcessTotals(1, "stream-manager", "", 0, Totals())])
    assert [(row.task, row.executed) for row in window.rows()] == [(None, 0.0), ("add-0", 0.0)]


def test_the_window_forgets_what_is_long_ago():
    window = Window(set(), length=5.0)
    for second in range(20):
        window.observe(float(second), [process("add", 0, executed=1000 if second else 0)])
    assert window.rows()[0].executed == 0.0


@given(st.lists(st.tuples(st.floats(0.1, 10), st.integers(0, 1000)), min_size=2, max_size=30))
def test_rates_never_fall_below_zero_when_counting_begins_anew(steps):
    """A metrics manager that was restarted counts from 0."""
    window, now = Window(set()), 0.0
    for pause, count in steps:
        now += pause
        window.observe(now, [process("add", 0, emitted=count, executed=count, acked=count, busy_seconds=float(count))])
        for row in window.rows():
            assert min(row.emitted, row.executed, row.acked, row.capacity, row.back_pressure) >= 0
            assert max(row.capacity, row.back_pressure) <= 1

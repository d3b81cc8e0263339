"""What `ardea top` makes of two readings."""

from __future__ import annotations

import io
import json
from contextlib import nullcontext
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ardea.cli import top as verb
from ardea.cli.console import Output
from ardea.cli.top import tables
from ardea.cli.top_view import View
from ardea.documents.top import Row, Window
from ardea.errors import Unreachable
from ardea.health import Health, HealthState, Trouble
from ardea.metrics import SECONDS, ProcessTotals, Totals
from ardea.scheduler.control import Status
from ardea.snapshots.status import LastSnapshot, SnapshotStatus, UnderWay
from tests.unit.cli.terminal import Terminal


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


def test_two_masters_are_two_rows():
    """Those of two pods have the same name, in container 0."""
    window = Window(())
    for now, cpu in ((0.0, (10.0, 50.0)), (2.0, (11.0, 50.5))):
        window.observe(now, [ProcessTotals(0, "topology-master", "", -1, Totals(tasks=1, cpu_seconds=n)) for n in cpu])
    assert [row.cpu for row in window.rows()] == [0.5, 0.25]


@pytest.mark.parametrize(("before", "after"), [((10.0, 5000.0), (5001.0,)), ((50.0,), (60.0, 51.0))])
def test_when_a_master_comes_or_is_forgotten_nobody_has_the_rates_of_another(before, after):
    """Only their order tells them apart."""
    window = Window(())
    for now, cpu in ((0.0, before), (5.0, after), (10.0, [each + 1 for each in after])):
        window.observe(now, [ProcessTotals(0, "topology-master", "", -1, Totals(tasks=1, cpu_seconds=n)) for n in cpu])
        assert all(row.cpu <= 0.2 for row in window.rows())
    assert [row.cpu for row in window.rows()] == [0.2] * len(after)


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


def test_one_reading_is_no_rate():
    window = Window(set())
    assert window.rows() == []
    window.observe(0.0, [process("add", 0, executed=10)])
    assert [(row.task, row.executed) for row in window.rows()] == [(None, 0.0), ("add-0", 0.0)]


def test_a_component_is_as_far_behind_as_that_of_its_tasks_which_is_furthest():
    window = Window(set())
    lags = {"add": (2.0, 75.0, None), "sub": (None,)}
    tasks = [
        process(name, index, watermark_lag_seconds=lag) for name, each in lags.items() for index, lag in enumerate(each)
    ]
    window.observe(0.0, tasks)
    window.observe(2.0, tasks)
    assert [row.watermark_lag for row in window.rows()] == [75.0, 2.0, 75.0, None, None, None]


def manager(container: int, **totals: object) -> ProcessTotals:
    return ProcessTotals(container, "stream-manager", "", -1, Totals(**{"tasks": 1, **totals}))


def test_managers_of_each_container_come_last_with_what_they_use():
    window = Window(set())
    window.observe(0.0, [manager(1, cpu_seconds=5.0), manager(2, cpu_seconds=1.0), process("add", 0)])
    window.observe(
        2.0,
        [
            manager(1, cpu_seconds=6.0, resident_memory_bytes=40_000_000, threads=4),
            manager(2, cpu_seconds=1.5, resident_memory_bytes=50_000_000, threads=5),
            process("add", 0, threads=7),
        ],
    )
    *tasks, first, second = window.rows()
    assert [(row.component, row.task, row.threads) for row in tasks] == [("add", None, 7), ("add", "add-0", 7)]
    assert [(row.component, row.task, row.container) for row in (first, second)] == [
        ("", "stream-manager", 1), ("", "stream-manager", 2),
    ]  # fmt: skip
    assert (first.cpu, first.resident_memory_bytes, first.threads) == (0.5, 40_000_000, 4)
    assert (second.cpu, second.resident_memory_bytes, second.threads) == (0.25, 50_000_000, 5)


def test_a_manager_that_is_silent_is_no_row():
    window = Window(set())
    window.observe(0.0, [manager(1, tasks=0, cpu_seconds=5.0)])
    assert window.rows() == []


def test_a_managers_share_of_a_core_does_not_fall_below_zero():
    """A metrics manager that was restarted counts from 0."""
    window = Window(set())
    window.observe(0.0, [manager(1, cpu_seconds=50.0)])
    window.observe(2.0, [manager(1, cpu_seconds=1.0)])
    assert window.rows()[0].cpu == 0.5


def shown(
    width: int, health: Health | None = None, snapshots: SnapshotStatus | None = None, lag: float | None = None
) -> str:
    task = Row(
        component="enrichment", task=None, container=None, emitted=1_203_411.0, executed=1_203_411.0, acked=1.0,
        failed=1204.0, latency=0.0312, latency_p99=0.08, capacity=0.91, back_pressure=0.1, initiates=0.5,
        initiated_seconds=41.0, pending=20_000, exceptions=0, resident_memory_bytes=57_300_000, cpu=1.2, threads=9,
        watermark_lag=lag,
    )  # fmt: skip
    master = msgspec.structs.replace(task, component="", task="topology-master", container=0, threads=4)
    rows = [task, msgspec.structs.replace(task, task="enrichment-0", container=1), master]
    status = Status(
        "Pipeline-5847e6b6", "RUNNING", "", 1, 1, [], [], 0, [], None, {}, {}, [], health=health, snapshots=snapshots
    )  # fmt: skip
    console = Console(width=width)
    with console.capture() as text:
        console.print(tables(status, rows, width, View()), crop=False)
    return text.get()


def test_eighty_columns_show_what_matters_uncut():
    lines = [line.rstrip() for line in shown(80).splitlines()]
    assert max(map(len, lines)) <= 80
    important = ["Task", "Emitted", "Executed", "Failed", "Latency", "Capacity", "Pending"]
    assert [name for name in lines[1].split() if name in important] == important
    assert lines[3].split()[:3] == ["enrichment-0", "1,203,411", "1,203,411"]
    assert lines[4].startswith("no room for Container, Threads, Holds back")
    assert lines[-1].split() == ["container-0/topology-master", "120", "%", "57.3", "MB", "4"]


@pytest.mark.parametrize(("lag", "words"), [(None, None), (75.0, "75 s"), (9000.0, "2 h"), (-4.0, "0 s")])
def test_how_far_time_is_behind_has_a_column_where_rows_have_a_time(lag, words):
    header, _, row, *_ = (line.rstrip() for line in shown(200, lag=lag).splitlines()[1:])
    assert header.endswith("Time lag") == (words is not None)
    assert words is None or row.endswith(words)


def test_who_is_not_well_stands_above_all():
    health = Health(HealthState.CRASHING, [Trouble("enrichment-0", None, "died 3 times in 2 s: boom", crashing=True)])
    first, title, *_ = shown(80, health).splitlines()
    assert first == "enrichment-0: died 3 times in 2 s: boom"
    assert title.rstrip() == "Pipeline-5847e6b6 RUNNING CRASHING, per second"


def test_a_line_says_how_snapshots_do():
    status = SnapshotStatus(mode="EFFECTIVELY_ONCE", state="RUNNING", timeline=1, interval=10.0)
    assert shown(80, snapshots=status).splitlines()[0].strip() == "no snapshot yet"
    last = LastSnapshot(number="1.5", ago=4.2, seconds=0.3, bytes=1, written=1, slowest="count-1")
    status = msgspec.structs.replace(
        status, state="TAKING", last=last, taking=UnderWay("1.6", 0.25), waits=["for count-0"], abandoned=2, why="full"
    )
    assert [line.strip() for line in shown(120, snapshots=status).splitlines()[:1]] == [
        "snapshot 1.5, 4 s old · 1.6, for 0.2 s, waits for count-0 · 2 abandoned in a row"
    ]


def test_a_wide_terminal_shows_all():
    header = shown(200).splitlines()[1]
    assert all(name in header for name in ("Container", "Acked", "p99", "Held back", "Holds back", "CPU", "Threads"))
    assert "no room" not in shown(200)


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


class Asked:
    """Scheduler, handle and master of one topology, its clock, and who types; an answer may be an error."""

    def __init__(self, answers, keys=()):
        self.id, self.now, self.answers, self.keys = "Pipeline-1", 1000.0, [*answers], [*keys]
        self.monotonic = self.time = lambda: self.now

    def find(self, _):
        return nullcontext(self)

    def definition(self):
        return SimpleNamespace(shape=SimpleNamespace(components=[]))

    def control(self):
        return nullcontext(self)

    def ask(self, _):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def runs(self):
        return True

    def sleep(self, seconds):
        self.now += seconds

    def wait(self, seconds):
        self.sleep(seconds)
        return self.keys.pop(0)


@pytest.fixture
def shows(monkeypatch):
    """What `ardea top` shows of answers, with a terminal or without."""

    def of(asked: Asked, *, screen: io.StringIO | None = None, **options) -> str:
        screen = screen or Terminal()
        terminal = Console(file=screen, color_system=None, width=160, height=40, _environ={"FORCE_COLOR": "1"})
        monkeypatch.setattr(verb, "time", asked)
        monkeypatch.setattr(verb, "Keys", lambda: nullcontext(asked))
        monkeypatch.setattr(verb.console, "out", lambda: terminal)
        monkeypatch.setattr(verb.console, "print_json", lambda document: screen.write(json.dumps(document)))
        verb.top(asked, "Pipeline", interval=2.0, **options)
        return screen.getvalue()

    return of


def says(term: int, **totals: object) -> Status:
    row, health = process("numbers", 0, **totals), Health(HealthState.HEALTHY)
    return Status("Pipeline-1", "RUNNING", "", term, 1, [], [], 0, [], None, {}, {}, [row], health=health)


def test_no_rate_is_of_what_two_masters_have_counted(shows):
    """A metrics manager was restarted long ago: what it has counted since is less than what its master had added up."""
    told = json.loads(shows(Asked([says(1, emitted=5000), says(2, emitted=3000)]), output=Output.JSON))
    assert [row["emitted"] for row in told["rows"]] == [0.0, 0.0]


def test_a_pipe_gets_one_table_whatever_colours_are_wanted(shows):
    table = shows(Asked([says(1), says(1, emitted=5000)]), screen=io.StringIO())
    assert "numbers" in table
    assert "\x1b" not in table


def test_while_no_master_answers_that_is_said_with_the_age_of_what_is_shown(shows):
    silent = Unreachable("the master of Pipeline-1 did not answer `status` within 5 s")
    asked = Asked([says(1), silent, silent, says(2)], keys=["", "", "", "q"])
    first, second, third, fourth = shows(asked).split("per second")[:4]
    assert "Pipeline-1 RUNNING HEALTHY" in first
    for frame, age in ((second, 2), (third, 4)):
        assert "Pipeline-1 RUNNING UNREACHABLE" in frame
        assert f"topology-master since {age} s: {silent.message}; what is shown is from before" in frame
    assert "UNREACHABLE" not in fourth
    assert "Pipeline-1 RUNNING HEALTHY" in fourth

"""What `ardea describe` says of each task."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from ardea.cli import console
from ardea.cli.describe import _print, _tasks
from ardea.cli.stories import stuck
from ardea.cli.time_lines import lags, windows
from ardea.health import Health, HealthState, ProcessRow, Trouble
from ardea.metrics import ProcessTotals, Totals
from ardea.plan.change import UpdateProgress
from ardea.plan.resource import MIB, Resource
from ardea.protocol.incarnations import incarnation
from ardea.scheduler.control import Status, StoryEvent, TaskStatus, story_lines
from ardea.scheduler.schedulers import Description
from ardea.snapshots.status import LastRollback, LastSnapshot, SnapshotStatus, UnderWay, WaitingSink
from ardea.state.records import ExecutionState, RunState, TopologyRecord
from ardea.state.topologies import TopologyStatus
from ardea.supervision.spec import RESTARTED
from ardea.versions import FORMAT


def table(width: int) -> list[str]:
    totals = Totals(tasks=1, emitted=1234, cpu_seconds=61.52, resident_memory_bytes=57_300_000)
    status = Status(
        "t-1", "RUNNING", "", 1, 1, [], [], 0, [], None,
        {"add-0": TaskStatus("ACTIVE", incarnation(3, 2), 0, Resource(0.5, 256 * MIB))}, {},
        [ProcessTotals(1, "add-0", "add", 1, totals)],
    )  # fmt: skip
    console = Console(width=width)
    with console.capture() as shown:
        console.print(_tasks(status, [ProcessRow(1, "add-0", "running", 77, 2, 1, None, "", "")], width), crop=False)
    return shown.get().splitlines()


def test_a_task_is_told_with_its_process_and_what_that_uses():
    header, row = table(200)
    assert header.split() == [
        "Task", "Container", "Pid", "State", "Process", "Life", "Restarts", "CPU", "s", "Memory", "Asked",
        "Emitted", "Executed", "Acked", "Failed", "Pending",
    ]  # fmt: skip
    assert row.split() == [
        "add-0", "1", "77", "ACTIVE", "running", "3.2", "1", "61.5", "57.3", "MB", "0.5", "CPU,", "256", "MiB",
        "1,234", "0", "0", "0", "0",
    ]  # fmt: skip


def test_eighty_columns_do_without_what_matters_least():
    header, row, left_out, *_ = table(80)
    assert header.split() == [
        "Task", "Container", "State", "Process", "Restarts", "Emitted", "Executed", "Acked", "Failed", "Pending",
    ]  # fmt: skip
    assert row.split() == ["add-0", "1", "ACTIVE", "running", "1", "1,234", "0", "0", "0", "0"]
    assert left_out.strip() == "no room for Asked, CPU s, Memory, Pid, Life"


def test_the_task_whose_watermark_is_furthest_behind_is_named_for_each_component():
    behind = {"rows-0": 2.4, "rows-1": 2100.0, "count-0": 4.0, "sink-0": None}
    processes = [
        ProcessTotals(1, task, task[:-2], 1, Totals(watermark_lag_seconds=lag)) for task, lag in behind.items()
    ]
    assert lags(processes) == "count 4 s (count-0), rows 35 min (rows-1)"
    assert lags(processes[-1:]) == ""


RECORD = TopologyRecord(
    id="t-1", name="t", location="t.py", topology_class="T", config={}, submitted_by="me",
    submitted_at=datetime(2026, 1, 1, tzinfo=UTC), submitted_from="here", ardea_version="1", digest="", components={},
    format=FORMAT,
)  # fmt: skip


@pytest.fixture
def printed(monkeypatch):
    """What is printed of a topology, on a terminal of 40 columns."""

    def show(rows: list[ProcessRow], *, reason: str = "", status: Status | None = None, **known: object) -> list[str]:
        screen = console.Screen(width=40)
        monkeypatch.setattr(console, "out", lambda: screen)
        topology = TopologyStatus("t-1", RECORD, ExecutionState(RunState.RUNNING, reason), running=True)
        with screen.capture() as shown:
            _print(
                Description(topology=topology, status=status, silence="", kept_by=None, processes=rows, **known)  # type: ignore[arg-type]
            )
        return shown.get().splitlines()

    return show


def test_the_ports_of_metrics_are_told_and_long_lines_stay_whole(printed):
    folder = Path("/a/very/long/path" * 9)
    lines = printed([], folder=folder, metrics_ports={0: 33179, 1: 45291})
    assert f"Folder          {folder}" in lines
    assert "Metrics         http://127.0.0.1:PORT/metrics, PORT of container 0: 33179, container 1: 45291" in lines


def test_a_restart_that_was_asked_for_is_not_told_as_an_ailment(printed):
    asked = ProcessRow(1, "add-0", "running", 77, 2, 1, 0.0, f"exit 75 ({RESTARTED})", "")
    died = ProcessRow(1, "add-1", "running", 78, 2, 1, 0.0, "exit 75 (no route)", "")
    assert [line for line in printed([asked, died]) if line.startswith("restarted")] == [
        "restarted: add-1 (container 1), once; its last end: exit 75 (no route)"
    ]


def test_who_is_not_well_is_named_below_the_health(printed):
    health = Health(HealthState.CRASHING, [Trouble("add-0", None, "died 3 times in 2 s: boom", crashing=True)])
    lines = printed([], health=health)
    assert "Health          CRASHING" in lines
    assert "add-0: died 3 times in 2 s: boom" in lines


def test_who_crashes_is_told_once(printed):
    row = ProcessRow(1, "add-0", "waiting", None, 4, 3, 0.0, "exit 75 (boom)", "died 3 times in 2 s: boom", 3, 0.0)
    assert [line for line in printed([row]) if "boom" in line] == []


def test_who_is_stuck_is_told_with_what_happened_to_it_last():
    """In the order in which people look; nobody else's story is."""
    stories = {
        "update": [StoryEvent(3.0, "u1: draining, waiting for add-0", 2)],
        "container-2": [
            StoryEvent(60.0, "says hello, held by x", 1),
            StoryEvent(58.5, "refused, REPLACED: it stood still", 7),
        ],
        "container-3": [StoryEvent(70.0, "admission 1, life 1 registered at h:1", 1)],
        "add-0": [StoryEvent(61.25, "admission 1, life 1 reports ACTIVE", 1)],
        "add-1": [StoryEvent(1.0, "admission 1, life 1 reports ACTIVE", 1)],
    }
    status = Status(
        "t-1", "RUNNING", "", 1, 1, [2], ["sum-0"], 0, [], UpdateProgress("u1", "draining"), {}, {}, [], stories=stories
    )
    silent, sound = (
        ProcessRow(1, f"add-{n}", how, 7, 1, 0, None, "", "") for n, how in enumerate(("silent", "running"))
    )
    names = stuck(status, [silent, sound, ProcessRow(3, "sum-0", "running", 8, 1, 0, None, "", "")])
    assert names == ["update", "container-2", "sum-0", "container-3", "add-0"]
    assert list(story_lines(status, names)) == [
        "story of update:",
        "  3.0 s ago: u1: draining, waiting for add-0 (2 times)",
        "story of container-2:",
        "  60.0 s ago: says hello, held by x",
        "  58.5 s ago: refused, REPLACED: it stood still (7 times)",
        "story of container-3:",
        "  70.0 s ago: admission 1, life 1 registered at h:1",
        "story of add-0:",
        "  61.2 s ago: admission 1, life 1 reports ACTIVE",
    ]


SNAPSHOTS = SnapshotStatus(mode="EFFECTIVELY_ONCE", state="RUNNING", timeline=2, interval=10.0)


def of_snapshots(printed, **said: object) -> list[str]:
    snapshots = msgspec.structs.replace(SNAPSHOTS, **said)
    events = {"snapshots": [StoryEvent(4.0, "rolls back: count-0 has a new life", 1)]}
    status = Status(
        "t-1", "RUNNING", "", 1, 1, [], [], 0, [], None, {}, {}, [], stories=events, snapshots=snapshots
    )  # fmt: skip
    lines = printed([], status=status)
    first = next(number for number, line in enumerate(lines) if line.startswith("Snapshots "))
    return [line.rstrip() for line in lines[first:] if not line.startswith(("Task", " ", "no room", "Life", "Process"))]


def test_snapshots_say_how_they_do(printed):
    last = LastSnapshot(
        number="1.37", ago=4.4, seconds=0.312, bytes=12 << 20, written=1 << 20, slowest="add-1", slowest_seconds=0.28,
        aligned=0.11,
    )  # fmt: skip
    assert of_snapshots(printed, last=last)[:3] == [
        "Snapshots       EFFECTIVELY_ONCE, RUNNING, timeline 2, every 10 s",
        "Last snapshot   1.37, 4 s ago, took 0.31 s; 12 MiB, 1 MiB of it new; slowest: add-1, 0.28 s (0.11 s aligning)",
        "Rollbacks       0",
    ]


def test_what_is_wrong_with_snapshots_is_told_with_the_story(printed):
    lines = of_snapshots(
        printed, state="TAKING", last=LastSnapshot(number="1.5"), taking=UnderWay("2.8", 3.25), abandoned=2,
        why="count-1: no space left", rollbacks=1, waits=["for count-0"],
        rollback=LastRollback("task", "count-0 has a new life", 4.0, 1.4, 3 << 20),
    )  # fmt: skip
    assert lines == [
        "Snapshots       EFFECTIVELY_ONCE, TAKING, timeline 2, every 10 s",
        "Last snapshot   1.5, committed by a former master",
        "Under way       2.8, for 3.2 s, waits for count-0",
        "Abandoned       2 in a row, the last one because of count-1: no space left",
        "Rollbacks       1; the last one 4 s ago: count-0 has a new life, all restored after 1.40 s, 3 MiB",
        "story of snapshots:",
    ]


def test_what_a_rollback_waits_for_is_told(printed):
    waits = ["count-1 cannot read its state: no answer; it tries again", "for words-0"]
    lines = of_snapshots(printed, state="RESTORING", waits=waits)
    assert "Last snapshot   none yet" in lines
    assert f"Waits           {waits[0]}; for words-0" in lines


def test_a_sink_whose_rows_wait_is_told(printed):
    sinks = [WaitingSink("out-0", 3, 42.5, "cannot commit: ValueError: no"), WaitingSink("out-1", 1, 2.0)]
    assert of_snapshots(printed, sinks=sinks * 3)[3:6] == [
        "Sink            out-0: 3 intervals wait, the oldest for 42 s: cannot commit: ValueError: no",
        "Sink            out-1: 1 interval waits, the oldest for 2 s: it is being written",
        "Sink            out-0: 3 intervals wait, the oldest for 42 s: cannot commit: ValueError: no",
    ]
    assert "Other sinks     2 more" in of_snapshots(printed, sinks=sinks * 3)


def test_no_reason_forges_a_line_or_speaks_to_the_terminal(printed):
    died = ProcessRow(1, "add-0", "running", 78, 2, 1, 0.0, "exit 75 (\x1b[2J\u202eno)", "")
    lines = printed([died], reason="boom\nState           SUCCEEDED\n\x1b]0;title\x07")
    assert lines[2:] == [
        "State           RUNNING",
        "Reason          boom",
        "  State           SUCCEEDED",
        "  \\x1b]0;title\\x07",
        "File            t.py",
        "Class           T",
        "Submitted       2026-01-01T00:00:00+00:00 by me@here",
        "Version         1",
        "restarted: add-0 (container 1), once; its last end: exit 75 (\\x1b[2J\\u202eno)",
    ]


def test_windows_of_each_component_that_has_any():
    one, other = Totals(windows_fired=1204, window_rows_refused=1), Totals(window_rows_refused=3000)
    assert windows({"b": other, "a": one, "c": Totals()}) == "a 1,204 seen, 1 row refused, b 0 seen, 3,000 rows refused"
    assert windows({"c": Totals()}) == ""

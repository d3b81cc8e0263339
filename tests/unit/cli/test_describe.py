"""What `ardea describe` says of each task."""

from __future__ import annotations

import pytest
from rich.console import Console

from ardea.cli import console
from ardea.cli.describe import _print, _tasks
from ardea.metrics import ProcessTotals, Totals
from ardea.plan.resource import MIB, Resource
from ardea.protocol.incarnations import incarnation
from ardea.scheduler.control import Status, TaskStatus
from ardea.scheduler.processes import ProcessRow, metrics_ports
from ardea.supervision.spec import RESTARTED


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


@pytest.fixture
def printed(monkeypatch):
    """What is printed of a topology, on a terminal of 40 columns."""

    def show(rows: list[ProcessRow], **document: object) -> list[str]:
        screen = console.Screen(width=40)
        monkeypatch.setattr(console, "out", lambda: screen)
        keys = ("name", "id", "reason", "location", "topology_class", "submitted_at", "submitted_by", "version")
        unknown = dict.fromkeys((*keys, "kept_by", "folder", "master_silent", "metrics_ports"))
        with screen.capture() as shown:
            _print({**unknown, "state": "RUNNING", "running": True, **document}, None, rows)
        return shown.get().splitlines()

    return show


def test_the_ports_of_metrics_are_told_and_long_lines_stay_whole(printed):
    lines = printed([], folder="/a/very/long/path/" * 9, metrics_ports={0: 33179, 1: 45291})
    assert "Folder          " + "/a/very/long/path/" * 9 in lines
    assert "Metrics         http://127.0.0.1:PORT/metrics, PORT of container 0: 33179, container 1: 45291" in lines


def test_a_restart_that_was_asked_for_is_not_told_as_an_ailment(printed):
    asked = ProcessRow(1, "add-0", "running", 77, 2, 1, 0.0, f"exit 75 ({RESTARTED})", "")
    died = ProcessRow(1, "add-1", "running", 78, 2, 1, 0.0, "exit 75 (no route)", "")
    assert [line for line in printed([asked, died]) if line.startswith("restarted")] == [
        "restarted: add-1 (container 1), once; its last end: exit 75 (no route)"
    ]


def test_a_task_whose_rows_wait_for_the_interpreter_is_named(printed):
    silent = ProcessRow(1, "add-0", "silent", 77, 2, 0, None, "", "")
    (line,) = [line for line in printed([silent]) if line.startswith("silent")]
    assert line.startswith(
        "silent: the rows of add-0 (container 1) wait: user code keeps the interpreter lock, in a call"
    )


def test_the_ports_of_metrics_are_read_from_the_containers_folders(tmp_path):
    for number, text in ((10, "33179\n"), (2, "45291\n"), (3, "")):
        (tmp_path / f"container-{number}").mkdir()
        (tmp_path / f"container-{number}" / "metrics.port").write_text(text)
    (tmp_path / "container-4").mkdir()
    assert list(metrics_ports(tmp_path).items()) == [(2, 45291), (10, 33179)]


def test_no_reason_forges_a_line_or_speaks_to_the_terminal(printed):
    died = ProcessRow(1, "add-0", "running", 78, 2, 1, 0.0, "exit 75 (\x1b[2J\u202eno)", "")
    lines = printed([died], reason="boom\nState           SUCCEEDED\n\x1b]0;title\x07")
    assert lines[1:] == [
        "Reason          boom",
        "  State           SUCCEEDED",
        "  \\x1b]0;title\\x07",
        "Submitted       None by None",
        "restarted: add-0 (container 1), once; its last end: exit 75 (\\x1b[2J\\u202eno)",
    ]

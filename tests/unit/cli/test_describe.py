"""What `ardea describe` says of each task."""

from __future__ import annotations

from rich.console import Console

from ardea.cli.describe import _tasks
from ardea.metrics import ProcessTotals, Totals
from ardea.plan.resource import MIB, Resource
from ardea.protocol.incarnations import incarnation
from scheduler.control import Status, TaskStatus
from scheduler.processes import ProcessRow


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

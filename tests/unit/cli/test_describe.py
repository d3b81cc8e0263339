"""What `ardea describe` says of each task."""

from __future__ import annotations

from rich.console import Console

from ardea.cli.describe import _tasks
from ardea.metrics import ProcessTotals, Totals
from ardea.plan.resource import MIB, Resource
from ardea.protocol.incarnations import incarnation
from scheduler.control import Status, TaskStatus
from scheduler.processes import ProcessRow


def test_a_task_is_told_with_its_process_and_what_that_uses():
    totals = Totals(tasks=1, emitted=1234, cpu_seconds=61.52, resident_memory_bytes=57_300_000)
    status = Status(
        "t-1", "RUNNING", "", 1, 1, [], [], 0, [], None,
        {"add-0": TaskStatus("ACTIVE", incarnation(3, 2), 0, Resource(0.5, 256 * MIB))}, {},
        [ProcessTotals(1, "add-0", "add", 1, totals)],
    )  # fmt: skip
    table = _tasks(status, [ProcessRow(1, "add-0", "running", 77, 2, 1, None, "", "")])
    console = Console(width=200)
    with console.capture() as shown:
        console.print(table)
    header, row = shown.get().splitlines()
    assert header.split() == [
        "Task", "Container", "Pid", "State", "Process", "Life", "Restarts", "CPU", "s", "Memory", "Asked",
        "Emitted", "Executed", "Acked", "Failed", "Pending",
    ]  # fmt: skip
    assert row.split() == [
        "add-0", "1", "77", "ACTIVE", "running", "3.2", "1", "61.5", "57.3", "MB", "0.5", "CPU,", "256", "MiB",
        "1,234", "0", "0", "0", "0",
    ]  # fmt: skip

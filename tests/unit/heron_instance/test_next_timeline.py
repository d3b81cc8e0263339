"""What waits in a task's queue as its executor goes back is for the next one."""

from __future__ import annotations

from ardea.heron_instance.executor import Executor
from ardea.protocol.wire_pb2 import REPORT, TaskReport
from tests.unit.protocol.hostile import Instance


def test_a_new_life_of_the_manager_is_told_to_the_executor_of_the_next_timeline():
    """The master takes none of two reports of one version: that of the former would hide what the next one does."""
    made = Instance("passed")
    made.goes_on()
    made.shell.reborn()
    made.shell.executor = Executor.after(made.executor, made.shell.renewed(made.executor.env))
    made.sent.clear()
    for _ in range(2):
        made.goes_on()
        made.shell.reborn()
    made.goes_on()
    reports = [TaskReport.FromString(message.frames[0]) for message in made.sent if message.header.kind == REPORT]
    assert len(reports) == 3
    assert len({report.version for report in reports}) == 3

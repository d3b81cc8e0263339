"""What a stream manager says each second waits once for a task in a call that does not return: as it was said last."""

from __future__ import annotations

import math

from ardea.heron_instance.queues import BoundedQueue
from ardea.protocol.wire_pb2 import CREDITS, PAUSE, Header, Load, Pace
from tests.unit.protocol.hostile import Instance


def test_pauses_loads_and_paces_wait_once_each_as_they_were_said_last():
    made = Instance("words")
    made.goes_on()
    runner, heard = made.executor.runner, []
    made.executor.task_output.refresh = heard.append
    for number in range(1, 51):
        made.shell.deliver(Header(kind=PAUSE, paused=number < 50), [], 0)
        made.shell.deliver(Header(kind=CREDITS, loads=[Load(task=3, load=number / 64)]), [], 0)
        for task in (2, 3):
            made.shell.deliver(Header(kind=CREDITS, paces=[Pace(task=task, rows=number + task)]), [], 0)
    assert made.shell.inbox.statistics().depth == 4
    made.goes_on()
    assert runner._paused_until == -math.inf
    assert heard == [{3: 50 / 64}]
    assert made.executor.dispatch.paces == {2: 52, 3: 53}
    made.shell.deliver(Header(kind=PAUSE, paused=True), [], 0)
    assert made.shell.inbox.statistics().depth == 1
    made.goes_on()
    assert runner._paused_until > made.now


def test_what_is_said_after_the_former_word_was_taken_waits():
    queue = BoundedQueue("data_in", 10, 100)
    for said in (1, 2):
        queue.put_newest("load", said)
    queue.put("other")
    assert (queue.take(), queue.statistics().depth) == (2, 1)
    queue.put_newest("load", 3)
    assert [queue.take() for _ in range(3)] == ["other", 3, None]
    assert queue.empty

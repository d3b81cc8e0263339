"""What a master answers to those who ask for its status."""

from __future__ import annotations

import msgspec

from ardea.metrics import Summary, TaskSummary
from ardea.plan.change import UpdateProgress
from ardea.protocol.wire_pb2 import Ask
from ardea.scheduler.control import status_in
from ardea.topology_master.heard import Heard
from ardea.topology_master.verbs import Verbs
from ardea.versions import PROTOCOL
from tests.unit.topology_master.test_addresses import Meeting

EXECUTED = "ardea_instance_tuples_executed_total"


def test_a_task_that_is_gone_is_no_process_and_its_component_keeps_what_it_has_counted():
    """Another task of its name may have come since: the one with number 3."""
    meeting, heard = Meeting(), Heard(0.0, 1000.0)
    for name, task in (("count-0", 3), ("count-0", 9), ("count-7", 10)):
        of_task = TaskSummary(name, "count", task, 1, {}, {EXECUTED: (5.0,)}, {})
        heard.overview.accept(msgspec.msgpack.encode(Summary(1, 1, [of_task])), 0.0)
    verbs = Verbs(meeting.master, heard, "token", "master", lambda: 1000.0)
    status = status_in(verbs.answer(Ask(verb="status", token="token"), PROTOCOL, 1.0), PROTOCOL, "words")
    assert [(row.process, row.task) for row in status.processes] == [("count-0", 3)]
    assert status.components["count"].executed == 15


def test_who_asks_for_an_update_hears_of_that_one_though_another_was_the_last():
    meeting = Meeting()
    verbs, body = Verbs(meeting.master, Heard(0.0, 1000.0), "token", "master"), meeting.definition.packed()

    def asks(id_):
        arguments = {"id": id_, "base": "1", "wait": "30"}
        answer = verbs.answer(Ask(verb="update", token="token", arguments=arguments, body=body), PROTOCOL, 1.0)
        return status_in(answer, PROTOCOL, "words").update

    assert [asks(each) for each in ("a", "b", "a")] == [UpdateProgress(each, "done") for each in ("a", "b", "a")]

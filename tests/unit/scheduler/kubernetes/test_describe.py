"""What pods and supervisors together say of a topology's processes."""

from __future__ import annotations

from ardea.health import ProcessRow
from ardea.scheduler.kubernetes import layout, names
from ardea.scheduler.kubernetes.describe import process_rows

SUPERVISED = ProcessRow(1, "adds_up-0", "waiting", 7, 20, 19, 1767225600.0, "exit 75 (boom)", "died 9 times", 9, 1.0)


def pod(prepared, **state):
    """Of container 1; its task of `adds_up` has this state."""
    (plan, *_) = prepared.inputs.containers
    called = next(name for name in names.instance_names(plan.instances).values() if name.startswith("adds-up"))
    status = {"name": called, "restartCount": 0, "state": {"running": {}}, **state}
    done = {"name": layout.PREPARE, "restartCount": 0, "state": {"terminated": {"exitCode": 0}}}
    return {
        "metadata": {"name": "x", "labels": {names.CONTAINER: "1"}},
        "status": {"initContainerStatuses": [done], "containerStatuses": [status]},
    }


def ended(at, reason="OOMKilled"):
    return {"lastState": {"terminated": {"exitCode": 137, "reason": reason, "finishedAt": at}}, "restartCount": 1}


def supervised(prepared):
    (plan, *_) = prepared.inputs.containers
    name = next(i.name for i in plan.instances if i.component == "adds_up")
    return ProcessRow(1, name, *[getattr(SUPERVISED, f) for f in SUPERVISED.__struct_fields__[2:]])


def test_of_a_process_in_a_container_that_runs_its_supervisor_knows_more(prepared):
    made = prepared()
    known = supervised(made)
    assert process_rows(made.inputs, [pod(made)], [known]) == [known]
    (alone,) = process_rows(made.inputs, [pod(made)])
    assert (alone.name, alone.state, alone.restarts) == (known.name, "running", 0)


def test_a_container_that_does_not_run_is_told_as_kubelet_does(prepared):
    made = prepared()
    waiting = {
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
        **ended("2026-01-02T00:00:00Z"),
    }
    (row,) = process_rows(made.inputs, [pod(made, **waiting)], [supervised(made)])
    assert (row.state, row.restarts, row.last_reason) == ("waiting", 1, "killed for its memory")


def test_a_container_that_was_killed_whole_is_told_although_its_supervisor_knows_nothing_of_it(prepared):
    """On version 2 of control groups the supervisor dies with what it keeps."""
    made = prepared()
    known = supervised(made)
    (later,) = process_rows(made.inputs, [pod(made, **ended("2026-01-02T00:00:00Z"))], [known])
    assert (later.life, later.last_reason) == (20, "killed for its memory")
    (before,) = process_rows(made.inputs, [pod(made, **ended("2025-12-31T00:00:00Z"))], [known])
    assert before == known


def test_a_container_that_its_node_has_lost_ended_nobody_knows_when(prepared):
    made = prepared()
    (row,) = process_rows(made.inputs, [pod(made, **ended(None, "ContainerStatusUnknown"))])
    assert (row.state, row.restarts, row.last_end, row.last_reason) == ("running", 1, None, "exit 137")

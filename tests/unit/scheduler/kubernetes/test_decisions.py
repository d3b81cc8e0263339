"""What the keeper decides: nothing that is whole is touched, and everything becomes whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ardea.scheduler.kubernetes.decisions import (
    CreateJob,
    DeleteJob,
    Fail,
    ForgetPod,
    JobSeen,
    PodSeen,
    decide,
    job_seen,
    pod_seen,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WANTED = ("t-container-1", "t-container-2", "t-master-1")


def job(name="t-container-1", *, failed=0, finished=False, deleting=False, content="1: 2 3"):
    return JobSeen(name, f"uid-{name}", failed, finished, deleting, content)


def pod(job="t-container-1", *, over=False, gone_by=None, permanent="", name="p"):
    return PodSeen(name, f"uid-{name}", job, over, gone_by, permanent)


def decided(jobs, pods=(), wanted=("t-container-1",), *, over=False, updating=False):
    return decide(dict.fromkeys(wanted, "1: 2 3"), jobs, pods, NOW, over=over, updating=updating)


def test_what_runs_is_left_alone():
    assert decided([job(failed=5)], [pod()]) == []


def test_a_job_that_is_not_there_is_created():
    assert decided([]) == [CreateJob("t-container-1")]


def test_a_job_that_is_being_deleted_is_waited_for():
    assert decided([job(deleting=True)]) == []


def test_a_job_that_the_plan_has_not_goes():
    (action,) = decided([job(), job("t-container-9")], [pod()])
    assert (action.name, action.uid) == ("t-container-9", "uid-t-container-9")


def test_the_third_lost_pod_is_not_waited_for():
    assert decided([job(failed=1)]) == []
    assert decided([job(failed=2)]) == []
    (action,) = decided([job(failed=3)])
    assert action == DeleteJob(
        "t-container-1", "uid-t-container-1", "it has lost 3 pods and would wait 40 s for the next"
    )


def test_a_pod_that_is_going_does_not_run():
    going = pod(gone_by=NOW + timedelta(seconds=20))
    (action,) = decided([job(failed=3)], [going])
    assert isinstance(action, DeleteJob)


def test_a_pod_on_a_lost_node_is_forgotten():
    assert decided([job()], [pod(gone_by=NOW - timedelta(seconds=9))]) == []
    assert decided([job()], [pod(gone_by=NOW - timedelta(seconds=11))]) == [ForgetPod("p", "uid-p")]


def test_a_container_whose_job_is_done_too_early_gets_another():
    (action,) = decided([job(finished=True)])
    assert isinstance(action, DeleteJob)


def test_after_the_end_only_stuck_pods_go():
    stuck = pod(gone_by=NOW - timedelta(seconds=60))
    assert decided([job(finished=True), job("t-container-9")], [stuck], over=True) == [ForgetPod("p", "uid-p")]


def test_what_cannot_go_on_fails_the_topology_once():
    dead = [pod(permanent="count-0: wrong"), pod(permanent="count-1: wrong", name="q")]
    assert decided([job()], dead) == [Fail("p cannot go on: count-0: wrong")]
    assert decided([job(finished=True)], dead) == [Fail("p cannot go on: count-0: wrong")], "its pod keeps the log"


def test_an_init_container_of_somebody_elses_fails_no_topology():
    ended = {"terminated": {"exitCode": 78, "message": "EX_CONFIG"}}

    def permanent(name, where="initContainerStatuses"):
        status = {where: [{"name": name, "state": ended}]}
        return pod_seen({"metadata": {"name": "p", "uid": "u"}, "status": status}).permanent

    assert permanent("fetch-model") == ""
    assert permanent("prepare") == "prepare: EX_CONFIG"
    assert permanent("stream-manager") == "stream-manager: EX_CONFIG"
    assert permanent("count-0", "containerStatuses") == "count-0: EX_CONFIG"


def test_an_update_that_cannot_go_on_is_put_back():
    """By the master: neither while it is under way, nor by what is left of its pods."""
    assert decided([job()], [pod(permanent="count-0: wrong")], updating=True) == []
    going = pod(permanent="count-0: wrong", gone_by=NOW + timedelta(seconds=20))
    assert decided([job()], [going, pod(name="q")]) == []
    left = job("t-container-9"), job(content="2: 2 3")
    for each in left:
        (action,) = decided([each], [pod(each.name, permanent="count-0: wrong")])[:1]
        assert isinstance(action, DeleteJob), "its Job is not the plan's any more"


def test_a_job_of_another_plan_or_build_is_replaced():
    """Also if its pod runs; one of the same content is left alone."""
    other, same = job(content="2: 2 3"), job("t-container-2")
    pods = [pod(), pod("t-container-2", name="q")]
    actions = decided([other, same], pods, wanted=("t-container-1", "t-container-2"))
    assert actions == [DeleteJob(other.name, other.uid, "the plan has other tasks, or other code, for it")]


JOBS = st.builds(
    job,
    st.sampled_from([*WANTED, "t-container-9"]),
    failed=st.integers(0, 8),
    finished=st.booleans(),
    deleting=st.booleans(),
    content=st.sampled_from(["1: 2 3", "1: 2 3", "1: 2"]),
)
PODS = st.builds(
    pod,
    st.sampled_from([*WANTED, "t-container-9"]),
    over=st.booleans(),
    gone_by=st.none() | st.integers(-100, 100).map(lambda s: NOW + timedelta(seconds=s)),
    name=st.uuids().map(str),
)


@given(st.lists(JOBS, unique_by=lambda j: j.name), st.lists(PODS, unique_by=lambda p: p.name))
def test_two_rounds_make_every_job_one_that_works(jobs, pods):
    there = {j.name: j for j in jobs}
    before = dict(there)
    for _ in range(2):
        for action in decided(there.values(), pods, WANTED):
            match action:
                case CreateJob(name):
                    assert name not in there
                    there[name] = job(name)
                case DeleteJob(name, uid):
                    assert there.pop(name).uid == uid
                case ForgetPod(name):
                    pods = [p for p in pods if p.name != name]
        there = {name: j for name, j in there.items() if not j.deleting}  # Kubernetes has finished
    rest = [a for a in decided(there.values(), pods, WANTED) if not isinstance(a, CreateJob)]
    assert rest == []
    assert {j.content for j in there.values()} <= {"1: 2 3"}
    running = {p.job for p in pods if not p.over and p.gone_by is None}
    for name, was in before.items():
        if name in WANTED and name in running and not (was.finished or was.deleting) and was.content == "1: 2 3":
            assert there[name] is was, "a Job whose pod runs was touched"


def test_a_job_as_kubernetes_describes_it():
    manifest = {
        "metadata": {"name": "j", "uid": "u"},
        "status": {
            "failed": 2,
            "conditions": [{"type": "TopologyFailed", "status": "True"}, {"type": "Complete", "status": "False"}],
        },
    }
    assert job_seen(manifest) == JobSeen("j", "u", 2, finished=False, deleting=False)
    manifest["status"]["conditions"][1]["status"] = "True"
    assert job_seen(manifest).finished


def test_a_pod_as_kubernetes_describes_it():
    ended = {"terminated": {"exitCode": 78, "message": "one line\ntwo: no such key\n"}}
    manifest = {
        "metadata": {
            "name": "p",
            "uid": "u",
            "labels": {"batch.kubernetes.io/job-name": "j"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "status": {"phase": "Running", "containerStatuses": [{"name": "count-0", "state": {}, "lastState": ended}]},
    }
    assert pod_seen(manifest) == PodSeen("p", "u", "j", False, NOW, "count-0: two: no such key")

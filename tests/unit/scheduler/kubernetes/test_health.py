"""What is told of a topology's health in its namespace, and what everybody reads there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from ardea.errors import ClusterError, NotFound, Unreachable, Unrecognized, UserError
from ardea.health import Health, HealthState, ProcessRow, Trouble
from ardea.scheduler.control import Status
from ardea.scheduler.hopeless_run import hopeless_start
from ardea.scheduler.kubernetes import health, names, objects
from ardea.scheduler.kubernetes.handle import KubernetesHandle
from ardea.scheduler.kubernetes.lease import RENEW_EVERY, VALID_SECS
from ardea.scheduler.kubernetes.reporter import WRITE_EVERY, OwnPod, Reporter
from ardea.scheduler.kubernetes.scheduler import Kubernetes
from ardea.scheduler.kubernetes.submission import Options, submit
from ardea.scheduler.kubernetes.topologies import find, health_of, listing, with_health
from ardea.scheduler.kubernetes.ways import Ways
from ardea.snapshots.savepoint import SavepointProgress

BEGUN = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
LOOP = "died 3 times in 2 s: ValueError: boom"
CRASHING = ProcessRow(1, "adds-up-0", "waiting", None, 4, 3, 1.0, "", LOOP, 3, 1.0)


def said(*troubles, came_up=True, supervised=(), state="RUNNING"):
    """By a master."""
    word = HealthState.CRASHING if any(t.crashing for t in troubles) else HealthState.HEALTHY
    return Status(
        "sums", state, "", 1, 1, [], [], 0, [], None, {}, {}, [],
        came_up=came_up, health=Health(word, list(troubles)), supervised=list(supervised),
    )  # fmt: skip


def pod(name, job, number, component=names.WORKER, **status):
    labels = {names.JOB: job, names.CONTAINER: str(number), names.COMPONENT: component}
    return {"kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


class Place:
    """A namespace with one topology, whose master's keeper tells of it."""

    def __init__(self, cluster, prepared):
        self.cluster, self.prepared, self.now = cluster, prepared, BEGUN
        self.root = submit(cluster, prepared)
        self.root["metadata"]["creationTimestamp"] = cluster.objects["ConfigMap", "sums"]["metadata"][
            "creationTimestamp"
        ] = "2026-01-01T00:00:00Z"
        cluster.now = lambda: self.now
        self.reporter = Reporter(cluster, "tcp://10.0.0.1:4000", "sums-master-1-x", lambda: self.now)

    def has(self, manifest):
        manifest["metadata"]["labels"] |= names.labels(self.prepared.inputs.id)
        return self.cluster.apply(manifest)

    def tells(self, status):
        self.cluster.calls.clear()
        selector = names.of_topology(self.prepared.inputs.id)
        root, jobs, pods = (
            self.cluster.find("ConfigMap", "sums"),
            *(self.cluster.list(k, selector) for k in ("Job", "Pod")),
        )
        self.reporter.tell(self.prepared.inputs, root, status, jobs, pods)
        return [(verb, kind) for verb, kind, *_ in self.cluster.calls]

    def passes(self, seconds):
        self.now += timedelta(seconds=seconds)

    def reads(self):
        (topology,) = with_health(self.cluster, listing(self.cluster), self.now)
        return topology.health

    def condition(self, name):
        return self.cluster.find("Pod", name)["status"]["conditions"][0]


@pytest.fixture
def place(cluster, prepared):
    made = Place(cluster, prepared())
    for number in (1, 2):
        made.has(pod(f"sums-container-{number}-x", f"sums-container-{number}", number))
        made.has(pod(f"sums-master-{number}-x", f"sums-master-{number}", 0, names.MASTER))
    return made


def test_a_healthy_topology_is_read_from_its_root_while_the_lease_is_valid(place):
    assert place.tells(said())[:2] == [("patch", "ConfigMap"), ("apply", "Lease")]
    assert place.reads() == Health(HealthState.HEALTHY)
    place.passes(VALID_SECS)
    assert place.reads().state == HealthState.HEALTHY
    place.passes(1)
    unheard = place.reads()
    assert (unheard.state, unheard.troubles[0].who) == (HealthState.UNREACHABLE, "sums-master-1-x")
    assert unheard.troubles[0].since == BEGUN.timestamp()


def test_whether_a_lease_is_valid_is_a_question_to_the_clock_of_the_cluster(place, monkeypatch):
    """The reader's own clock may be minutes away."""
    place.tells(said())
    monkeypatch.setattr(Kubernetes, "_cluster", place.cluster)
    (topology,) = Kubernetes().topologies()
    assert topology.health == Health(HealthState.HEALTHY)


def test_a_master_that_answers_acts_whatever_its_lease_says(place, monkeypatch):
    place.tells(said())
    place.passes(VALID_SECS + 1)
    for each in place.cluster.list("Pod"):
        place.cluster.delete("Pod", each["metadata"]["name"])
    handle = KubernetesHandle(place.cluster, find(place.cluster, "Sums"), Options(), Ways())
    heard = [(said(), ""), (None, "no master answers")]
    monkeypatch.setattr(handle, "master_says", lambda: heard.pop(0))
    assert [handle.describe().health.state for _ in range(2)] == [HealthState.HEALTHY, HealthState.UNREACHABLE]


def test_a_lease_is_renewed_every_ten_seconds_and_the_root_written_when_there_is_news(place):
    place.tells(said())
    assert place.tells(said()) == []
    place.passes(RENEW_EVERY)
    assert place.tells(said()) == [("apply", "Lease")]
    assert place.cluster.find("Lease", "sums")["spec"]["holderIdentity"] == "sums-master-1-x"


def test_a_health_that_changes_all_the_time_is_written_every_five_seconds(place):
    place.tells(said())
    place.passes(WRITE_EVERY)
    lost = Trouble("container-2", 1.0, "it has not registered with the master")
    assert ("patch", "ConfigMap") in place.tells(said(lost))
    place.passes(WRITE_EVERY - 1)
    assert ("patch", "ConfigMap") not in place.tells(said())
    assert place.reads().state == HealthState.DEGRADED
    place.passes(1)
    assert ("patch", "ConfigMap") in place.tells(said())


def test_the_lease_of_a_former_topology_of_the_name_says_nothing_of_this_one(place):
    """It goes a little later than its root; the name may be another's by then."""
    place.tells(said())
    lease = place.cluster.find("Lease", "sums")
    lease["metadata"]["ownerReferences"][0]["uid"] = "the-former"
    place.cluster.objects["Lease", "sums"] = lease
    annotations = place.cluster.objects["ConfigMap", "sums"]["metadata"]["annotations"]
    del annotations[objects.STATUS]
    assert place.reads().lines(place.now.timestamp()) == ["container-0 since 60 s: no master has acted yet"]


def test_a_process_that_is_stuck_degrades_its_pod(place):
    place.tells(said())
    place.passes(WRITE_EVERY)
    stuck = ProcessRow(1, "adds-up-0", "stuck", 7, 1, 0, None, "", "")
    place.tells(said(supervised=[stuck]))
    told = place.condition("sums-container-1-x")
    assert (told["status"], told["reason"]) == ("False", "Degraded")
    assert [event["reason"] for event in place.cluster.list("Event")] == ["Degraded"]


def test_a_crashing_process_is_told_in_the_condition_and_an_event_and_so_is_its_recovery(place):
    place.tells(said())
    assert place.condition("sums-container-1-x")["status"] == "True"
    assert place.cluster.list("Event") == []
    place.passes(WRITE_EVERY)
    trouble = Trouble("adds-up-0", 1.0, LOOP, crashing=True)
    place.tells(said(trouble, supervised=[CRASHING]))
    told = place.condition("sums-container-1-x")
    assert (told["type"], told["status"], told["message"]) == (health.CONDITION, "False", f"adds-up-0 {LOOP}")
    assert place.condition("sums-container-2-x")["status"] == "True"
    assert place.reads() == Health(HealthState.CRASHING, [trouble])
    place.passes(WRITE_EVERY)
    assert ("patch", "Pod") not in place.tells(said(trouble, supervised=[CRASHING]))
    place.passes(WRITE_EVERY)
    place.tells(said())
    events = [(e["involvedObject"]["name"], e["type"], e["reason"]) for e in place.cluster.list("Event")]
    assert sorted(events) == [
        ("sums-container-1", "Normal", "Recovered"), ("sums-container-1", "Warning", "Crashing"),
    ]  # fmt: skip


def test_what_matters_of_snapshots_is_an_event_of_the_root_also_with_the_last_word(place):
    done = SavepointProgress(id="a", step="done", folder="/there", number=1 << 32 | 5)
    place.tells(msgspec.structs.replace(said(), savepoint=done, state="KILLED"))
    (event,) = place.cluster.list("Event")
    about = event["involvedObject"]
    assert (about["kind"], about["name"], event["reason"]) == ("ConfigMap", "sums", "SavepointWritten")


def test_of_many_troubles_the_first_are_written_and_how_many_more_there_are(place):
    """An object has room for 256 KiB of annotations; a topology can have a trouble for each of its tasks."""
    crashing = [Trouble(f"task-{number:03}", 1.0, "\x00" * 1000, crashing=True) for number in range(400)]
    place.tells(said(*crashing, Trouble("first-0", 1.0, "it is slow")))
    written = place.cluster.find("ConfigMap", "sums")["metadata"]["annotations"][objects.STATUS]
    assert len(written.encode()) < 256 << 10
    seen = place.reads()
    *shown, last = seen.troubles
    assert (seen.state, len(shown)) == (HealthState.CRASHING, health.MOST)
    assert [each.who for each in shown[:2]] == ["task-000", "task-001"]
    assert {len(each.why) for each in shown} == {health.LONGEST}
    assert last.line(0.0) == "and 351 more: only the first 50 are written down"


@pytest.mark.parametrize("error", [UserError("metadata.annotations: Too long"), Unreachable("HTTP 500")])
def test_a_status_that_the_cluster_does_not_take_ends_no_round(place, monkeypatch, caplog, error):
    patch = place.cluster.patch

    def refused(kind, *given):
        if kind == "ConfigMap":
            raise error
        return patch(kind, *given)

    monkeypatch.setattr(place.cluster, "patch", refused)
    for _ in range(2):
        assert ("apply", "Lease") in place.tells(said())
        place.passes(RENEW_EVERY)
    assert [record.getMessage() for record in caplog.records] == [f"{error.message}; it is tried again"]
    monkeypatch.undo()
    assert ("patch", "ConfigMap") in place.tells(said())


@pytest.mark.parametrize("error", [Unrecognized("Unauthorized"), NotFound("no ConfigMap sums")])
def test_a_root_or_an_account_that_is_gone_ends_the_round(place, monkeypatch, error):
    def refused(*_):
        raise error

    monkeypatch.setattr(place.cluster, "patch", refused)
    with pytest.raises(type(error)):
        place.tells(said())


def test_a_master_without_the_rights_to_say_so_keeps_its_topology_all_the_same(place, monkeypatch):
    """The chart has not been upgraded."""

    def refused(*_, **__):
        raise ClusterError("cannot apply Lease sums: forbidden")

    monkeypatch.setattr(place.cluster, "apply", refused)
    assert ("patch", "ConfigMap") in place.tells(said())
    seen = place.reads()
    assert seen.state == HealthState.UNREACHABLE
    assert "there is no Lease" in seen.troubles[0].why


def test_a_master_without_the_right_to_read_events_keeps_a_topology_that_lacks_a_pod(place, monkeypatch):
    listed = place.cluster.list

    def without_events(kind, selector=""):
        if kind == "Event":
            raise ClusterError("cannot list Event: forbidden")
        return listed(kind, selector)

    monkeypatch.setattr(place.cluster, "list", without_events)
    place.cluster.delete("Pod", "sums-container-1-x")
    assert place.tells(said())[:2] == [("patch", "ConfigMap"), ("apply", "Lease")]


def test_a_master_without_the_right_to_speak_of_its_own_pod_goes_on(place, monkeypatch):
    def refused(*_, **__):
        raise ClusterError("cannot change Pod: forbidden")

    monkeypatch.setattr(place.cluster, "patch", refused)
    OwnPod(place.cluster, "sums-master-1-x", lambda: place.now).tell("")


def test_a_cluster_that_does_not_answer_is_no_missing_right(place, monkeypatch):
    def silent(*_, **__):
        raise Unreachable("the cluster does not answer")

    monkeypatch.setattr(place.cluster, "apply", silent)
    with pytest.raises(Unreachable):
        place.tells(said())


def waiting(name, reason, message, restarts=0, last=None):
    state = {"name": name, "state": {"waiting": {"reason": reason, "message": message}}, "restartCount": restarts}
    return {"containerStatuses": [state | ({"lastState": {"terminated": last}} if last else {})]}


UNSCHEDULED = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}]}
NO_IMAGE = waiting("adds-up-0", "ImagePullBackOff", "Back-off pulling image")
KILLED = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("status", "came_up", "word", "why"),
    [
        (UNSCHEDULED, False, HealthState.STARTING, "cannot be scheduled: 0/2 nodes are available"),
        (UNSCHEDULED, True, HealthState.DEGRADED, "cannot be scheduled: 0/2 nodes are available"),
        (NO_IMAGE, False, HealthState.STARTING, "ImagePullBackOff: Back-off pulling image"),
        (waiting("adds-up-0", "CrashLoopBackOff", "back-off", 5, KILLED), True, HealthState.CRASHING,
         "its container was started 5 times again: killed for its memory"),
    ],
)  # fmt: skip
def test_what_the_cluster_says_of_a_pod_explains_why_its_container_has_not_registered(status, came_up, word, why):
    unregistered = Trouble("container-1", 1.0, "it has not registered with the master")
    seen = health.with_pods(Health(word, [unregistered]), [pod("x", "j", 1, **status)], {}, came_up=came_up)
    assert seen.state == word
    (trouble,) = seen.troubles
    assert trouble.who.startswith("container-1")
    assert why in trouble.why


def test_a_pod_that_the_cluster_refuses_is_told():
    seen = health.with_pods(Health(HealthState.HEALTHY), [], {2: "exceeded quota: small"}, came_up=False)
    assert seen == Health(HealthState.STARTING, [Trouble("container-2", None, "gets no pod: exceeded quota: small")])


def test_a_topology_whose_masters_never_acted_is_starting_with_the_reason(place):
    place.has(pod("sums-master-1-x", "sums-master-1", 0, names.MASTER, **NO_IMAGE))
    seen = place.reads()
    assert seen.state == HealthState.STARTING
    assert any("ImagePullBackOff" in trouble.why for trouble in seen.troubles)


def test_masters_that_are_cut_off_from_the_state_say_so(place):
    place.tells(said())
    place.passes(VALID_SECS + 1)
    OwnPod(place.cluster, "sums-master-1-x", lambda: place.now).tell("cut off from the topology's state")
    lines = place.reads().lines(place.now.timestamp())
    assert lines == [
        "sums-master-1-x since 31 s: the master that acted has not been heard since",
        "sums-master-1-x: cut off from the topology's state",
    ]


def test_a_pod_says_its_own_word_once_and_takes_it_back(place):
    own = OwnPod(place.cluster, "sums-master-1-x", lambda: place.now)
    for why in ("cut off", "cut off for 12 s", ""):
        own.tell(why)
    place.cluster.calls.clear()
    own.tell("")
    assert place.cluster.calls == []
    assert place.condition("sums-master-1-x")["status"] == "True"


def test_a_root_without_jobs_is_an_orphan(place):
    for job in place.cluster.list("Job"):
        place.cluster.delete("Job", job["metadata"]["name"])
    assert place.reads().state == HealthState.ORPHANED
    place.now = datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
    assert place.reads().state == HealthState.STARTING  # it is just being submitted


def test_a_topology_that_has_ended_or_that_another_version_keeps_has_no_health(place):
    place.tells(said())
    root = place.cluster.find("ConfigMap", "sums")
    status = objects.status_of(root)
    for known in (msgspec.structs.replace(status, health=None), msgspec.structs.replace(status, state="FAILED")):
        annotations = {objects.STATUS: msgspec.json.encode(known).decode()}
        place.cluster.patch("ConfigMap", "sums", {"metadata": {"annotations": annotations}})
        place.cluster.delete("Lease", "sums")
        found = find(place.cluster, place.prepared.inputs.id)
        assert health_of(place.cluster, found, None, place.now) is None


def test_a_topology_that_never_came_up_is_given_up_when_a_process_dies_in_vain():
    cause = hopeless_start(said(came_up=False, supervised=[CRASHING]))
    assert cause.reason == "given up: adds-up-0 died 3 times before it ever worked: ValueError: boom"
    assert cause.culprit == "adds-up-0"
    assert hopeless_start(said(came_up=True, supervised=[CRASHING])) is None
    master = msgspec.structs.replace(CRASHING, container=0, name="topology-master")
    assert hopeless_start(said(came_up=False, supervised=[master])) is None
    assert hopeless_start(said(came_up=False)) is None

"""Submitting is all or nothing, and a name belongs to one topology at a time."""

from __future__ import annotations

import base64
import json

import msgspec
import pytest

from ardea.errors import ClusterError, Conflict, NotFound, Unreachable, Unrecognized, UserError
from ardea.scheduler.kubernetes import objects
from ardea.scheduler.kubernetes.describe import pod_rows
from ardea.scheduler.kubernetes.handle import KubernetesHandle
from ardea.scheduler.kubernetes.kill import Killing
from ardea.scheduler.kubernetes.manifest_inputs import Defaults
from ardea.scheduler.kubernetes.objects import RootStatus
from ardea.scheduler.kubernetes.root_object import write_status
from ardea.scheduler.kubernetes.submission import Options, find_defaults, prepare, submit
from ardea.scheduler.kubernetes.topologies import find, listing
from ardea.scheduler.kubernetes.waiting import BORNE_FOR, Waiter, refusals
from ardea.scheduler.kubernetes.ways import Ways


def kinds(cluster):
    return sorted(kind for kind, _ in cluster.objects)


def ended(cluster, state="SUCCEEDED", reason=""):
    write_status(cluster, cluster.find("ConfigMap", "sums"), RootStatus(state=state, reason=reason, came_up=True))


def test_root_secret_and_jobs(cluster, prepared):
    made = prepared()
    submit(cluster, made)
    assert kinds(cluster) == [*["ConfigMap"] * 2, *["Job"] * 4, *["Secret"] * 5]
    secret = cluster.find("Secret", "sums-access")["data"]
    user, _, password = base64.b64decode(secret["zookeeper"]).decode().partition(":")
    assert user == made.inputs.id
    assert len(password) == 32 != base64.b64decode(secret["token"])


def test_each_pod_mounts_its_own_key_and_no_task_does(cluster, prepared):
    made = prepared()
    submit(cluster, made)
    seen = set()
    for (kind, name), job in cluster.objects.items():
        if kind == "Job":
            spec = job["spec"]["template"]["spec"]
            (volume,) = [v["secret"]["secretName"] for v in spec["volumes"] if v["name"] == "key"]
            assert volume.rpartition("-")[2] == job["metadata"]["labels"]["ardea.dev/container"]
            holding = {
                c["name"] for c in (*spec["initContainers"], *spec["containers"]) if "key" in str(c["volumeMounts"])
            }
            assert holding <= {"prepare", "stream-manager", "metrics-manager", "topology-master"}, name
            seen.add(cluster.find("Secret", volume)["data"]["secret.key"])
    assert len(seen) == 3
    assert set(cluster.find("Secret", "sums-key-0")["data"]) == {"secret.key", "callers"}
    assert set(cluster.find("Secret", "sums-key-1")["data"]) == {"secret.key"}
    assert set(made.inputs.definition.keys) == {"callers", "container-0", "container-1", "container-2"}


def test_if_one_object_is_refused_none_is_left(cluster, prepared):
    cluster.refuses.add("sums-container-2")
    with pytest.raises(NotFound):
        submit(cluster, prepared())
    assert cluster.objects == {}


def silent(*_, **__):
    raise Unreachable("no answer")


def test_a_root_whose_creation_was_not_answered_is_found(cluster, prepared, monkeypatch):
    create = cluster.create

    def unanswered(manifest):
        create(manifest)
        monkeypatch.undo()
        silent()

    monkeypatch.setattr(cluster, "create", unanswered)
    made = prepared()
    assert submit(cluster, made)["metadata"]["uid"] == cluster.find("ConfigMap", "sums")["metadata"]["uid"]
    assert kinds(cluster).count("Job") == 4


@pytest.mark.parametrize(("refused", "method"), [(None, "create"), ("sums-container-2", "delete")])
def test_what_may_be_left_is_told(cluster, prepared, monkeypatch, refused, method):
    """Neither the creation of the root is answered, nor that it goes again."""
    cluster.refuses.add(refused)
    monkeypatch.setattr(cluster, method, silent)
    made = prepared()
    with pytest.raises(Unreachable, match=f"no answer; something of {made.inputs.id} may be left") as told:
        submit(cluster, made)
    assert told.value.hint == "`ardea kill Sums -n here` removes it"


def test_a_running_name_is_taken(cluster, prepared):
    submit(cluster, prepared())
    with pytest.raises(Conflict, match=r"a topology named Sums is running"):
        submit(cluster, prepared())


def test_a_name_that_has_ended_is_free(cluster, prepared):
    submit(cluster, prepared())
    ended(cluster)
    second = prepared()
    submit(cluster, second)
    assert [found.id for found in listing(cluster)] == [second.inputs.id]
    assert kinds(cluster).count("Job") == 4


def test_what_is_no_topologys_is_left_alone(cluster, prepared):
    cluster.apply({"kind": "ConfigMap", "metadata": {"name": "sums", "labels": {}}})
    with pytest.raises(Conflict, match="is no topology's"):
        submit(cluster, prepared())
    assert kinds(cluster) == ["ConfigMap"]


FOREIGN = ["sums-access", "sums-callers", "sums-key-1"]


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("labels", [{}, {"app.kubernetes.io/instance": "Sums", "app.kubernetes.io/managed-by": "Helm"}])
def test_a_secret_of_somebody_else_is_left_alone(cluster, prepared, name, labels):
    """A topology that took it would take it along at its end."""
    there = cluster.apply(
        {"kind": "Secret", "metadata": {"name": name, "labels": labels}, "data": {"password": "eA=="}}
    )
    with pytest.raises(Conflict, match=f"namespace here has a Secret {name} .* nothing was submitted"):
        submit(cluster, prepared())
    assert list(cluster.objects.values()) == [there]


def test_what_a_half_done_submit_has_left_becomes_the_next_ones(cluster, prepared):
    """The cluster removes it a little later than its root."""
    submit(cluster, prepared())
    for key in [key for key, manifest in cluster.objects.items() if key[0] == "Job" or key[1] == "sums"]:
        del cluster.objects[key]
    second = prepared()
    root = submit(cluster, second)
    for (kind, name), manifest in cluster.objects.items():
        if name != "sums":
            owners = [owner["uid"] for owner in manifest["metadata"]["ownerReferences"]]
            assert owners == [root["metadata"]["uid"]], f"{kind} {name}"
            assert manifest["metadata"]["labels"]["ardea.dev/topology-id"] == second.inputs.id
    shown = base64.b64decode(cluster.find("Secret", "sums-access")["data"]["zookeeper"]).decode()
    assert shown.startswith(f"{second.inputs.id}:")


def test_what_the_cluster_removes_at_this_moment_is_made_anew(cluster, prepared, monkeypatch):
    submit(cluster, prepared())
    del cluster.objects["ConfigMap", "sums"]
    for key in [key for key in cluster.objects if key[0] == "Job"]:
        del cluster.objects[key]
    find = cluster.find

    def gone(kind, name):
        cluster.objects.pop((kind, name), None)
        return find(kind, name)

    monkeypatch.setattr(cluster, "find", gone)
    submit(cluster, prepared())
    assert kinds(cluster) == [*["ConfigMap"] * 2, *["Job"] * 4, *["Secret"] * 5]


def test_the_topologys_own_configuration_wins_over_the_namespaces(author):
    defaults = Defaults(image="i", state="zookeeper://z/a", config={"topology.stmgrs": 9, "topology.debug": "true"})
    made = prepare(str(author({"topology.stmgrs": 2})), {"topology.message.timeout.secs": 5}, Options(), defaults)
    config = made.submission.plan.config
    assert (config["topology.stmgrs"], config["topology.debug"]) == (2, True)
    assert config["topology.message.timeout.secs"] == 5


def test_options_win_over_the_namespace(author):
    options = Options(image="mine", state="zookeeper://other/root/")
    made = prepare(str(author()), {}, options, Defaults(image="i", state="zookeeper://z/a"))
    assert made.inputs.pods.image == "mine"
    assert made.inputs.definition.state == f"zookeeper://other/root/{made.inputs.id}"


def test_masters_are_as_many_as_the_topology_says(author):
    base = {"image": "i", "state": "zookeeper://z/a", "master_replicas": 3}
    file = str(author())
    assert prepare(file, {}, Options(), Defaults(**base)).inputs.pods.masters == 3
    own = {"heron.topology.master.replicas": 1}
    assert prepare(file, own, Options(), Defaults(**base)).inputs.pods.masters == 1


def test_without_an_image_or_a_state_nothing_is_submitted(author):
    with pytest.raises(UserError, match="no image is known"):
        prepare(str(author()), {}, Options(), Defaults())
    with pytest.raises(UserError, match="no ZooKeeper is known"):
        prepare(str(author()), {}, Options(image="i"), Defaults())


def defaults_map(name, document):
    labels = {"ardea.dev/role": "defaults"}
    return {"kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"defaults.json": document}}


def test_the_charts_defaults_are_found(cluster):
    assert find_defaults(cluster) == Defaults()
    cluster.apply(defaults_map("one", json.dumps({"image": "i", "masterReplicas": 1, "later": True})))
    assert find_defaults(cluster) == Defaults(image="i", master_replicas=1)
    cluster.apply(defaults_map("two", "{}"))
    with pytest.raises(Conflict, match="one, two"):
        find_defaults(cluster)


def test_defaults_that_cannot_be_read_say_where(cluster):
    cluster.apply(defaults_map("one", "{"))
    with pytest.raises(UserError, match="ConfigMap one"):
        find_defaults(cluster)


class Time:
    """Passes when somebody waits, and then something happens."""

    def __init__(self, happening=lambda: None):
        self.now, self.happening = 0.0, happening

    def clock(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds
        self.happening()


def wait(cluster, root, time, *, patience=10.0, until_ended=False):
    return Waiter(cluster, root, lambda _: None, clock=time.clock, pause=time.pause).wait(patience, ended=until_ended)


def test_it_waits_until_every_task_has_reported(cluster, prepared):
    root = submit(cluster, prepared())
    time = Time(
        lambda: write_status(
            cluster, cluster.find("ConfigMap", "sums"), RootStatus(state="RUNNING", came_up=time.now >= 3)
        )
    )
    assert wait(cluster, root, time).came_up
    assert time.now == 3


def test_it_waits_for_the_end(cluster, prepared):
    root = submit(cluster, prepared())
    write_status(cluster, cluster.find("ConfigMap", "sums"), RootStatus(state="RUNNING", came_up=True))
    time = Time(lambda: time.now >= 5 and ended(cluster, "FAILED", "a row"))
    assert wait(cluster, root, time, until_ended=True).reason == "a row"


class Silent:
    """A cluster that does not answer from one moment to another."""

    def __init__(self, cluster, time, since, until, error):
        self.namespace, self._cluster, self._time = cluster.namespace, cluster, time
        self._since, self._until, self._error = since, until, error

    def __getattr__(self, name):
        if self._since <= self._time.now < self._until:
            raise self._error
        return getattr(self._cluster, name)


@pytest.mark.parametrize("error", [Unreachable("no answer"), Unrecognized("Unauthorized")])
def test_a_cluster_that_is_silent_for_a_while_is_borne(cluster, prepared, error):
    root = submit(cluster, prepared())
    time = Time(lambda: time.now >= 90 and ended(cluster))
    silent = Silent(cluster, time, 10, 9 + BORNE_FOR, error)
    assert wait(silent, root, time, patience=None, until_ended=True).state == "SUCCEEDED"


@pytest.mark.parametrize(("patience", "until"), [(None, 10 + BORNE_FOR), (20.0, 20.0)])
def test_one_that_stays_silent_is_told(cluster, prepared, patience, until):
    root, time = submit(cluster, prepared()), Time()
    silent = Silent(cluster, time, 10, 1e9, Unreachable("no answer"))
    with pytest.raises(Unreachable, match="no answer"):
        wait(silent, root, time, patience=patience, until_ended=True)
    assert until - 1 <= time.now <= until + 1


def test_it_says_what_keeps_it_from_running(cluster, prepared):
    made = prepared()
    root = submit(cluster, made)
    message = "0/2 nodes are available: 2 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    labels = {"ardea.dev/topology-id": made.inputs.id}
    cluster.apply({"kind": "Pod", "metadata": {"name": "p", "labels": labels}, "status": {"conditions": [condition]}})
    with pytest.raises(Exception, match=r"does not run after 10 s: .*p cannot be scheduled: 0/2 nodes") as raised:
        wait(cluster, root, Time())
    assert raised.value.exit_code == 4


def test_a_pod_that_can_never_start_ends_the_waiting(cluster, prepared):
    made = prepared()
    root = submit(cluster, made)
    condition = {"type": "Failed", "status": "True", "message": "exit code 78"}
    cluster.patch("Job", "sums-master-1", {"status": {"conditions": [condition]}})
    ended_at = {"terminated": {"exitCode": 78, "message": "another Python"}}
    status = {"initContainerStatuses": [{"name": "prepare", "state": ended_at}]}
    labels = {"ardea.dev/topology-id": made.inputs.id}
    cluster.apply({"kind": "Pod", "metadata": {"name": "p", "labels": labels}, "status": status})
    with pytest.raises(Exception, match="cannot run: prepare: another Python") as raised:
        wait(cluster, root, Time())
    assert raised.value.exit_code == 1


def test_a_kill_ends_the_waiting(cluster, prepared):
    root = submit(cluster, prepared())
    assert wait(cluster, root, Time(lambda: cluster.delete("ConfigMap", "sums"))).state == "KILLED"


def master_pod(cluster, made):
    labels = {
        "ardea.dev/topology-id": made.inputs.id,
        "app.kubernetes.io/component": "master",
        "ardea.dev/container": "0",
        "batch.kubernetes.io/job-name": "sums-master-1",
    }
    cluster.apply({"kind": "Pod", "metadata": {"name": "m", "labels": labels}, "status": {"phase": "Running"}})


def kill(cluster, time, said):
    Killing(cluster, find(cluster, "Sums"), said.append, clock=time.clock, pause=time.pause).kill(7.5)


def test_kill_lets_the_masters_stay_until_their_end_has_been_scraped(cluster, prepared):
    made, said = prepared(), []
    submit(cluster, made)
    master_pod(cluster, made)

    def ends():
        if time.now == 2:
            ended(cluster, "KILLED")
        assert cluster.find("ConfigMap", "sums") is not None or time.now >= 30
        if time.now == 30:
            cluster.patch("Pod", "m", {"status": {"phase": "Succeeded"}})
            cluster.objects.pop(("Pod", "m"))

    time = Time(ends)
    kill(cluster, time, said)
    assert cluster.objects == {}
    assert 30 <= time.now < 32
    assert "its masters stay until a Prometheus that scrapes them has seen it" in said[-1]


def test_kill_lets_the_master_drain_then_deletes(cluster, prepared):
    made, said = prepared(), []
    submit(cluster, made)
    master_pod(cluster, made)

    def drained():
        if time.now >= 2:
            assert objects.kill_of(cluster.find("ConfigMap", "sums")) == 7.5
            ended(cluster, "KILLED")
            cluster.delete("Pod", "m")

    time = Time(drained)
    kill(cluster, time, said)
    assert cluster.objects == {}
    assert said == [f"{made.inputs.id}: no new tuples; open ones have 7.5 s"]
    assert 2 <= time.now < 4


def test_kill_works_without_a_master(cluster, prepared):
    submit(cluster, prepared())
    said, time = [], Time()
    kill(cluster, time, said)
    assert cluster.objects == {}
    assert time.now == 0.0
    assert "no living master" in said[0]


@pytest.mark.parametrize("kind", ["Secret", "Job"])
def test_kill_needs_not_see_secrets_which_go_with_the_root(cluster, prepared, kind):
    """The console's account may not list them."""
    submit(cluster, prepared())
    listed = cluster.list

    def forbidden(asked, selector=""):
        if asked == kind:
            raise ClusterError(f"cannot list {kind}s: forbidden")
        return listed(asked, selector)

    cluster.list = forbidden
    if kind == "Secret":
        kill(cluster, Time(), [])
        assert cluster.objects == {}
    else:
        with pytest.raises(ClusterError, match="cannot list Jobs: forbidden"):
            kill(cluster, Time(), [])


def test_kill_says_what_is_left(cluster, prepared):
    made = prepared()
    submit(cluster, made)
    ended(cluster)
    master_pod(cluster, made)  # its node is gone, and nobody ends it
    with pytest.raises(Exception, match="Pod m still there") as raised:
        kill(cluster, Time(), [])
    assert raised.value.exit_code == 4


def test_verbs_find_by_name_and_by_id(cluster, prepared):
    made = prepared()
    submit(cluster, made)
    assert find(cluster, "Sums").id == find(cluster, made.inputs.id).id == made.inputs.id
    with pytest.raises(NotFound, match="no topology is called Other in namespace here"):
        find(cluster, "Other")
    ended(cluster, "FAILED", "why")
    with pytest.raises(Exception, match="does not run; it is FAILED"):
        KubernetesHandle(cluster, find(cluster, "Sums"), Options(), Ways()).require_running()


def test_what_a_master_says_is_read_again(cluster, prepared):
    submit(cluster, prepared())
    ended(cluster, "FAILED", "why")
    status = objects.status_of(cluster.find("ConfigMap", "sums"))
    assert msgspec.to_builtins(status)["reason"] == "why"


def refuse(cluster, job, said, at, **involved):
    """An event of the Job controller's."""
    uid = involved.get("uid", cluster.find("Job", job)["metadata"]["uid"])
    name = f"{job}.{at}"
    event = {
        "kind": "Event",
        "metadata": {"name": name},
        "reason": "FailedCreate",
        "message": said,
        "lastTimestamp": at,
    }
    cluster.apply({**event, "involvedObject": {"kind": "Job", "name": job, "uid": uid}})


def test_pods_that_are_refused_are_told(cluster, prepared):
    """A quota, Pod Security: there is no pod that could say anything."""
    made = prepared()
    root = submit(cluster, made)
    refuse(cluster, "sums-master-1", "exceeded quota: small, and more than now", "10:00")
    refuse(cluster, "sums-master-1", "exceeded quota: small", "10:05")
    refuse(cluster, "sums-container-1", "of a former Job", "10:06", uid="another")
    with pytest.raises(
        Exception, match="pods 0/4 ready · sums-master-1 gets no pod: exceeded quota: small; it goes on"
    ):
        wait(cluster, root, Time())
    jobs = cluster.list("Job")
    assert refusals(cluster, jobs, []) == {"sums-master-1": "exceeded quota: small"}
    (row,) = pod_rows([], jobs, refusals(cluster, jobs, []))
    assert (row["container"], row["pod"], row["trouble"]) == (0, None, "exceeded quota: small")
    cluster.apply(
        {"kind": "Pod", "metadata": {"name": "p", "labels": {"batch.kubernetes.io/job-name": "sums-master-1"}}}
    )
    assert refusals(cluster, jobs, cluster.list("Pod")) == {}
    cluster.patch("Pod", "p", {"status": {"phase": "Failed"}})  # its node was short of memory, and keeps it
    assert refusals(cluster, jobs, cluster.list("Pod")) == {}, "what was said before it"
    refuse(cluster, "sums-master-1", "exceeded quota: small, again", "2999-01-01T00:00:00Z")
    assert refusals(cluster, jobs, cluster.list("Pod")) == {"sums-master-1": "exceeded quota: small, again"}

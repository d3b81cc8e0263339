"""What an update brings into the namespace, what it leaves there, and what the keeper makes of the plan."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import msgspec
import pytest

from ardea.cli.change import asked
from ardea.errors import ArdeaError, ClusterError, Conflict, NotFound, Unreachable, Unrecognized, UserError
from ardea.plan.change import UpdateProgress, UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler.control import Status
from ardea.scheduler.kubernetes import objects
from ardea.scheduler.kubernetes.keeper import Keeper
from ardea.scheduler.kubernetes.manifest_inputs import PODS, ManifestInputs
from ardea.scheduler.kubernetes.reporter import Reporter
from ardea.scheduler.kubernetes.submission import Options, submit
from ardea.scheduler.kubernetes.topologies import find
from ardea.scheduler.kubernetes.update import MASTER_WITHIN, PodUpdate, Preparation
from ardea.scheduler.update import Refused
from ardea.state import Create, open_state, paths

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADDRESS = "tcp://10.0.0.1:4000"
DONE = "done"


def status(epoch, update=None):
    return Status("sums", "RUNNING", "", 1, epoch, [], [], 0, [], update, {}, {}, [])


class Master:
    """A control port: does what it is told to when it is asked."""

    def __init__(self, cluster):
        self.cluster, self.requests, self.seen = cluster, [], []
        self.epoch, self.progress, self.answers, self.now = 1, None, [DONE], 0.0
        self.meanwhile = []  # what happens before the next answers
        self.closed = 0

    def ask(self, verb, *, patience=5.0, body=b"", **arguments):
        if verb == "status":
            return status(self.epoch, self.progress)
        wanted = Definition.unpacked(body, "the request")
        id_ = arguments["id"]
        self.requests.append(UpdateRequest(id_, wanted, int(arguments["base"]), float(arguments["wait"])))
        self.seen.append(names(self.cluster))
        if self.meanwhile:
            self.meanwhile.pop(0)()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            self.now += patience
            raise answer
        return status(wanted.epoch, UpdateProgress(id_, answer, reason="it is full"))

    def close(self):
        self.closed += 1

    def switch(self):
        """The last request is in force, and the keeper has written it into the root."""
        wanted = self.requests[-1].wanted
        write_root(self.cluster, ManifestInputs(definition=wanted, pods=ManifestInputs.read(self.root()).pods))
        self.epoch = wanted.epoch

    def root(self):
        return self.cluster.find("ConfigMap", "sums")

    def pause(self, seconds):
        self.now += seconds

    def prepares(self, *parallelism, target=None, settings=None, moving=True, **options):
        change = asked(list(parallelism), settings, moving=moving, dropping=False)
        time = {"clock": lambda: self.now, "pause": self.pause}
        prepare = Preparation(self.cluster, find(self.cluster, "Sums"), self, **time)
        wanted = prepare.wanted(change, None if target is None else str(target), Options(**options))
        return PodUpdate(self.cluster, self, wanted, **time)

    def compares(self, *parallelism, target=None):
        """The verb's dry run."""
        return self.prepares(*parallelism, target=target).difference

    def updates(self, *parallelism, **options):
        """The verb; what it asked for."""
        with self.prepares(*parallelism, **options) as update:
            update.apply(30.0, lambda _: None)
        return self.requests[-1].wanted

    def refuses(self, *parallelism, **options):
        """The same for one that the master refuses."""
        with pytest.raises(Refused, match="the update was not made: it is full"):
            self.updates(*parallelism, **options)
        return self.requests[-1].wanted

    def is_silent_for(self, *parallelism, **options):
        """The same for one that no master answers; the next ones find one that does."""
        self.answers = [Unreachable("the pod is gone")] * 40
        with pytest.raises(Unreachable):
            self.updates(*parallelism, **options)
        self.answers = [DONE]
        return self.requests[-1].wanted


def names(cluster):
    """Of what is no Job."""
    return {name for kind, name in cluster.objects if kind != "Job"}


@pytest.fixture
def made(cluster, prepared):
    ready = prepared()
    submit(cluster, ready)
    return ready


@pytest.fixture
def master(cluster, made):
    return Master(cluster)


def test_more_tasks_bring_a_container_and_its_key(cluster, made, master):
    before = names(cluster)
    wanted = master.updates("adds_up:4")
    request = master.requests[0]
    assert (request.base, request.patience, wanted.epoch, wanted.build) == (1, 30.0, 2, 1)
    tasks = {c.number: len(c.instances) for c in packing_from_bytes(wanted.packing).containers}
    assert tasks == {1: 2, 2: 2, 3: 2}
    assert master.seen == [{*before, "sums-key-3"}]
    assert names(cluster) == {*before, "sums-key-3"}
    assert wanted.code == made.inputs.definition.code


def test_a_dry_run_brings_nothing_and_says_what_would_change(author, cluster, master):
    before = names(cluster)
    grown, anew = master.compares("adds_up:4"), master.compares(target=author(component={"topology.debug": True}))
    assert (names(cluster), master.requests) == (before, [])
    assert {each.component: each.tasks for each in grown.components}["adds_up"][1] == 4
    assert (grown.containers_added, grown.containers_replaced, grown.restarted) == ([3], [], False)
    assert (anew.containers_added, anew.containers_replaced, anew.restarted) == ([], [1, 2], True)


def test_what_a_refused_update_has_brought_goes_again(cluster, author, master):
    before, master.answers = names(cluster), ["refused"]
    wanted = master.refuses("adds_up:5", target=author(component={"topology.debug": True}))
    assert master.seen[0] - before == {f"sums-code-{wanted.code}"}
    assert names(cluster) == before


def test_if_one_object_is_refused_nothing_is_brought(cluster, author, master):
    before = names(cluster)
    cluster.refuses.add("sums-key-4")
    with pytest.raises(NotFound):
        master.updates("adds_up:6")
    assert (names(cluster), master.requests) == (before, [])
    cluster.apply({"kind": "Secret", "metadata": {"name": "sums-state"}})
    with pytest.raises(Conflict, match="is left as it is"):
        master.updates("adds_up:4", target=author(component={"topology.state.access": True}))
    assert (names(cluster) - before, master.requests) == ({"sums-state"}, [])


def test_what_another_update_has_brought_stays(cluster, master):
    """Whoever is refused because that one is under way found it there."""
    first = master.is_silent_for("adds_up:4").keys["container-3"]
    master.answers = ["refused"]
    wanted = master.refuses("adds_up:4")
    assert wanted.keys["container-3"] == first, "the master would take it for another update"
    assert "sums-key-3" in names(cluster)


def test_a_master_that_goes_is_asked_again(master):
    """Whichever it is then; nobody is asked any more when the verb ends."""
    master.answers = [Unreachable("the pod is gone"), Unreachable("there is none yet"), DONE]
    master.updates("adds_up:4")
    assert master.requests[0] == master.requests[1] == master.requests[2]
    assert master.closed == 1


UNKNOWN, FORBIDDEN = Unrecognized("cannot read ConfigMap sums: Unauthorized"), ClusterError("cannot read it: forbidden")


def test_a_cluster_that_refuses_for_a_moment_is_no_master_that_does(cluster, master, monkeypatch):
    """The master may work by the new plan by now, whose pods mount what was brought."""
    find = cluster.find

    def refused(kind, name):
        if kind == "ConfigMap" and len(master.requests) == 1:
            raise FORBIDDEN
        return find(kind, name)

    monkeypatch.setattr(cluster, "find", refused)
    master.answers = [UNKNOWN, FORBIDDEN, DONE]
    master.updates("adds_up:4")
    assert len(master.seen) == 3
    assert all("sums-key-3" in seen for seen in (*master.seen, names(cluster)))


def test_one_that_goes_on_refusing_is_told_and_what_was_brought_stays(cluster, master):
    master.answers = [UNKNOWN] * 40
    with pytest.raises(Unreachable, match="Unauthorized"):
        master.updates("adds_up:4")
    assert master.now < 2 * MASTER_WITHIN
    assert "sums-key-3" in names(cluster)


def test_a_topology_that_has_ended_meanwhile_is_not_waited_for(cluster, master):
    """Its masters are gone."""

    def ends():
        annotations = {objects.STATUS: msgspec.json.encode(objects.RootStatus(state="SUCCEEDED")).decode()}
        cluster.patch("ConfigMap", "sums", {"metadata": {"annotations": annotations}})

    master.meanwhile, master.answers = [ends], [Unreachable("the pod is gone")]
    with pytest.raises(Refused, match="has ended, before its master said by which plan"):
        master.updates("adds_up:4")


def test_a_new_version_replaces_the_code_when_it_runs(cluster, made, author, master):
    former = f"sums-code-{made.inputs.definition.code}"
    wanted = master.updates(target=author(component={"topology.debug": True}))
    newer = f"sums-code-{wanted.code}"
    assert {former, newer} <= master.seen[0]
    assert newer in names(cluster)
    assert former not in names(cluster)
    assert (wanted.build, wanted.location) == (2, made.inputs.definition.location)


def test_the_same_file_is_no_new_version(made, author, master):
    wanted = master.updates(target=author())
    assert wanted.same_as(made.inputs.definition)


def test_another_image_is_a_new_version_of_the_same_files(cluster, made, master):
    wanted = master.updates(image="ardea:newer")
    code = cluster.find("ConfigMap", f"sums-code-{wanted.code}")
    assert msgspec.json.decode(code["data"][PODS])["image"] == "ardea:newer"
    assert code["binaryData"]["bundle"] == base64.b64encode(made.bundle.data).decode()
    assert wanted.build == 2


def test_configuration_is_taken_up_from_the_files_in_the_cluster(made, master):
    wanted = master.updates(settings=["topology.max.spout.pending=7"])
    assert wanted.config["topology.max.spout.pending"] == 7
    assert (wanted.build, wanted.code) == (2, made.inputs.definition.code)


def test_what_may_not_change_is_refused(cluster, master):
    before = names(cluster)
    for arguments, says in (
        ({"settings": ["topology.name=Other"]}, "cannot be renamed"),
        ({"settings": ["heron.streammgr.curve=false"]}, "curve cannot be changed"),
        ({}, "nothing is to be changed"),
    ):
        with pytest.raises(UserError, match=says):
            master.updates(**arguments)
    with pytest.raises(UserError, match="adds_up: rows are grouped by keys"):
        master.updates("adds_up:4", moving=False)
    assert (names(cluster), master.requests) == (before, [])


def test_pods_that_the_cluster_would_not_take_are_refused(cluster, master):
    """Before the topology stands still for them; an update that makes no pods anew does not ask."""
    before = names(cluster)
    cluster.refuses.add("sums-container-2-tried")
    with pytest.raises(NotFound, match="sums-container-2-tried"):
        master.updates(settings=['heron.kubernetes.pod.spec={"runtimClassName": "x"}'])
    with pytest.raises(UserError, match="cannot set hostNetwork"):
        master.updates(settings=['heron.kubernetes.pod.spec={"hostNetwork": true}'])
    assert (names(cluster), master.requests) == (before, [])
    master.updates("adds_up:4")
    cluster.refuses.clear()
    master.answers = [DONE]
    wanted = master.updates(settings=['heron.kubernetes.pod.spec={"runtimeClassName": "x"}'])
    assert wanted.build > 1
    assert not any(name.endswith("-tried") for _, name in cluster.objects)


def test_another_python_is_refused_unless_there_is_another_image(cluster, author, master):
    pods = cluster.objects["ConfigMap", "sums"]["data"]
    pods[PODS] = pods[PODS].replace('"python":"3.', '"python":"2.')
    for target in (None, author()):
        with pytest.raises(UserError, match=r"runs with 2\..*nothing was changed"):
            master.updates("adds_up:4", target=target)
    master.updates(target=author(), image="ardea:newer")
    assert len(master.requests) == 1


def test_code_in_the_image_is_given_as_a_file(cluster, prepared, author):
    submit(cluster, prepared(options=Options(path_in_image="/app/sums.py")))
    master = Master(cluster)
    with pytest.raises(UserError, match=r"the code of Sums-.* is in its image") as refused:
        master.updates("adds_up:4")
    assert "--path-in-image /app/sums.py" in refused.value.hint
    wanted = master.updates("adds_up:4", target=author(), path_in_image="/app/sums.py")
    assert wanted.build == 1, "the same file in the same image is the same version"


def test_a_root_that_is_behind_is_waited_for(cluster, made, master):
    """The keeper is about to write it; meanwhile the same again is what is half done, and no third version."""
    master.epoch, master.progress = 2, UpdateProgress("another", "switching")
    with pytest.raises(Unreachable, match=r"works by plan 2, and its root still says 1"):
        master.updates("adds_up:4")
    assert master.now >= MASTER_WITHIN
    now = msgspec.structs.replace(made.inputs.definition, epoch=2)
    write_root(cluster, msgspec.structs.replace(made.inputs, definition=now))
    wanted = master.updates()
    assert wanted.same_as(now)


@pytest.fixture
def two_verbs(master):
    """The second verb does all but its own end before the first one's; what happened to the first, and its request."""

    def run(first, second, answer=DONE, switches=True):
        def other():
            if switches:
                master.switch()
            master.answers = [Unreachable("the terminal is gone")] * 40
            with pytest.raises(Unreachable):
                second()
            master.answers = [answer]

        master.meanwhile.append(other)
        if answer == DONE:
            first()
        else:
            with pytest.raises(Refused):
                first()
        return master.requests[-1].wanted

    return run


def test_a_verb_leaves_what_a_later_one_has_brought(cluster, author, master, two_verbs, made):
    wanted = two_verbs(
        lambda: master.updates(target=author(component={"topology.debug": True})),
        lambda: master.updates(target=author(component={"topology.debug": False})),
    )
    assert wanted.epoch == 3
    assert f"sums-code-{wanted.code}" in names(cluster)
    assert f"sums-code-{made.inputs.definition.code}" not in names(cluster), "of the first plan, which none needs"


def test_a_verb_leaves_the_keys_of_a_later_one(cluster, master, two_verbs):
    two_verbs(lambda: master.updates("adds_up:4"), lambda: master.updates("adds_up:6"))
    assert {"sums-key-3", "sums-key-4"} <= names(cluster)


def test_a_verb_leaves_the_former_version_if_a_later_one_goes_back_to_it(cluster, author, master, two_verbs, made):
    wanted = two_verbs(
        lambda: master.updates(target=author(component={"topology.debug": True})),
        lambda: master.updates(target=author()),
    )
    assert wanted.code == made.inputs.definition.code
    assert f"sums-code-{wanted.code}" in names(cluster)


def test_a_verb_leaves_the_key_of_a_container_that_a_later_one_brings_back(cluster, master, two_verbs):
    grown = master.updates("adds_up:4")
    master.switch()
    master.answers = [DONE]
    wanted = two_verbs(lambda: master.updates("adds_up:2"), lambda: master.updates("adds_up:4"))
    assert wanted.keys["container-3"] == grown.keys["container-3"]
    assert "sums-key-3" in names(cluster)


@pytest.mark.parametrize("newer", [False, True])
def test_a_refused_verb_leaves_what_another_needs_by_now(cluster, author, master, two_verbs, newer):
    before = names(cluster)
    target = author(component={"topology.debug": True}) if newer else None

    def verb():
        return master.updates("adds_up:4", target=target)

    wanted = two_verbs(verb, verb, answer="refused", switches=False)
    assert names(cluster) - before == {f"sums-code-{wanted.code}" if newer else "sums-key-3"}


def test_a_verb_that_did_not_hear_of_its_end_leaves_the_keys_that_its_plan_uses(cluster, master):
    """Another one has begun since, with a master that knows no more of the first than that its plan is in force."""

    def another():
        master.switch()
        master.answers = [DONE]
        master.updates("adds_up:6")
        master.switch()
        master.answers = [ArdeaError("the master of sums refused: update: it was made for plan 1 (UPDATE_STALE)")]

    master.meanwhile.append(another)
    with pytest.raises(Refused, match="UPDATE_STALE"):
        master.updates("adds_up:4")
    assert {"sums-key-3", "sums-key-4"} <= names(cluster)


def test_what_nobody_came_back_for_goes_with_the_next_update(cluster, author, master):
    left = master.is_silent_for(target=author(component={"topology.debug": True}))
    assert f"sums-code-{left.code}" in names(cluster)
    wanted = master.updates(target=author(component={"topology.debug": False}))
    assert wanted.code != left.code
    assert f"sums-code-{left.code}" not in names(cluster)


def test_two_verbs_never_give_a_container_two_keys(cluster, master, monkeypatch):
    """The other one makes its Secret after this one has looked for it."""
    before, create = names(cluster), cluster.create

    def too_late(manifest, **options):
        if manifest["metadata"]["name"] == "sums-key-3":
            monkeypatch.setattr(cluster, "create", create)
            create({**manifest, "data": {"secret-key": "YW5vdGhlcidz"}})
        return cluster.create(manifest, **options) if cluster.create is create else create(manifest, **options)

    monkeypatch.setattr(cluster, "create", too_late)
    with pytest.raises(Conflict, match=r"another update of Sums-.* has made Secret sums-key-3.*nothing was changed"):
        master.updates("adds_up:4")
    assert (names(cluster), master.requests) == ({*before, "sums-key-3"}, [])


def write_root(cluster, inputs):
    record = objects.record_of(cluster.find("ConfigMap", "sums"))
    cluster.patch("ConfigMap", "sums", objects.content(inputs, record))


class Client:
    """A master that answers; the state is polled as its client does."""

    def __init__(self, state, epoch):
        self.state, self.status = state, status(epoch)

    def ask(self, verb, **_):
        assert verb == "status"
        self.state.poll()
        return self.status


@pytest.fixture
def keeper(cluster, made, tmp_path):
    """A round by the plan that is written into the state."""
    topology = made.inputs.id
    with open_state(str(tmp_path / "state")) as state:
        state.transaction([Create(paths.topology(topology), b"{}"), Create(paths.physical_plan(topology), b"")])
        client = Client(state, 1)
        reporter = Reporter(cluster, ADDRESS, "sums-master-1-x", lambda: NOW)
        kept = Keeper(cluster, made.inputs, state, client, lambda: True, reporter, now=lambda: NOW)

        def look(definition, *, by=kept):
            path = paths.physical_plan(topology)
            state.set(path, definition.packed(), state.get(path).version)
            client.status = status(definition.epoch)
            cluster.calls.clear()
            by.round()
            return {name: kind for kind, what, name, *_ in cluster.calls if what == "Job"}

        yield look


def test_only_jobs_of_another_content_are_replaced(cluster, made, master, keeper):
    wanted = master.updates("adds_up:4")
    assert keeper(made.inputs.definition) == {}
    assert keeper(wanted) == {"sums-container-3": "apply"}
    root = cluster.find("ConfigMap", "sums")
    assert ManifestInputs.read(root).definition == wanted
    assert objects.record_of(root).digest == wanted.shape.digest
    assert keeper(wanted) == {}
    back = msgspec.structs.replace(made.inputs.definition, epoch=3)
    assert keeper(back) == {"sums-container-3": "delete"}
    assert ManifestInputs.read(cluster.find("ConfigMap", "sums")).definition == back


def test_another_build_replaces_the_jobs_of_all_containers_and_no_masters(cluster, master, keeper):
    wanted = master.updates(image="ardea:newer")
    assert keeper(wanted) == {"sums-container-1": "apply", "sums-container-2": "apply"}
    deleted = [name for kind, what, name, *_ in cluster.calls if (kind, what) == ("delete", "Job")]
    assert deleted == ["sums-container-1", "sums-container-2"]
    job = cluster.find("Job", "sums-container-1")["spec"]["template"]["spec"]
    assert {c["image"] for c in job["containers"]} == {"ardea:newer"}


def test_no_job_is_touched_by_another_plan_than_the_masters(cluster, made, master, keeper, tmp_path):
    """A keeper that has not heard of the plan yet, as a standby's that has become the master, does nothing."""
    wanted = master.updates("adds_up:4")
    keeper(wanted)
    with open_state(str(tmp_path / "unheard")) as unheard:
        reporter = Reporter(cluster, ADDRESS, "sums-master-2-x", lambda: NOW)
        former = Keeper(cluster, made.inputs, unheard, Client(unheard, 2), lambda: True, reporter, now=lambda: NOW)
        assert keeper(wanted, by=former) == {}


def test_a_plan_whose_code_is_gone_is_not_followed(cluster, master, keeper):
    """Until it is there, or the master has put the former plan back."""
    wanted = master.updates("adds_up:4")
    cluster.delete("ConfigMap", f"sums-code-{wanted.code}")
    assert keeper(wanted) == {}
    assert ManifestInputs.read(cluster.find("ConfigMap", "sums")).definition.epoch == 1

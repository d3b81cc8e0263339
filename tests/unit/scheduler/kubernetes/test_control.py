"""The way to a master through a program in a pod: which master is asked, and what becomes of silence and of noise."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from ardea.errors import ArdeaError, NotFound, Unreachable, UserError
from ardea.protocol.wire_pb2 import ANSWER, Answer, Ask, Header
from ardea.scheduler.kubernetes import inside, names, objects
from ardea.scheduler.kubernetes.control import Port
from ardea.scheduler.kubernetes.handle import KubernetesHandle
from ardea.scheduler.kubernetes.submission import Options, submit
from ardea.scheduler.kubernetes.topologies import find
from ardea.scheduler.kubernetes.ways import KEPT_FOR, Ways
from ardea.versions import PROTOCOL

RECORDED = Path(__file__).parents[3] / "fixtures" / "state-72bfe26"
ANSWERED = (RECORDED / "answer.bin").read_bytes()
"""What a master has said once."""
FIRST, SECOND = "tcp://10.0.0.1:4001", "tcp://10.0.0.2:4002"


class Program:
    """At the other end of an exec: asks the masters of a dictionary, and prints what its image has it print."""

    def __init__(self, time, masters):
        self.time, self.masters, self.printed, self.asked, self.open = time, masters, [b"ready"], [], True

    def write(self, data):
        self.alive()
        told = json.loads(data)
        ask = Ask.FromString(base64.b64decode(told["ask"]))
        self.asked.append((told["address"], told["key"], ask.verb, dict(ask.arguments), ask.body))
        answer = self.masters.get(told["address"])
        if answer is None:
            self.time.now += told["seconds"]
            frames = None
        else:
            header = Header(kind=ANSWER, protocol=PROTOCOL).SerializeToString()
            frames = [base64.b64encode(frame).decode() for frame in (header, answer)]
        self.printed.append(json.dumps({"number": told["number"], "frames": frames}).encode())

    def read_line(self, seconds):
        self.alive()
        if self.printed:
            return self.printed.pop(0)
        self.time.now += seconds
        return None

    def close(self):
        self.open = False

    def alive(self):
        if not self.open:
            raise Unreachable("cannot run python in the pod: the connection broke")


class Time:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds


class Pods:
    """What runs in the masters' pods of one topology."""

    def __init__(self, cluster):
        self.cluster, self.time, self.masters, self.programs = cluster, Time(), {FIRST: ANSWERED}, []
        cluster.open = self.start
        self.new_pod("one")
        self.acting(FIRST)
        self.port = Port(cluster, find(cluster, "Sums"), clock=self.time, pause=self.time.pause)

    def new_pod(self, name):
        labels = names.labels(find(self.cluster, "Sums").id) | {names.COMPONENT: names.MASTER, names.CONTAINER: "0"}
        manifest = {"kind": "Pod", "metadata": {"name": name, "labels": labels}, "status": {"phase": "Running"}}
        self.cluster.apply(manifest)

    def acting(self, address):
        status = objects.RootStatus(state="RUNNING", master=address)
        annotations = {objects.STATUS: msgspec.json.encode(status).decode()}
        self.cluster.patch("ConfigMap", "sums", {"metadata": {"annotations": annotations}})

    def start(self, pod, container, argv, *, stdin):
        assert (container, argv[:4], stdin) == ("topology-master", ["python", "-P", "-m", inside.__name__], True)
        program = Program(self.time, self.masters)
        self.programs.append((pod, program))
        return program


@pytest.fixture
def pods(cluster, prepared):
    submit(cluster, prepared())
    return Pods(cluster)


def test_one_program_serves_all_questions(pods):
    assert pods.port.ask("status").state == "RUNNING"
    pods.port.ask("update", body=b"plan", id="1")
    ((pod, program),) = pods.programs
    assert pod == "one"
    (address, key, verb, *_), second = program.asked
    assert (address, verb, len(key)) == (FIRST, "status", 40)
    assert second[2:] == ("update", {"id": "1"}, b"plan")
    pods.port.close()
    assert not program.open


def test_a_new_master_is_found_where_the_root_says(pods):
    """The first one is silent; the keeper of the second has written the root meanwhile."""
    del pods.masters[FIRST]
    pods.masters[SECOND] = ANSWERED
    pause = pods.time.pause

    def written(seconds):
        pods.acting(SECOND)
        pause(seconds)

    port = Port(pods.cluster, find(pods.cluster, "Sums"), clock=pods.time, pause=written)
    assert port.ask("status").state == "RUNNING"
    assert [asked[0] for asked in pods.programs[0][1].asked] == [FIRST, SECOND]


def test_a_program_whose_pod_goes_is_started_in_another(pods):
    pods.port.ask("status")
    pods.programs[0][1].open = False
    pods.cluster.delete("Pod", "one")
    pods.new_pod("two")
    assert pods.port.ask("status").state == "RUNNING"
    assert [pod for pod, _ in pods.programs] == ["one", "two"]


def test_a_program_that_says_nothing_any_more_is_started_anew(pods):
    """The other end of its connection is gone: what is written goes nowhere."""
    pods.port.ask("status")
    ((_, first),) = pods.programs
    first.write = lambda _: None
    assert pods.port.ask("status").state == "RUNNING"
    assert [program.open for _, program in pods.programs] == [False, True]


@pytest.fixture
def verbs(pods):
    """Verbs of one process, such as the console's looks; ``describe`` is one."""
    ways = Ways(clock=pods.time)
    handle = KubernetesHandle(pods.cluster, find(pods.cluster, "Sums"), Options(), ways)
    yield SimpleNamespace(control=handle.control, describe=handle.master_says, pods=pods)
    ways.close()
    assert not any(program.open for _, program in pods.programs)


def test_one_program_serves_many_verbs(verbs):
    assert {verbs.describe()[0].state for _ in range(10)} == {"RUNNING"}
    assert len(verbs.pods.programs) == 1


def test_verbs_at_one_time_have_programs_of_their_own_and_one_that_nobody_needs_ends(verbs):
    with verbs.control() as control:
        control.ask("status")
        verbs.describe()
        verbs.describe()
    for _ in range(2):
        assert [program.open for _, program in verbs.pods.programs] == [True, True]
        verbs.pods.time.now += KEPT_FOR * 0.6
        verbs.describe()
    assert [program.open for _, program in verbs.pods.programs] == [True, False]


def test_a_verb_that_fails_leaves_no_program(verbs):
    verbs.describe()
    with pytest.raises(ArdeaError, match="interrupted"), verbs.control():
        raise ArdeaError("interrupted")
    assert [program.open for _, program in verbs.pods.programs] == [False]
    verbs.describe()
    assert len(verbs.pods.programs) == 2


@pytest.mark.parametrize("error", [NotFound("pods one not found"), UserError("container not found")])
def test_a_pod_that_goes_while_a_program_is_started_in_it_is_passed_over(pods, error):
    start, told = pods.start, []

    def gone(pod, *given, **more):
        if pod == "one":
            told.append(pod)
            raise error
        return start(pod, *given, **more)

    pods.cluster.open = gone
    with pytest.raises(Unreachable, match=error.message):
        pods.port.ask("status")
    pods.new_pod("two")
    assert pods.port.ask("status").state == "RUNNING"
    assert [pod for pod, _ in pods.programs] == ["two"]
    assert told


def test_nobody_who_acts_is_waited_for_without_an_end(pods):
    pods.acting("")
    with pytest.raises(Unreachable, match="did not answer `status` within 5 s"):
        pods.port.ask("status")
    pods.cluster.delete("Pod", "one")
    pods.port.close()
    with pytest.raises(Unreachable, match=r"no pod of Sums-.*'s masters runs in namespace here"):
        pods.port.ask("status")
    assert pods.time.now < 20


def test_a_program_that_never_starts_is_given_up(pods, monkeypatch):
    """And what it said is."""
    monkeypatch.setattr(inside, "READY", b"something else")
    with pytest.raises(Unreachable, match="one cannot be asked: nothing starts in it within 30 s"):
        pods.port.ask("status")
    assert all(not program.open for _, program in pods.programs)


@pytest.mark.parametrize("noise", [b"", b"Warning: x", b"{}", b"[1]", b'{"number": 0, "frames": null}', b"\xff"])
def test_what_else_is_printed_is_no_answer(pods, noise):
    pods.port.ask("status")
    pods.programs[0][1].printed.append(noise)
    assert pods.port.ask("status").state == "RUNNING"


@pytest.mark.parametrize("garbage", [[], ["%%%"], [""], ["AAAA", "AAAA"]])
def test_frames_that_are_no_answer_count_as_silence(pods, garbage):
    pods.port.ask("status")
    program = pods.programs[0][1]
    write = program.write

    def broken(data):
        write(data)
        program.printed[-1] = json.dumps({"number": json.loads(data)["number"], "frames": garbage}).encode()

    program.write = broken
    with pytest.raises(Unreachable):
        pods.port.ask("status")


def test_a_refusal_is_the_masters(pods):
    pods.masters[FIRST] = Answer(ok=False, code="UNKNOWN_VERB", message="what?").SerializeToString()
    with pytest.raises(ArdeaError, match=r"refused: what\? \(UNKNOWN_VERB\)"):
        pods.port.ask("dance")


def test_a_topology_that_is_gone_is_said_to_be(pods):
    pods.port.ask("status")
    pods.cluster.delete("ConfigMap", "sums")
    with pytest.raises(NotFound, match="is gone"):
        pods.port.ask("status")

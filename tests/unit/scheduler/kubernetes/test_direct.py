"""The way to a master over TCP, from a pod that may start no program in others: on a real port of this machine."""

from __future__ import annotations

import base64
import contextlib
import threading
from pathlib import Path

import msgspec
import pytest

from ardea.errors import ArdeaError, ClusterError, NotFound, Unreachable, Unrecognized
from ardea.protocol.wire_pb2 import ANSWER, Answer, Ask, Header
from ardea.scheduler.kubernetes import direct, names, objects
from ardea.scheduler.kubernetes.control import Port
from ardea.scheduler.kubernetes.direct import Direct
from ardea.scheduler.kubernetes.handle import KubernetesHandle
from ardea.scheduler.kubernetes.submission import Options, submit
from ardea.scheduler.kubernetes.topologies import find
from ardea.scheduler.kubernetes.ways import Ways, way_to
from ardea.transport import CALLERS, KEY_FILE, Bound, Door, Keyring, Poller, context, pair
from ardea.versions import PROTOCOL

RECORDED = (Path(__file__).parents[3] / "fixtures" / "state-72bfe26" / "answer.bin").read_bytes()
"""What a master has said once."""


class Master:
    """A control port that lets in whom a master's lets in; it answers with ``says``, None: not at all."""

    def __init__(self, ring: Keyring | None) -> None:
        self.says: bytes | None = RECORDED
        self.asked: list[Ask] = []
        self._undo = contextlib.ExitStack()
        ctx = context()
        self._undo.callback(ctx.destroy, linger=0)
        self._poller = Poller()
        self._undo.callback(self._poller.close)
        door = None
        if ring is not None:
            door = Door(ctx, ring, callers=True)
            self._poller.keep(door)
            self._undo.callback(door.close)
        self._bound = Bound(ctx, door)
        self._undo.callback(self._bound.close)
        self.address = f"tcp://127.0.0.1:{self._bound.bind('tcp://127.0.0.1:0')}"
        self._poller.watch(self._bound)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._ended.is_set():
            self._poller.wait(0.05)
            for name, frames in self._bound.receive(16):
                self.asked.append(Ask.FromString(frames[1]))
                if self.says is not None:
                    self._bound.send(name, [Header(kind=ANSWER, protocol=PROTOCOL).SerializeToString(), self.says])

    def close(self) -> None:
        self._ended.set()
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._undo.close()


class Namespace:
    """A topology of a fake cluster, whose masters are real ports."""

    def __init__(self, cluster, made) -> None:
        self.cluster, self.made = cluster, made
        self.now, self.masters = 0.0, []
        submit(cluster, made)

    @property
    def secret(self):
        return self.cluster.objects["Secret", "sums-callers"]

    def master(self) -> Master:
        """One more, who acts from now on."""
        key = self.cluster.find("Secret", "sums-key-0")
        ring = None
        if key is not None:
            ring = Keyring(base64.b64decode(key["data"][KEY_FILE]).decode(), self.made.inputs.definition.keys)
        self.masters.append(Master(ring))
        self.acting(self.masters[-1].address)
        return self.masters[-1]

    def acting(self, address: str) -> None:
        status = objects.RootStatus(state="RUNNING", master=address)
        annotations = {objects.STATUS: msgspec.json.encode(status).decode()}
        self.cluster.patch("ConfigMap", "sums", {"metadata": {"annotations": annotations}})

    def port(self, pause=None) -> Direct:
        """Its clock goes on by its pauses, and by a second at each look."""

        def clock():
            self.now += 1.0
            return self.now

        return Direct(self.cluster, find(self.cluster, "Sums"), clock=clock, pause=pause or (lambda _: None))


@pytest.fixture
def namespace(cluster, prepared):
    made = []

    def of(config=None):
        made.append(Namespace(cluster, prepared(config)))
        return made[-1]

    yield of
    for each in made:
        for master in each.masters:
            master.close()


@pytest.fixture
def ours(namespace):
    return namespace()


@pytest.fixture
def brief(monkeypatch):
    """A master that is silent is not waited for."""
    monkeypatch.setattr(direct, "ANSWERS_WITHIN", 0.05)


def test_a_master_is_asked_with_the_topologys_token_and_the_callers_key(ours):
    master = ours.master()
    port = ours.port()
    assert port.ask("status").state == "RUNNING"
    assert port.ask("update", body=b"plan", id="1").state == "RUNNING"
    token = base64.b64decode(ours.cluster.find("Secret", "sums-access")["data"]["token"]).decode()
    assert [(a.verb, a.token, a.body, dict(a.arguments)) for a in master.asked] == [
        ("status", token, b"", {}),
        ("update", token, b"plan", {"id": "1"}),
    ]


def test_the_secret_has_nothing_that_is_not_a_callers(ours):
    assert set(ours.secret["data"]) == {"token", CALLERS}
    mounted = [str(job["spec"]) for (kind, _), job in ours.cluster.objects.items() if kind == "Job"]
    assert not any("sums-callers" in spec for spec in mounted)


def test_a_topology_without_keys_is_asked_without_one(namespace):
    ours = namespace({"heron.streammgr.curve": False})
    assert set(ours.secret["data"]) == {"token"}
    ours.master()
    assert ours.port().ask("status").state == "RUNNING"


def test_the_next_master_is_found_where_the_root_says(ours, brief, monkeypatch):
    ours.master().says = None

    def next_acts(_):
        monkeypatch.setattr(direct, "ANSWERS_WITHIN", 30.0)
        ours.master()

    assert ours.port(pause=next_acts).ask("status", patience=60).state == "RUNNING"
    assert [ask.verb for ask in ours.masters[1].asked] == ["status"]


def test_one_who_is_not_let_in_hears_that_nobody_answers(ours, brief):
    """A caller's key that the definition names, and the door does not know."""
    made_up = Keyring(pair()[1], {})
    ours.masters.append(Master(made_up))
    ours.acting(ours.masters[0].address)
    with pytest.raises(Unreachable, match=r"did not answer `status` within 5 s at tcp://127\.0\.0\.1:\d+$") as raised:
        ours.port().ask("status")
    assert "NetworkPolicy" in raised.value.hint
    assert ours.masters[0].asked == []


def test_nobody_who_acts_is_waited_for_with_an_end(ours):
    with pytest.raises(Unreachable, match=r"did not answer `status` within 5 s: none acts"):
        ours.port().ask("status")


@pytest.mark.parametrize("garbage", [b"", b"\xff" * 40, b"{}"])
def test_what_is_no_answer_counts_as_silence_or_as_another_versions(ours, brief, garbage):
    ours.master().says = garbage
    with pytest.raises(ArdeaError):
        ours.port().ask("status")


def test_a_refusal_is_the_masters(ours):
    ours.master().says = Answer(ok=False, code="UNKNOWN_VERB", message="what?").SerializeToString()
    with pytest.raises(ArdeaError, match=r"refused: what\? \(UNKNOWN_VERB\)"):
        ours.port().ask("dance")


@pytest.mark.parametrize("again", [False, True])
def test_a_topology_that_is_gone_is_said_to_be(ours, again):
    port, secret = ours.port(), ours.secret
    ours.cluster.delete("ConfigMap", "sums")
    if again:
        ours.cluster.create(ours.made.root())
    ours.cluster.objects["Secret", "sums-callers"] = secret  # Kubernetes removes it a little later
    with pytest.raises(NotFound, match="is gone"):
        port.ask("status")


def test_a_secret_that_may_not_be_read_is_named_with_what_to_do(ours):
    def find(kind, name):
        raise ClusterError(f"cannot read {kind} {name}: forbidden")

    port = ours.port()
    ours.cluster.find = find
    with pytest.raises(Unreachable, match=r"this account may not read the Secret sums-callers in namesp") as raised:
        port.ask("status")
    assert "console.topologies" in raised.value.hint


@pytest.mark.parametrize("error", [Unreachable("no answer"), Unrecognized("who are you")])
def test_a_cluster_that_does_not_answer_is_not_taken_for_a_refusal(ours, error):
    def find(kind, name):
        raise error

    port = ours.port()
    ours.cluster.find = find
    with pytest.raises(type(error), match=error.message):
        port.ask("status")


def test_a_topology_of_an_older_version_has_no_such_secret(ours):
    del ours.cluster.objects["Secret", "sums-callers"]
    with pytest.raises(Unreachable, match="there is not the Secret sums-callers"):
        ours.port().ask("status")


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"token": "dA=="},
        {"token": "%%%", CALLERS: "dA=="},
        {"token": "/w==", CALLERS: "dA=="},
        {"token": "dA==", CALLERS: "dA=="},
        {"token": "dA==", CALLERS: base64.b64encode(pair()[1].encode()).decode()},
        None,
    ],
)
def test_a_secret_that_does_not_fit_is_refused_before_anything_is_sent(ours, data):
    master = ours.master()
    ours.secret["data"] = data
    with pytest.raises(Unreachable, match="does not fit"):
        ours.port().ask("status")
    assert master.asked == []


def test_the_way_is_chosen_by_what_the_account_may(ours):
    found = find(ours.cluster, "Sums")
    ours.cluster.asks_directly = False
    assert isinstance(way_to(ours.cluster, found), Port)
    ours.cluster.asks_directly = True
    assert isinstance(way_to(ours.cluster, found), Direct)


@pytest.mark.parametrize("verb", ["restart", "update", "debug"])
def test_verbs_that_need_programs_in_pods_are_refused_without_that_right(ours, verb):
    """An update loads the topology's code, which has no place beside the keys of others."""
    ours.cluster.asks_directly = True
    ours.master()
    handle = KubernetesHandle(ours.cluster, find(ours.cluster, "Sums"), Options(), Ways())
    calls = {
        "restart": lambda: handle.restart(None, 1.0),
        "update": lambda: handle.update(None, None),
        "debug": lambda: handle.dump("numbers-0"),
    }
    with pytest.raises(ClusterError, match=f"`{verb}` needs the right to create pods/exec") as raised:
        calls[verb]()
    assert f"`ardea {verb} Sums -n here`" in raised.value.hint


def test_a_description_says_why_no_master_was_asked(ours):
    ours.cluster.asks_directly = True
    ours.acting("tcp://127.0.0.1:9")
    del ours.cluster.objects["Secret", names.callers_secret("sums")]
    handle = KubernetesHandle(ours.cluster, find(ours.cluster, "Sums"), Options(), Ways())
    status, silence = handle.master_says()
    assert status is None
    assert "cannot be asked" in silence


@pytest.mark.parametrize(("told", "shown"), [("PAUSED", "PAUSED"), ("SUCCEEDED", "RUNNING")])
def test_a_description_has_the_state_that_the_master_says(ours, monkeypatch, told, shown):
    """Its objects say so with the keeper's next look; that it has ended, not before they do."""
    ours.master()
    status = msgspec.structs.replace(ours.port().ask("status"), state=told)
    handle = KubernetesHandle(ours.cluster, find(ours.cluster, "Sums"), Options(), Ways())
    monkeypatch.setattr(handle, "master_says", lambda: (status, ""))
    assert handle.describe().topology.state == shown

"""A metrics manager as a process: what it tells the master, and when it ends."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import time
from urllib.request import urlopen

import pytest

from ardea import Topology, parent_link
from ardea.errors import ExitCode, OtherVersion
from ardea.metrics import Identity, Overview, Registry, Totals, by_component, frames_of
from ardea.metrics_manager.process import END_LOOK_EVERY, LOOK_EVERY, MetricsManagerProcess
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.protocol.wire_pb2 import REFUSED, Header, Refusal
from ardea.state import open_state, paths
from ardea.state.records import Admission, ExecutionState, Incarnations, MasterLocation, RunState, encode
from ardea.supervision import records
from ardea.testing import CollectBolt, RowsSpout
from ardea.transport import Bound, Dialled, context, ipc_address
from ardea.versions import PROTOCOL


class Pair(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    keep = CollectBolt.spec(inputs=[rows])


@pytest.fixture
def definition(tmp_path):
    location = f"file://{tmp_path}/state"
    with open_state(location) as state:
        state.create(paths.execution_state("pair-1"), encode(ExecutionState(RunState.RUNNING)))
    shape = shape_of(Pair.plan({"heron.metricsmgr.port": 0}))
    return Definition(topology="pair-1", state=location, location="p", config={}, shape=shape, packing=b"")


@pytest.fixture
def address(tmp_path):
    return ipc_address(tmp_path, f"{secrets.token_hex(4)}-metrics")


@pytest.fixture
def manager(tmp_path, definition, address, monkeypatch):
    monkeypatch.setenv("ARDEA_NAME", "metrics-manager")
    made = MetricsManagerProcess(definition, 1, tmp_path, address, "127.0.0.1")
    others(tmp_path, "running")
    yield made
    made.close()


@pytest.fixture
def ctx():
    """Of the other processes."""
    made = context()
    yield made
    made.destroy(linger=0)


@pytest.fixture
def sender(manager, address, ctx):
    """Another process of the container."""
    dialled = Dialled(ctx, b"t1-x", address)
    yield dialled
    dialled.close()


def others(folder, state):
    processes = {"metrics-manager": {"state": "running"}, "keep-0": {"state": state}}
    records.write_status(folder, {"processes": processes})


@pytest.fixture
def snapshot(manager, sender, deadline):
    """One has arrived."""

    def send(*, last=True):
        registry = Registry(Identity("pair-1", 1, "keep-0", "keep", 1, 1))
        sender.send(frames_of(registry.snapshot(), last=last))
        deadline(lambda: manager.poller.wait(0.1), "a snapshot")

    return send


def over(definition):
    with open_state(definition.state) as state:
        node = state.get(paths.execution_state("pair-1"))
        state.set(paths.execution_state("pair-1"), encode(ExecutionState(RunState.SUCCEEDED)), node.version)


def test_the_last_snapshot_of_a_process_is_followed_by_another_look(manager, snapshot):
    """It may be the last of all; the next look of its own would be half a second later."""
    assert manager.turn(100.0) == 100.0 + LOOK_EVERY
    snapshot(last=False)
    assert manager.turn(100.01) == 100.0 + LOOK_EVERY
    snapshot()
    assert manager.turn(100.01) == 100.0 + END_LOOK_EVERY
    assert manager.turn(100.0 + END_LOOK_EVERY) == 100.0 + LOOK_EVERY


def test_it_ends_at_the_second_look_that_finds_it_alone(manager, snapshot, definition, tmp_path):
    manager.turn(100.0)
    over(definition)
    snapshot()
    assert manager.turn(100.2) == 100.2 + END_LOOK_EVERY
    others(tmp_path, "finished")
    manager.turn(100.25)
    assert manager.exit_code is None  # what the others have sent last may be on its way
    manager.turn(100.30)
    assert manager.exit_code is ExitCode.OK


def test_sinks_get_a_batch_an_interval_however_often_the_manager_looks_and_one_at_the_end(manager, monkeypatch):
    flushed = []
    monkeypatch.setattr(manager.manager, "flush", lambda now, timestamp: flushed.append(now))
    for turn in range(5):
        manager.turn(100.0 + turn * LOOK_EVERY)
    assert flushed == [100.0, 101.0, 102.0]
    manager.exit_code = ExitCode.OK
    assert manager.run() is ExitCode.OK
    assert len(flushed) == 4


@pytest.fixture
def masters(tmp_path, definition, ctx, monkeypatch):
    """The metrics manager in the pod of a master, and the master's word for the topology's state."""
    monkeypatch.setenv("ARDEA_NAME", "metrics-manager")
    address = ipc_address(tmp_path, f"{secrets.token_hex(4)}-metrics")
    made = MetricsManagerProcess(definition, 0, tmp_path, address, "127.0.0.1", last_scrape=75.0)
    records.write_status(tmp_path, {"processes": {"metrics-manager": {"state": "running"}}})
    sender, registry = Dialled(ctx, b"m0-x", address), Registry(Identity("pair-1", 0, "topology-master"))

    def tells(state):
        for each in RunState:
            registry.gauge("ardea_tm_topology_state", state=each.value).value = int(each is state)
        sender.send([registry.snapshot()])
        while made.manager.final_state is not state:
            made.poller.wait(0.1)
            made.turn(time.monotonic())

    yield made, tells
    sender.close()
    made.close()


def scrape(folder):
    port = (folder / "metrics.port").read_text().strip()
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read().decode()


@pytest.mark.timeout(60)
def test_that_of_a_master_stays_until_who_scrapes_it_has_read_the_end(masters, tmp_path, deadline):
    """Also if the state manager has forgotten the topology before it could look."""
    made, tells = masters
    scrape(tmp_path)
    deadline(lambda: made.manager.scrapers.come_after(0.0), "the answer is noted, which its reader does not wait for")
    tells(RunState.FAILED)
    made.turn(time.monotonic() + END_LOOK_EVERY)
    assert made.exit_code is None
    assert 'ardea_tm_topology_state{container="0",state="FAILED",topology="pair",topology_id="pair-1"} 1.0' in (
        scrape(tmp_path)
    )
    deadline(lambda: made.turn(time.monotonic() + END_LOOK_EVERY) and made.exit_code is ExitCode.OK, "it ends")


@pytest.mark.timeout(60)
def test_an_end_can_be_scraped_as_long_as_it_is_waited_for(masters, tmp_path, deadline):
    """Which is longer than a process may be silent."""
    made, tells = masters
    scrape(tmp_path)
    deadline(lambda: made.manager.scrapers.come_after(0.0), "the answer is noted, which its reader does not wait for")
    tells(RunState.KILLED)
    made.turn(time.monotonic() + 74)
    assert made.exit_code is None
    assert 'state="KILLED",topology="pair",topology_id="pair-1"} 1.0' in scrape(tmp_path)


@pytest.mark.timeout(60)
def test_that_of_a_master_stays_for_nobody_where_nobody_scrapes(masters):
    made, tells = masters
    tells(RunState.KILLED)
    made.turn(time.monotonic() + END_LOOK_EVERY)
    assert made.exit_code is ExitCode.OK


class Pod:
    """A metrics manager in a pod of its own: a new folder, and another supervisor, which is what a place is held by."""

    def __init__(self, definition, folder, holder, ctx, monkeypatch):
        monkeypatch.setenv("ARDEA_NAME", "metrics-manager")
        monkeypatch.setenv("ARDEA_SUPERVISOR_ID", holder)
        folder.mkdir()
        self.address = ipc_address(folder, f"{secrets.token_hex(4)}-metrics")
        self.made = MetricsManagerProcess(definition, 1, folder, self.address, "127.0.0.1")
        self._task = Registry(Identity("pair-1", 1, "keep-0", "keep", 1, 1))
        name = "ardea_instance_tuples_executed_total"
        self._executed = self._task.counter(name, source_component="rows", stream="default")
        self._sender = Dialled(ctx, b"t1-x", self.address)

    def executes(self, rows):
        self._executed.value += rows
        self._sender.send([self._task.snapshot()])

    def close(self):
        self._sender.close()
        self.made.close()


@pytest.fixture
def start(tmp_path, definition, ctx, monkeypatch):
    """A pod of that uid."""
    pods = []

    def begin(uid):
        pods.append(Pod(definition, tmp_path / uid, uid, ctx, monkeypatch))
        return pods[-1]

    yield begin
    for pod in pods:
        pod.close()


@pytest.fixture
def master(definition):
    """Where summaries arrive, and what it makes of them."""

    class Listening:
        overview = Overview()

        def __init__(self):
            self._context = context()
            self.socket = Bound(self._context)
            port = self.socket.bind("tcp://127.0.0.1:0")
            self._state = open_state(definition.state)
            location = MasterLocation(host="127.0.0.1", port=port, term=1, pid=1)
            self._state.create(paths.master("pair-1"), encode(location))

        def admits(self, admission, holder):
            path = paths.incarnations("pair-1")
            containers = {1: Admission(admission=admission, holder=holder, host="127.0.0.1", port=1)}
            if admission == 1:
                self._state.create(path, encode(Incarnations(containers)))
            else:
                self._state.set(path, encode(Incarnations(containers)), self._state.get(path).version)

        def executed(self):
            for _, frames in self.socket.receive(100):
                self.overview.accept(frames[1], 0.0)
            return by_component(self.overview.processes()).get("keep", Totals()).executed

        def close(self):
            self._state.close()
            self.socket.close()
            self._context.destroy(linger=0)

    listening = Listening()
    yield listening
    listening.close()


def test_the_master_goes_on_counting_when_a_pod_has_been_replaced(start, master, deadline):
    """The new pod's processes begin at life 1 again, and so do their counters."""
    turns = itertools.count(100.0, LOOK_EVERY)

    def comes_to(total, *pods):
        def looks():
            now = next(turns)
            for pod in pods:
                pod.made.turn(now)
            return master.executed() == total

        deadline(looks, f"{total} rows")

    master.admits(1, "uid-a")
    former = start("uid-a")
    former.executes(1000)
    comes_to(1000, former)
    pod = start("uid-b")
    pod.executes(400)
    comes_to(1000, pod)  # nobody has said yet whose place it has
    master.admits(2, "uid-b")
    pod.executes(500)
    comes_to(1900, pod)
    former.executes(50)  # it was cut off, and comes back
    comes_to(1900, former, pod)
    pod.executes(1)
    comes_to(1901, former, pod)


@pytest.fixture
def refusing(manager, definition, ctx):
    """A socket where the state says that the master listens, and that it has admitted the container."""
    bound = Bound(ctx)
    location = MasterLocation(host="127.0.0.1", port=bound.bind("tcp://127.0.0.1:0"), term=1, pid=1)
    with open_state(definition.state) as state:
        state.create(paths.master("pair-1"), encode(location))
        admission = Admission(admission=1, holder=parent_link.holder(), host="127.0.0.1", port=1)
        state.create(paths.incarnations("pair-1"), encode(Incarnations({1: admission})))
    yield bound
    bound.close()


def test_it_ends_for_good_when_the_master_refuses_its_version(manager, refusing, deadline):
    manager.turn(100.0)
    manager.turn(101.0)
    ((caller, frames),) = deadline(lambda: list(refusing.receive(1)), "a summary")
    assert Header.FromString(frames[0]).protocol == PROTOCOL
    refusal = Refusal(code="OTHER_VERSION", message="the master speaks another", definite=True)
    refusing.send(caller, [b"\xff"])  # no header: dropped
    refusing.send(caller, [Header(kind=REFUSED).SerializeToString()])  # without its reason: dropped, too
    refusing.send(caller, [Header(kind=REFUSED).SerializeToString(), refusal.SerializeToString()])
    turns = itertools.count(102.0)

    def turn():
        with contextlib.suppress(OtherVersion):
            manager.turn(next(turns))
            return False
        return True

    deadline(turn, "it has heard that")
    assert manager.malformed == 2


def test_bytes_that_are_no_message_are_counted(manager, sender, deadline):
    sender.pollable.send(b"\xff" * 9)
    deadline(lambda: manager.poller.wait(0.1), "it has come")
    manager.turn(100.0)
    [dropped] = [s for s in manager.manager.samples() if s.name == "ardea_process_malformed_messages_total"]
    assert dropped.value == 1

"""The keeper of a topology on this machine, without its processes: what it orders, and what stays of a topology."""

from __future__ import annotations

import contextlib
import signal
from types import SimpleNamespace

import msgspec
import pytest

from ardea import Topology
from ardea.errors import ArdeaError, NotFound, StateError
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.scheduler import run as module
from ardea.scheduler.home import Home
from ardea.scheduler.keeper_lease import FORGOTTEN
from ardea.scheduler.local_checks import checks
from ardea.scheduler.packing import packing_for
from ardea.scheduler.registration import Registration
from ardea.scheduler.run import ANSWER_WITHIN, LocalRun, Stage
from ardea.scheduler.submission import Submission
from ardea.state import Term, Unavailable, paths, records
from ardea.state.records import ExecutionState, RunState
from ardea.state.topologies import remove, status
from ardea.testing import CollectBolt, RowsSpout
from ardea.topology_master.state_store import StateStore


class Names(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec()
    up = CollectBolt.spec(inputs=[words])


class Refusing:
    """A client of a master that refuses what it is asked once it is to drain; ``sent``: the verbs."""

    def __init__(self, *_args, clock):
        self.sent, self.clock = [], clock
        self.master_watch = SimpleNamespace(final=False)

    def wait(self, seconds):
        self.clock.now += seconds

    def send(self, verb, **_):
        self.sent.append(verb)

    def receive(self):
        if self.sent[-1:] == ["drain"]:
            raise ArdeaError("the master of n-1 refused: drain: no space (NOT_WRITTEN)")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Supervisor:
    """Ends when it is told to."""

    def __init__(self, *_):
        self.code, self.signals = None, []

    def attend(self):
        if self.signals:
            self.code = 0

    def signal(self, number):
        self.signals.append(number)

    def close(self):
        pass


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def definition_at(home):
    plan = Names.plan()
    packing = packing_to_bytes(packing_for(plan.config).pack(plan))
    config = {"topology.reliability.mode": "EFFECTIVELY_ONCE"}
    return Definition(
        topology="n-1", state=home.state_url, location="", config=config, shape=shape_of(plan), packing=packing
    )


class Processes:
    def __init__(self, definition, folder):
        self.definition, self.folder = definition, folder

    def prepare(self):
        self.definition.write(self.folder / "definition")
        return ["true"]


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def begin(home, monkeypatch):
    """Starts a run that is kept, as that of a daemon, with what a snapshot has written."""
    monkeypatch.setattr(module, "MasterClient", Refusing)
    monkeypatch.setattr(module, "LocalSupervisor", Supervisor)

    def start(*, keep):
        submission = Submission.restored(definition_at(home), "Names")
        run = LocalRun(submission, home, keep=keep, scheduler=Processes, clock=Clock())
        run.start()
        home.snapshots("n-1").write("1.snapshot", [b"counts"])
        return run

    return start


def test_a_master_that_refuses_to_drain_costs_time_and_no_more(begin, home, caplog):
    """As one on a full disk does: the deadline ends the topology, and what it remembers stays."""
    with begin(keep=True) as run:
        assert run.stop() is Stage.DRAINING
        began = run.seconds
        while not run.over:
            run.step()
        assert run.seconds - began == pytest.approx(ANSWER_WITHIN, abs=0.2)
        assert run._supervisor.signals == [signal.SIGTERM]
        assert run.outcome().state is RunState.KILLED
    assert caplog.messages.count("the master of n-1 refused: drain: no space (NOT_WRITTEN)") == 1
    assert home.snapshots("n-1").names() == ["1.snapshot"]
    with home.open_state() as state:
        assert state.exists(paths.topology("n-1"))


def ended(run, stage=Stage.RUNNING, *, status=None):
    run.stage, run.over, run.status = stage, True, status
    return run.outcome()


def test_how_it_ended_is_told_where_the_state_cannot_be_written(begin, home, monkeypatch, caplog):
    """As on a full disk, after Ctrl-C."""
    with begin(keep=True) as run:

        def full(*_):
            raise StateError("cannot write: No space left on device")

        monkeypatch.setattr(run._registration.state, "set", full)
        assert ended(run, Stage.TERMINATED).state is RunState.KILLED
    told = "the state may not say that n-1 ended as KILLED: cannot write: No space left on device"
    assert caplog.messages.count(told) == 1
    assert home.snapshots("n-1").names() == ["1.snapshot"]


@pytest.mark.parametrize(
    ("told", "state", "reason"),
    [
        (None, RunState.FAILED, "a task died"),
        (SimpleNamespace(state="RUNNING"), RunState.FAILED, "a task died"),
        (SimpleNamespace(state="SUCCEEDED", reason=""), RunState.SUCCEEDED, ""),
    ],
)
def test_how_it_ended_is_told_where_the_state_cannot_be_read(begin, monkeypatch, told, state, reason):
    """As with no server of ZooKeeper's up: what the master said last, or what the keeper knows itself."""
    with begin(keep=True) as run:

        def away(*_):
            raise Unavailable("no server answers")

        monkeypatch.setattr(run._registration.state, "get", away)
        run._supervisor.how_it_ended = lambda: "a task died"
        outcome = ended(run, status=told and SimpleNamespace(errors=[], erring=[], components={}, **vars(told)))
        assert (outcome.state, outcome.reason) == (state, reason)


def test_a_topology_that_somebody_removes_as_it_ends_was_removed(begin, monkeypatch):
    with begin(keep=True) as run:

        def removed(*_):
            raise NotFound("there is nothing")

        monkeypatch.setattr(run._registration.state, "set", removed)
        outcome = ended(run, Stage.TERMINATED)
        assert (outcome.state, outcome.reason) == (RunState.FAILED, FORGOTTEN)


@pytest.mark.parametrize("keep", [True, False])
def test_an_exception_on_the_way_out_deletes_no_snapshots(begin, home, keep):
    with pytest.raises(ZeroDivisionError), begin(keep=keep):
        _ = 1 / 0
    assert home.snapshots("n-1").names() == ["1.snapshot"]


@pytest.mark.parametrize(
    ("ended", "left"),
    [(RunState.SUCCEEDED, []), (RunState.KILLED, []), (RunState.FAILED, ["1.snapshot"])],
)
def test_snapshots_go_with_a_run_that_ended_and_did_not_fail(begin, home, ended, left):
    with begin(keep=False), home.open_state() as state:
        path = paths.execution_state("n-1")
        state.set(path, records.encode(ExecutionState(ended)), state.get(path).version)
    assert home.snapshots("n-1").names() == left


def test_a_state_that_has_lost_the_topology_gets_its_present_plan_back(home, monkeypatch):
    """A master that stood by since the start knows the first plan only, and containers refuse to go back to that."""
    first = definition_at(home)
    present = msgspec.structs.replace(first, epoch=2, config={**first.config, "my.key": 1})
    registration = Registration(Submission.restored(first, "Names"), home, lambda: False, lambda: present)
    home.make_folder("n-1")
    with contextlib.ExitStack() as undo:
        registration.begin(undo)
        state, submitted_at = registration.state, status(registration.state, "n-1").record.submitted_at
        remove(state, "n-1")
        monkeypatch.setattr(type(state), "lost", lambda _: True)
        state.poll()
        registration.lease.renew()
        record = status(state, "n-1").record
        assert (record.config, record.submitted_at) == (present.config, submitted_at)
        store = StateStore(state, "n-1", Term.take(state, "n-1", "the one that stood by"), lambda: None)
        assert store.plans(first) == (present, None)
        assert state.get(paths.physical_plan("n-1")).version == 2, "its epoch"


def registered(home, undo, number):
    """A topology that stays in the state, with what a snapshot has written; nobody keeps it once ``undo`` is over."""
    topology = f"Names-{number:08x}"
    definition = msgspec.structs.replace(definition_at(home), topology=topology)
    definition.write(home.make_folder(topology) / "definition")
    home.snapshots(topology).write("1.snapshot", [b"counts"])
    submission = Submission.restored(definition, "Names")
    registration = Registration(submission, home, lambda: True, lambda: definition)
    registration.begin(undo)
    return topology, registration


@pytest.fixture
def former(home):
    """Has that state in the end; None: its keeper was killed."""

    def left(ended):
        with contextlib.ExitStack() as undo:
            topology, registration = registered(home, undo, 1)
            if ended is not None:
                registration.outcome(lambda: ExecutionState(ended))
        return topology

    return left


@pytest.mark.parametrize(
    ("ended", "left"),
    [
        (RunState.SUCCEEDED, []),
        (RunState.KILLED, []),
        (RunState.FAILED, ["1.snapshot"]),
        (None, ["1.snapshot"]),
    ],
)
def test_snapshots_of_a_former_topology_stay_where_it_did_not_end_well(home, former, ended, left):
    """The state knows it no more once its name is submitted again; DEAD is one whose end nobody could write down."""
    topology = former(ended)
    with contextlib.ExitStack() as undo:
        _, registration = registered(home, undo, 2)
        with pytest.raises(NotFound):
            status(registration.state, topology)
    assert home.snapshots(topology).names() == left


def test_a_former_topology_that_somebody_else_removes_keeps_nobody_out(home, former, monkeypatch):
    former(RunState.SUCCEEDED)

    def removed(*_, **__):
        raise NotFound("there is nothing at /topologies/Names-00000001")

    monkeypatch.setattr(home, "forget", removed)
    with contextlib.ExitStack() as undo:
        topology, registration = registered(home, undo, 2)
        assert status(registration.state, topology).running


def dead(home, *, prune):
    """What `ardea doctor` says of dead topologies."""
    return next(check.found for check in checks(home, prune=prune) if check.name == "dead topologies")


def test_pruning_leaves_the_snapshots_of_a_dead_topology(home, former):
    topology = former(None)
    assert dead(home, prune=False).startswith(topology)
    assert dead(home, prune=True) == f"{topology} removed"
    assert dead(home, prune=True) == "none"
    assert home.snapshots(topology).names() == ["1.snapshot"]


def test_pruning_leaves_a_topology_whose_keeper_has_lost_its_lease(home):
    """As while its session with ZooKeeper is away: it takes the lease again."""
    with contextlib.ExitStack() as undo:
        topology, registration = registered(home, undo, 1)
        registration.lease.release()
        assert not status(registration.state, topology).running
        assert dead(home, prune=True) == "none"
        assert status(registration.state, topology).state == "DEAD"

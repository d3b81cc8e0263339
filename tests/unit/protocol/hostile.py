"""Hostile messages of every kind, and both ends of every link to send them to."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies as st

from ardea import Bolt, Topology
from ardea.context import TopologyContext
from ardea.errors import ProtocolError
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.inspector import Inspector
from ardea.heron_instance.shell import Shell as InstanceShell
from ardea.metrics import Identity, Overview, Registry
from ardea.plan.definition import Definition
from ardea.plan.physical import PhysicalPlan
from ardea.plan.shape import shape_of, shape_to_bytes
from ardea.plan.wire import packing_to_bytes, packing_to_message, plan_from_message
from ardea.protocol.checked import DATA, MalformedError, checked
from ardea.protocol.incarnations import applicant
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import (
    ACKS,
    ADMITTED,
    HELLO,
    INIT,
    ORDER,
    PLAN,
    REFUSED,
    REGISTER,
    REPORT,
    ROWS,
    SUMMARY,
    TASKS,
    VERDICTS,
    Address,
    Admission,
    Header,
    Hello,
    Kind,
    Order,
    Plan,
    Refusal,
    Registration,
    TaskReport,
    Tasks,
)
from ardea.scheduler.packing import packing_for
from ardea.state.records import MasterLocation, RunState
from ardea.stream_manager.gauges import Gauges
from ardea.stream_manager.shell import Shell as ManagerShell
from ardea.testing import CollectBolt, RowsSpout
from ardea.testing.memory_store import MemoryStore
from ardea.topology_master.master import Master
from ardea.versions import PROTOCOL


class Passes(Bolt):
    outputs = ("word",)

    def process(self, tup):
        self.emit((tup[0],))


class Words(Topology):
    words = RowsSpout.of(["word"], [["a"], ["b"]]).spec(par=2)
    passed = Passes.spec(inputs=[words], par=2)
    kept = CollectBolt.spec(inputs=[passed], par=2)


LOGICAL = Words.plan({"topology.stmgrs": 2})
PACKING = packing_to_bytes(packing_for(LOGICAL.config).pack(LOGICAL))
DEFINITION = Definition(topology="words", state="", location="", config={}, shape=shape_of(LOGICAL), packing=PACKING)
SENT_PACKING = packing_to_message(PACKING)
OTHERS_PACKING = packing_to_message(PACKING.replace(b'"words"', b'"w"'))
PHYSICAL = plan_from_message(LOGICAL, SENT_PACKING, 1)
SPOUT, BOLT = (
    next(task.task for task in PHYSICAL.tasks_in(1) if task.component == name) for name in ("words", "passed")
)

# --- messages ---------------------------------------------------------------------------------------------------

BODIES = {
    HELLO: Hello,
    REFUSED: Refusal,
    PLAN: Plan,
    TASKS: Tasks,
    REPORT: TaskReport,
    ORDER: Order,
    REGISTER: Registration,
    ADMITTED: Admission,
}
COLUMNS = {INIT: 2, ACKS: 5, VERDICTS: 4}
small = st.integers(0, 7)
_u32 = small | st.sampled_from([(1 << 16) + 1, (1 << 32) - 1])
_u64 = _u32 | st.sampled_from([1 << 32, 1 << 48, 1 << 63, (1 << 64) - 1])
_texts = st.sampled_from(["", "words", "\x1b[2J", "x" * 300, DEFINITION.shape.digest, "a b"])
_known = st.sampled_from([SENT_PACKING, shape_to_bytes(DEFINITION.shape), SENT_PACKING[:40], OTHERS_PACKING])
_SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_UINT32: _u32,
    FieldDescriptor.TYPE_UINT64: _u64,
    FieldDescriptor.TYPE_FIXED64: _u64,
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_ENUM: st.integers(0, 40),
    FieldDescriptor.TYPE_DOUBLE: st.sampled_from([0.0, 1.7e9, float("-inf"), float("inf"), float("nan")]),
    FieldDescriptor.TYPE_FLOAT: st.sampled_from([0.0, 0.5, 1.0, -1.0, float("inf"), float("nan")]),
    FieldDescriptor.TYPE_STRING: _texts,
    FieldDescriptor.TYPE_BYTES: st.binary(max_size=20) | _known,
}


@st.composite
def bodies(draw: st.DrawFn, descriptor: Any, make: Any) -> Any:
    """A protobuf message with any of its fields set to anything."""
    message = make()
    for field in draw(st.lists(st.sampled_from([*descriptor.fields]), max_size=8, unique_by=lambda f: f.name)):
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            getattr(message, field.name)[draw(_SCALARS[key.type])] = draw(_SCALARS[value.type])
        elif field.message_type is not None:
            part = draw(bodies(field.message_type, field.message_type._concrete_class))
            target = getattr(message, field.name)
            (target.append if field.is_repeated else target.CopyFrom)(part)
        elif field.is_repeated:
            getattr(message, field.name).append(draw(_SCALARS[field.type]))
        else:
            setattr(message, field.name, draw(_SCALARS[field.type]))
    return message


_columns = st.lists(st.sampled_from([0, 1, 1 << 48, (1 << 48) + 1, (3 << 48) + 5, (1 << 64) - 1]), max_size=4).map(
    lambda ids: np.array(ids, dtype="<u8").tobytes()
)
_anything = st.binary(max_size=12)


@st.composite
def payloads(draw: st.DrawFn, kind: int, rows: int) -> list[bytes]:
    """What a message of that kind has, or something else."""
    if draw(small) == 0:
        return draw(st.lists(_anything, max_size=5))
    if kind in BODIES:
        return [draw(bodies(BODIES[kind].DESCRIPTOR, BODIES[kind])).SerializeToString()]
    if kind == ROWS:
        values = draw(st.sampled_from([b"\x91\x91\xa1a", b"\x92\x91\xa1a\x91\xa1b", b"\xc1", b""]) | _anything)
        ids = np.arange(rows % 9, dtype="<u8").tobytes()
        offsets = np.array(draw(st.lists(small, min_size=rows % 9 + 1, max_size=rows % 9 + 1)), dtype="<u4").tobytes()
        return [values, *draw(st.sampled_from([[], [ids, ids], [offsets, ids, ids], [ids]]))]
    return [draw(_columns) for _ in range(COLUMNS.get(kind, 0))]


@st.composite
def messages(draw: st.DrawFn) -> tuple[Header, list[bytes]]:
    """A header of any kind, most often with a payload that suits it."""
    header = draw(bodies(Header.DESCRIPTOR, Header))
    header.kind = draw(st.sampled_from([*Kind.values()]) | st.integers(0, 99))
    return header, draw(payloads(header.kind, header.rows))


# --- ends of links ----------------------------------------------------------------------------------------------


class End:
    """One process, as far as it hears one peer; ``link`` is its own of that peer."""

    link: Link | None
    dropped = 0

    def hear(self, lane: Lane, header: Header, frames: list[bytes]) -> None:
        """As its loop does with what is sound by itself."""
        raise NotImplementedError

    @property
    def malformed(self) -> int:
        """How many messages it has dropped, and counted."""
        return self.dropped

    def goes_on(self) -> None:
        """What its loop does besides: timers, metrics, messages of its own."""
        raise NotImplementedError

    def hears(self, header: Header, frames: list[bytes], *, knows: bool) -> None:
        """``knows``: who sends it knows the incarnations, the next number and the plan, as a real peer does."""
        lane = Lane.DATA if header.kind in DATA else Lane.CONTROL
        if knows and self.link is not None:
            header.sender, header.receiver = self.link.peer or 1, self.link.me
            header.sequence, header.epoch = self.link.lanes[lane].received + 1, 1
        try:
            sound = checked([header.SerializeToString(), *frames])
        except MalformedError:
            self.dropped += 1
        else:
            self.hear(lane, sound, frames)
        self.goes_on()


def nowhere(*_: object) -> None:
    """Sends nothing to nobody."""


class ManagerEnd(End):
    """What the shell of a stream manager asks for; its master has told it the plan."""

    def __init__(self) -> None:
        self.address, self.mail, self.now = "", deque(), 0.0
        self.registry = Registry(Identity("words", 1, "stream-manager"))
        self.gauges = Gauges(self.registry)
        self.final, self.master = False, MasterLocation(host="h", port=1, term=1, pid=1)
        self.shell = ManagerShell(self, DEFINITION, 1, "me", 1, ("h", 1, 2))
        self.shell.tick(0.0)
        self.link = self.shell.registrar.link
        self._says(HELLO, Hello(protocol=PROTOCOL), 0)
        self._says(ADMITTED, Admission(admission=1, term=1), 1)
        addresses = [Address(container=n, host="h", data_port=1, control_port=2, incarnation=1 << 32) for n in (1, 2)]
        shape = shape_to_bytes(DEFINITION.shape)
        self._says(PLAN, Plan(epoch=1, build=1, shape=shape, packing=SENT_PACKING, addresses=addresses), 2)
        self.manager = self.shell.manager
        assert self.manager.hellos.epoch == 1

    def _says(self, kind: int, body: Any, sequence: int) -> None:
        header = Header(kind=kind, sender=1, receiver=applicant("me", 1), sequence=sequence)
        self.mail.append([header.SerializeToString(), body.SerializeToString()])
        self.shell.listen(self.now)

    def goes_on(self) -> None:
        self.now += 0.4
        self.shell.tick(self.now)
        self.gauges.read(self.manager, self.now)
        self.registry.snapshot()

    @property
    def malformed(self) -> int:
        shell = self.shell
        return self.dropped + shell.malformed + shell.registrar.malformed + self.manager.statistics.malformed

    # as its way to the master

    def send(self, frames: object) -> bool:
        return True

    def receive(self, *_: object) -> list[list[bytes]]:  # type: ignore[override]
        mail, self.mail = [*self.mail], deque()
        return mail

    def close(self) -> None:
        pass

    # as the shell sees it

    def look(self) -> ManagerEnd:
        return self

    def dial(self, address: str) -> ManagerEnd:
        return self

    def remember(self, *_: object) -> bool:
        return True

    reach = leave = heard = transmit = nowhere


class Manager(ManagerEnd):
    """A stream manager that hears a task of its own, or the other manager."""

    def __init__(self, task: int = 0) -> None:
        super().__init__()
        self.tasks = {t.task: t.name for t in PHYSICAL.tasks_in(1)}
        for number, link in self.manager.members.instances.items():
            self.link = link
            self._meets(Hello(protocol=PROTOCOL, topology="words", task=number, epoch=1, build=1), 1)
        self.link = self.manager.members.peers[2]
        lives = {t.task: 1 << 32 | 1 for t in PHYSICAL.tasks_in(2)}
        self._meets(
            Hello(
                protocol=PROTOCOL, topology="words", digest=DEFINITION.shape.digest, epoch=1, container=2, tasks=lives
            ),
            1 << 32 | 1,
        )
        if task:
            self.link = self.manager.members.instances[task]

    def _meets(self, hello: Hello, life: int) -> None:
        header = Header(kind=HELLO, sender=life, receiver=self.manager.members.me)
        self.hear(Lane.CONTROL, header, [hello.SerializeToString()])
        assert self.link.peer == life

    def hear(self, lane: Lane, header: Header, frames: list[bytes]) -> None:
        peers = self.link in self.manager.members.peers.values()
        self.shell.received(self.link.key, b"it", lane, [header.SerializeToString(), *frames], self.now, peers=peers)


class ManagersMaster(ManagerEnd):
    """A stream manager that hears its master."""

    def hears(self, header: Header, frames: list[bytes], *, knows: bool) -> None:
        if knows:
            header.sender, header.receiver = 1, self.link.me
            header.sequence = self.link.lanes[Lane.CONTROL].received + 1
        self.mail.append([header.SerializeToString(), *frames])
        try:
            self.shell.listen(self.now)
        except ProtocolError:
            assert header.kind in (REFUSED, HELLO)  # the version, and whom it refuses, are the master's to say
            return
        self.goes_on()


class TheMaster(End):
    """A topology master that hears the manager of container 1."""

    def __init__(self) -> None:
        self.now, self.overview, store = 0.0, Overview(), MemoryStore(RunState.RUNNING, DEFINITION)
        self.master = Master(DEFINITION, None, 1, store, nowhere, found=store.held, now=0.0)
        self.link = None
        common = {"topology": "words", "digest": DEFINITION.shape.digest, "container": 1, "holder": "me"}
        self._says(HELLO, Hello(protocol=PROTOCOL, **common), 0)
        self.link = self.master.admissions.containers[1].link
        address = Address(container=1, host="h", data_port=1, control_port=2)
        self._says(REGISTER, Registration(**common, address=address), 1)
        assert self.master.admissions.containers[1].registered

    def _says(self, kind: int, body: Any, sequence: int) -> None:
        header = Header(kind=kind, sender=applicant("me", 1), receiver=1, sequence=sequence)
        self.hears(header, [body.SerializeToString()], knows=False)

    def hear(self, lane: Lane, header: Header, frames: list[bytes]) -> None:
        if header.kind != SUMMARY:
            self.master.received(1, header, frames, self.now)

    def goes_on(self) -> None:
        self.now += 0.4
        self.master.tick(self.now)
        self.master.ending.facts(RunState.ENDING, None)


class Instance(End):
    """A task that hears its manager, executor and all."""

    held, held_bytes = False, 0

    def __init__(self, component: str) -> None:
        self.now, self.sent, self.over = 0.0, [], False
        self.number = {"words": SPOUT, "passed": BOLT}[component]
        self.inspector = Inspector(PHYSICAL.tasks[self.number], 1, lambda: None)
        self.shell = InstanceShell(self, DEFINITION, LOGICAL, PHYSICAL.tasks[self.number], 1)
        self.gateway, self.link = self.shell.gateway, self.shell.gateway.link
        hello = Hello(protocol=PROTOCOL, topology="words", digest=DEFINITION.shape.digest, epoch=1, build=1)
        self._says(HELLO, hello, 0)
        self._says(PLAN, Plan(epoch=1, build=1, packing=SENT_PACKING, active=True), 1)
        assert self.link.up
        assert self.executor is not None

    def _says(self, kind: int, body: Any, sequence: int) -> None:
        header = Header(kind=kind, sender=1, receiver=1, sequence=sequence)
        self.hears(header, [body.SerializeToString()], knows=False)

    @property
    def executor(self) -> Executor | None:
        return self.shell.executor

    # as the shell sees it

    transmit = nowhere

    def start(self, plan: PhysicalPlan, message: Plan) -> None:
        context = TopologyContext(plan, self.number, LOGICAL.config)
        env = self.shell.environment(plan, context, lambda: self.now, np.random.default_rng(1))
        self.shell.executor = Executor(env)
        self.shell.begin(message)

    def exit(self) -> None:
        self.over = True

    def inspect(self, order: Order) -> None:
        self.inspector.asked(order)

    # as the executor sees it

    def put(self, message: Any) -> None:
        self.sent.append(message)
        self.gateway.offer(message)

    def wait_room(self, most: int, timeout: float) -> bool:
        return True

    def consumed(self, header: Header, size: int) -> None:
        self.gateway.consumed(header, size)

    # as its process does

    def hear(self, lane: Lane, header: Header, frames: list[bytes]) -> None:
        its_to_say = ProtocolError if header.kind in (REFUSED, HELLO) else ()
        with contextlib.suppress(its_to_say):
            self.shell.received(lane, [header.SerializeToString(), *frames], self.now)

    @property
    def malformed(self) -> int:
        return self.dropped + self.gateway.malformed + self.shell.instruments.malformed

    def goes_on(self) -> None:
        self.now += 0.4
        while (item := self.shell.inbox.take()) is not None:
            self.executor.handle(item)
        if self.executor is not None:
            self.executor.advance(self.now)
        self.gateway.tick(self.now)
        self.shell.registry.snapshot()

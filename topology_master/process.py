"""The topology master as a process: lease and term, one socket for managers and callers, one loop."""

from __future__ import annotations

import contextlib
import hmac
import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import structlog

from ardea import leash
from ardea.errors import ExitCode, NotFound, OtherVersion, ProtocolError, StateError
from ardea.metrics import Identity, Overview, Registry, observe_process
from ardea.plan.change import UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.names import TOPOLOGY_MASTER
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import ANSWER, ASK, REFUSED, SUMMARY, Answer, Ask, Header, Refusal, TaskState
from ardea.state import Create, Delete, Fenced, Lease, Set, Term, Unavailable, Write, open_state, paths, records
from ardea.state.records import Admission, ExecutionState, Incarnations, MasterLocation, RunState, TopologyRecord
from ardea.topology_master.ending import Told
from ardea.topology_master.standby import Standby
from ardea.topology_master.state import Master
from ardea.transport import Bound, Callers, Dialled, Door, Keyring, Poller, caller, context, peer_number
from ardea.versions import PROTOCOL, protocol_differs

AS_OLD = "the verb has to be of the topology's version"
LINGER_AFTER_END = 3.0
STANDBY_LOOKS_EVERY = 0.1
log = structlog.get_logger(TOPOLOGY_MASTER)


class StateStore:
    """The master's writes, under its term."""

    def __init__(self, state: Any, topology: str, term: Term) -> None:
        self._state, self._topology, self._term = state, topology, term

    def holders(self) -> dict[int, str]:
        """See :class:`ardea.topology_master.store.Store`."""
        return {number: admission.holder for number, admission in self._admissions()[0].items()}

    def _admissions(self) -> tuple[dict[int, Admission], int]:
        """By container, and the version of their node; 0: there is none yet."""
        path = paths.incarnations(self._topology)
        try:
            held = self._state.get(path)
        except NotFound:
            return {}, 0
        return records.decode(held.data, Incarnations, path).containers, held.version

    def admit(self, container: int, holder: str, host: str, port: int) -> int:
        """See :class:`ardea.topology_master.store.Store`."""
        path = paths.incarnations(self._topology)
        known, version = self._admissions()
        former = known.get(container)
        number = 1 if former is None else former.admission + (former.holder != holder)
        admission = Admission(admission=number, holder=holder, host=host, port=port)
        if admission != former:
            data = records.encode(Incarnations({**known, container: admission}))
            self._term.transaction([Set(path, data, version) if version else Create(path, data)])
        return number

    def execution(self, execution: ExecutionState) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        path = paths.execution_state(self._topology)
        self._term.transaction([Set(path, records.encode(execution), self._state.get(path).version)])

    def plans(self, submitted: Definition) -> tuple[Definition, Definition | None]:
        """The plan in force and the one that an update may go back to; the first master writes what was submitted."""
        path, former = paths.physical_plan(self._topology), paths.former_plan(self._topology)
        try:
            present = Definition.unpacked(self._state.get(path).data, path)
        except NotFound:
            self._term.transaction([Create(path, submitted.packed())])
            return submitted, None
        try:
            return present, Definition.unpacked(self._state.get(former).data, former)
        except NotFound:
            return present, None

    def switch(self, wanted: Definition, former: Definition | None, execution: ExecutionState) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        plan, state = paths.physical_plan(self._topology), paths.execution_state(self._topology)
        record = paths.topology(self._topology)
        held = self._state.get(record)
        told = records.decode(held.data, TopologyRecord, record).changed_to(wanted)
        writes: list[Write] = [
            Set(plan, wanted.packed(), wanted.epoch - 1),
            Set(state, records.encode(execution), self._state.get(state).version),
            Set(record, records.encode(told), held.version),
        ]
        self._term.transaction([*writes, *self._way_back(former)])

    def settled(self, execution: ExecutionState) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        path = paths.execution_state(self._topology)
        write = Set(path, records.encode(execution), self._state.get(path).version)
        self._term.transaction([write, *self._way_back(None)])

    def _way_back(self, former: Definition | None) -> list[Write]:
        path = paths.former_plan(self._topology)
        if not self._state.exists(path):
            return [] if former is None else [Create(path, former.packed())]
        return [Delete(path) if former is None else Set(path, former.packed(), self._state.get(path).version)]


class MasterProcess:
    """Wires one master; :meth:`run` returns the exit code."""

    def __init__(
        self,
        definition: Definition,
        host: str,
        token: str,
        metrics: str,
        wanted: Callable[[], bool] = lambda: True,
        keys: Path | None = None,
    ) -> None:
        """``wanted`` is asked when this process could become the master: False ends it, and nothing was written.

        ``keys`` is the folder with the secret key of the master's container.
        """
        self.definition = definition
        self._wanted = wanted
        self._lease: Lease | None = None
        self.exit_code: ExitCode | None = None
        self.overview = Overview()
        self.name = os.environ.get("ARDEA_NAME", TOPOLOGY_MASTER)
        self._host = host
        self._token = token
        self._malformed = 0
        self._state = open_state(definition.state)
        self._context = context()
        self.poller = Poller()
        self._keys = Keyring.read(keys, definition.keys)
        self._door = Door(self._context, self._keys, callers=True) if self._keys is not None else None
        if self._door is not None:
            self.poller.keep(self._door)
        self._socket = Bound(self._context, self._door)
        self._callers = Callers()
        self._port = self._socket.bind(f"tcp://{host}:0")
        self.poller.watch(self._socket)
        self._metrics = Dialled(self._context, caller("m", 0), metrics)
        self.registry = Registry(
            Identity(topology=definition.topology, container=0, process=self.name, life=leash.life())
        )
        observe_process(self.registry)
        self._lag = self.registry.histogram("ardea_process_loop_lag_seconds")
        self.registry.gauge("ardea_tm_leader").value = 0

    # --- becoming the master ----------------------------------------------------------------------------------

    def _stand_by(self) -> Lease | None:
        """Until the lease is this process's; None: it was told to stop before."""
        next_beat = 0.0
        standby = Standby(self._state, self.definition.topology, self._location(term=0))
        while self.exit_code is None:
            if (now := time.monotonic()) >= next_beat:
                next_beat = now + 1.0
                leash.beat(in_user_code=False)
                self._metrics.send([self.registry.snapshot()])
            if (lease := standby.attempt()) is not None:
                return lease
            self.poller.wait(STANDBY_LOOKS_EVERY, lambda: self.exit_code is not None)
            for _ in self._socket.receive(256):
                pass  # nobody who has business with a master knows this port
        return None

    def _location(self, term: int) -> MasterLocation:
        supervisor = os.environ.get("ARDEA_SUPERVISOR_ID")
        holder = f"{supervisor}/{self.name}" if supervisor else ""
        return MasterLocation(
            host=self._host, port=self._port, term=term, pid=os.getpid(), holder=holder, life=leash.life()
        )

    def _begin(self) -> Master:
        """A new term: takes it, says where it is, goes on from what is stored."""
        definition, topology = self.definition, self.definition.topology
        term = Term.take(self._state, topology, f"pid {os.getpid()} on {self._host}")
        path = paths.master(topology)
        self._state.set(path, records.encode(self._location(term.number)), self._state.get(path).version)
        store = StateStore(self._state, topology, term)
        path = paths.execution_state(topology)
        present, former = store.plans(definition)
        return Master(
            present,
            former,
            term.number,
            store,
            self._transmit,
            found=records.decode(self._state.get(path).data, ExecutionState, path),
            now=time.monotonic(),
        )

    @property
    def address(self) -> str:
        """Of its control port."""
        return f"tcp://{self._host}:{self._port}"

    @property
    def acting(self) -> bool:
        """Whether nobody else can be the master now; from any thread."""
        return self._lease is not None and self.exit_code is None and self._lease.expires_in > 0.0

    # --- the loop ---------------------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Until the final state is stored and everybody knows it."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop(ExitCode.TEMPORARY))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        lease = self._stand_by()
        if lease is None or not self._wanted():
            self._close()
            return self.exit_code or ExitCode.TEMPORARY
        self.master = self._begin()
        self._lease = lease
        log.info("this master acts", term=self.master.term)
        if self.master.execution.state.final:
            self._stop(_code_of(self.master.execution.state))
        next_second = due = time.monotonic()
        over_since: float | None = None
        while self.exit_code is None:
            self.poller.wait(min(1.0, max(0.0, due - time.monotonic())), lambda: self.exit_code is not None)
            now = time.monotonic()
            try:
                for identity, frames in self._socket.receive(256):
                    self._received(identity, frames, now)
                due = min(self.master.tick(now), next_second)
            except Fenced as error:
                log.error("this master's term is over", reason=error.message)
                leash.report(f"this master's term is over: {error.message}")
                self._stop(ExitCode.TEMPORARY)
            if not self._still_holds(lease):
                log.error("the lease may be another's: this master ends")
                leash.report("the lease may be another's: no answer from the state manager for too long")
                self._stop(ExitCode.TEMPORARY)
            if now >= next_second:
                self._lag.observe(now - next_second)
                next_second = now + 1.0
                if self._keys is not None:  # an update may have brought containers
                    self._keys.learn(self.master.admissions.definition.keys)
                leash.beat(in_user_code=False)
                self._gauges(now)
            if self.master.over:
                over_since = over_since or now
                if self.master.admissions.told_everybody or now - over_since > LINGER_AFTER_END:
                    self._stop(_code_of(self.master.execution.state))
                due = min(due, now + 0.05)
        if self.exit_code is ExitCode.OK:
            self._gauges(time.monotonic())  # the last; behind it, the metrics manager looks whether it is alone
        self._close()
        return self.exit_code

    def _still_holds(self, lease: Lease) -> bool:
        """Cut off from the state for too long, another may act: then this one must not."""
        with contextlib.suppress(Unavailable):
            self._state.poll()
        return lease.expires_in > 0.0

    def _received(self, identity: bytes, frames: list[bytes], now: float) -> None:
        """One message; anybody can reach the port, so that it may be anything."""
        try:
            header = checked(frames)
            if header.kind == SUMMARY:
                self._summary(identity, header.protocol, frames[1], now)
        except (MalformedError, msgspec.MsgspecError, UnicodeDecodeError):
            self._socket.statistics.malformed += 1
            return
        if header.kind == ASK:
            answer = self._answer(Ask.FromString(frames[1]), header.protocol, now)
            self._send(identity, Header(kind=ANSWER, protocol=PROTOCOL), answer)
        elif header.kind != SUMMARY and identity.startswith(b"m") and (number := peer_number(identity)) >= 0:
            self._callers.hears(number, header.sender, identity)
            self.master.received(number, header, frames[1:], now)

    def _summary(self, identity: bytes, protocol: int, body: bytes, now: float) -> None:
        if why := protocol_differs("the topology master", "a metrics manager", protocol):
            self._send(identity, Header(kind=REFUSED), Refusal(code="OTHER_VERSION", message=why, definite=True))
        else:
            self.overview.accept(body, now)

    def _send(self, identity: bytes, header: Header, body: Answer | Refusal) -> None:
        self._socket.send(identity, [header.SerializeToString(), body.SerializeToString()])

    def _transmit(self, link: Link, _lane: Lane, message: Message) -> None:
        self._socket.send(self._callers.name(link.key, link.peer), message)

    # --- callers ----------------------------------------------------------------------------------------------

    def _answer(self, ask: Ask, protocol: int, now: float) -> Answer:
        """The verbs of the control port; docs/protocol.md lists them.  An update needs a caller of this version."""
        if not hmac.compare_digest(ask.token.encode(), self._token.encode()):
            return Answer(ok=False, code="NOT_ALLOWED", message="the token is not this topology's")
        try:
            if ask.verb == "update" and (
                why := protocol_differs("the topology master", "the caller", protocol, AS_OLD)
            ):
                raise OtherVersion("OTHER_VERSION", why)
            if not self._obeyed(ask, now):
                return Answer(ok=False, code="UNKNOWN_VERB", message=f"the master knows no verb {ask.verb!r}")
        except ValueError as error:
            return Answer(ok=False, code="BAD_ARGUMENT", message=f"{ask.verb}: {error}")
        except ProtocolError as error:
            return Answer(ok=False, code=error.code, message=f"{ask.verb}: {error.reason}")
        except Fenced:
            raise
        except StateError as error:
            return Answer(ok=False, code="NOT_WRITTEN", message=f"{ask.verb}: {error.message}")
        stories = {"stories": self.master.stories.events(now)} if "stories" in ask.arguments else {}
        return Answer(ok=True, body=msgspec.json.encode({**self._status(now), **stories}))

    def _obeyed(self, ask: Ask, now: float) -> bool:
        master = self.master
        if ask.verb == "activate":
            master.set_active(now, active=True)
        elif ask.verb == "deactivate":
            master.set_active(now, active=False)
        elif ask.verb == "drain":
            master.drain(now, _seconds(_given(ask, "wait")) if "wait" in ask.arguments else None)
        elif ask.verb == "debug":
            master.debug(_given(ask, "target"), int(_seconds(_given(ask, "seconds"))))
        elif ask.verb == "fail":
            master.fail(_given(ask, "reason"), ask.arguments.get("culprit", ""))
        elif ask.verb == "update":
            master.update(_request(ask), now)
        elif ask.verb != "status":
            return False
        return True

    def _status(self, now: float) -> dict[str, Any]:
        master = self.master
        self.overview.expire(now)
        errors = master.ending.errors()
        return {
            "topology": self.definition.topology,
            "state": master.execution.state.value,
            "reason": master.execution.reason,
            "term": master.term,
            "epoch": master.admissions.plan.epoch,
            "missing_containers": master.admissions.missing,
            "silent_tasks": master.silent_tasks,
            "given_up": master.ending.given_up,
            "errors": list(errors.values()),
            "erring": list(errors),
            "update": msgspec.to_builtins(master.updates.progress()),
            "tasks": {
                master.admissions.plan.tasks[t].name: self._task(t, told) for t, told in master.ending.tasks.items()
            },
            "components": {name: msgspec.to_builtins(t) for name, t in self.overview.components().items()},
            "processes": [msgspec.to_builtins(p) for p in self.overview.processes()],
        }

    def _task(self, task: int, told: Told) -> dict[str, Any]:
        component = self.master.admissions.plan.logical[self.master.admissions.plan.tasks[task].component]
        return {
            "state": TaskState.Name(told.state),
            "life": told.life,
            "open": told.open,
            "asked": msgspec.to_builtins(component.resource),
        }

    def _gauges(self, now: float) -> None:
        master, registry = self.master, self.registry
        if (malformed := self._socket.statistics.malformed) > self._malformed:
            log.warning("dropped messages that cannot be read", count=malformed - self._malformed)
            self._malformed = malformed
        missing = len(master.admissions.missing)
        registry.gauge("ardea_tm_containers", state="missing").value = missing
        registry.gauge("ardea_tm_containers", state="registered").value = (
            len(master.admissions.plan.containers) - missing
        )
        registry.counter("ardea_process_malformed_messages_total").value = malformed
        registry.gauge("ardea_tm_leader").value = 1
        registry.gauge("ardea_tm_plan_version").value = master.admissions.plan.epoch
        for number, container in master.admissions.containers.items():
            age = registry.gauge("ardea_tm_heartbeat_age_seconds", peer=f"manager-{number}")
            age.value = now - container.link.last_heard
        self._metrics.send([registry.snapshot()])

    def _stop(self, code: ExitCode) -> None:
        self.exit_code = code
        self.poller.wake()

    def _close(self) -> None:
        self._state.close()
        self._socket.close()
        if self._door is not None:
            self._door.close()
        self._metrics.close()
        self._context.destroy(linger=1000)


def _code_of(state: RunState) -> ExitCode:
    """A final state is an orderly end of the process, whatever it says of the topology."""
    return ExitCode.OK if state.final else ExitCode.TEMPORARY


def _given(ask: Ask, name: str) -> str:
    """An argument; ValueError if there is none."""
    if not (text := ask.arguments.get(name)):
        raise ValueError(f"the argument {name} is missing")
    return text


def _request(ask: Ask) -> UpdateRequest:
    """ValueError if it is none."""
    try:
        wanted = Definition.unpacked(ask.body, "the body")
    except StateError as error:
        raise ValueError(error.message) from error
    return UpdateRequest(_given(ask, "id"), wanted, int(_given(ask, "base")), _seconds(_given(ask, "wait")))


def _seconds(text: str) -> float:
    """ValueError if that is no time to wait."""
    seconds = float(text)
    if not 0.0 <= seconds < math.inf:
        raise ValueError(f"{text} is not a number of seconds")
    return seconds


def read_token(folder: Path) -> str:
    """The control port's token, from the topology's own folder."""
    return (folder / "token").read_text().strip()

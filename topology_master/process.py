"""The topology master as a process: lease and term, one socket for managers and callers, one loop."""

from __future__ import annotations

import contextlib
import hmac
import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import structlog
from google.protobuf.message import DecodeError

from ardea import leash
from ardea.config import Settings
from ardea.errors import ExitCode, NotFound, StateError
from ardea.metrics import Identity, Overview, Registry, observe_process
from ardea.plan.definition import Definition
from ardea.plan.wire import packing_from_bytes
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import ANSWER, ASK, SUMMARY, Answer, Ask, Header, TaskState
from ardea.state import Create, Fenced, Lease, Set, Term, Unavailable, open_state, paths, records
from ardea.state.records import Admission, ExecutionState, Incarnations, MasterLocation, RunState
from ardea.transport import Bound, Dialled, Poller, context, peer_number
from topology_master.standby import Standby
from topology_master.state import Master

LINGER_AFTER_END = 3.0
STANDBY_LOOKS_EVERY = 0.1
log = structlog.get_logger("topology-master")


class StateStore:
    """The master's writes, under its term."""

    def __init__(self, state: Any, topology: str, term: Term) -> None:
        self._state, self._topology, self._term = state, topology, term

    def admit(self, container: int, holder: str, host: str, port: int) -> int:
        """See :class:`topology_master.state.Store`."""
        path = paths.incarnations(self._topology)
        try:
            held = self._state.get(path)
            known, version = records.decode(held.data, Incarnations, path).containers, held.version
        except NotFound:
            known, version = {}, 0
        former = known.get(container)
        number = 1 if former is None else former.admission + (former.holder != holder)
        admission = Admission(admission=number, holder=holder, host=host, port=port)
        if admission != former:
            data = records.encode(Incarnations({**known, container: admission}))
            self._term.transaction([Set(path, data, version) if version else Create(path, data)])
        return number

    def execution(self, execution: ExecutionState) -> None:
        """See :class:`topology_master.state.Store`."""
        path = paths.execution_state(self._topology)
        self._term.transaction([Set(path, records.encode(execution), self._state.get(path).version)])

    def epoch(self, packing: bytes) -> int:
        """Writes the routing content if it changed; its version is the epoch."""
        path = paths.physical_plan(self._topology)
        try:
            held = self._state.get(path)
        except NotFound:
            return self._term.transaction([Create(path, packing)])[0]
        if held.data == packing:
            return int(held.version)
        return self._term.transaction([Set(path, packing, held.version)])[0]


class MasterProcess:
    """Wires one master; :meth:`run` returns the exit code."""

    def __init__(self, definition: Definition, host: str, token: str, metrics: str) -> None:
        self.definition = definition
        self.exit_code: ExitCode | None = None
        self.overview = Overview()
        self.name = os.environ.get("ARDEA_NAME", "topology-master")
        self._host = host
        self._token = token
        self._malformed = 0
        self._state = open_state(definition.state)
        self._context = context()
        self.poller = Poller()
        self._socket = Bound(self._context)
        self._port = self._socket.bind(f"tcp://{host}:0")
        self.poller.watch(self._socket)
        self._metrics = Dialled(self._context, self.name.encode(), metrics)
        self.registry = Registry(
            Identity(topology=definition.topology, container=0, process=self.name, life=leash.life())
        )
        observe_process(self.registry)

    # --- becoming the master ----------------------------------------------------------------------------------

    def _stand_by(self) -> Lease | None:
        """Until the lease is this process's; None: it was told to stop before."""
        next_beat = 0.0
        standby = Standby(self._state, paths.master(self.definition.topology), self._location(term=0))
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

    def _location(self, term: int) -> bytes:
        return records.encode(MasterLocation(host=self._host, port=self._port, term=term, pid=os.getpid()))

    def _begin(self) -> Master:
        """A new term: takes it, says where it is, goes on from what is stored."""
        definition, topology = self.definition, self.definition.topology
        term = Term.take(self._state, topology, f"pid {os.getpid()} on {self._host}")
        path = paths.master(topology)
        self._state.set(path, self._location(term.number), self._state.get(path).version)
        store = StateStore(self._state, topology, term)
        if term.number == 1 and not definition.active:
            store.execution(ExecutionState(RunState.PAUSED))
        path = paths.execution_state(topology)
        logical = definition.shape.plan()
        return Master(
            topology,
            definition.shape.digest,
            logical,
            packing_from_bytes(definition.packing),
            definition.packing,
            store.epoch(definition.packing),
            term.number,
            store,
            self._transmit,
            found=records.decode(self._state.get(path).data, ExecutionState, path),
            now=time.monotonic(),
            drain_secs=Settings.of(logical.config).drain,
        )

    # --- the loop ---------------------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Until the final state is stored and everybody knows it."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop(ExitCode.TEMPORARY))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        lease = self._stand_by()
        if lease is None:
            self._close()
            return self.exit_code or ExitCode.TEMPORARY
        self.master = self._begin()
        log.info("this master acts", term=self.master.term)
        if self.master.state.final:
            self._stop(_code_of(self.master.state))
        next_second = due = 0.0
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
                self._stop(ExitCode.TEMPORARY)
            if not self._still_holds(lease):
                log.error("the lease may be another's: this master ends")
                self._stop(ExitCode.TEMPORARY)
            if now >= next_second:
                next_second = now + 1.0
                leash.beat(in_user_code=False)
                self._gauges(now)
            if self.master.over:
                over_since = over_since or now
                if self.master.told_everybody or now - over_since > LINGER_AFTER_END:
                    self._stop(_code_of(self.master.state))
                due = min(due, now + 0.05)
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
            header = Header.FromString(frames[0])
            body = frames[1] if len(frames) > 1 else b""
            if header.kind == ASK:
                answer = self._answer(Ask.FromString(body), now)
                self._socket.send(identity, [Header(kind=ANSWER).SerializeToString(), answer.SerializeToString()])
            elif header.kind == SUMMARY:
                self.overview.accept(body, now)
            elif identity == b"m%d" % (number := peer_number(identity)):
                self.master.received(number, header, [body], now)
        except (DecodeError, msgspec.MsgspecError):
            self._socket.statistics.malformed += 1

    def _transmit(self, link: Link, _lane: Lane, message: Message) -> None:
        self._socket.send(b"m%d" % link.key, message)

    # --- callers ----------------------------------------------------------------------------------------------

    def _answer(self, ask: Ask, now: float) -> Answer:
        """The verbs of the control port; docs/protocol.md lists them."""
        if not hmac.compare_digest(ask.token.encode(), self._token.encode()):
            return Answer(ok=False, code="NOT_ALLOWED", message="the token is not this topology's")
        try:
            if not self._obeyed(ask, now):
                return Answer(ok=False, code="UNKNOWN_VERB", message=f"the master knows no verb {ask.verb!r}")
        except ValueError as error:
            return Answer(ok=False, code="BAD_ARGUMENT", message=f"{ask.verb}: {error}")
        except Fenced:
            raise
        except StateError as error:
            return Answer(ok=False, code="NOT_WRITTEN", message=f"{ask.verb}: {error.message}")
        return Answer(ok=True, body=msgspec.json.encode(self._status(now)))

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
            master.fail(_given(ask, "reason"))
        elif ask.verb != "status":
            return False
        return True

    def _status(self, now: float) -> dict[str, Any]:
        master = self.master
        self.overview.expire(now)
        return {
            "topology": master.topology,
            "state": master.state.value,
            "reason": master.reason,
            "term": master.term,
            "epoch": master.plan.epoch,
            "missing_containers": master.missing,
            "silent_tasks": master.silent_tasks,
            "given_up": master.ending.given_up,
            "errors": master.ending.errors(),
            "tasks": {
                master.plan.tasks[t].name: {"state": TaskState.Name(told.state), "life": told.life, "open": told.open}
                for t, told in master.ending.tasks.items()
            },
            "components": {name: msgspec.to_builtins(t) for name, t in self.overview.components().items()},
            "processes": [msgspec.to_builtins(p) for p in self.overview.processes()],
        }

    def _gauges(self, now: float) -> None:
        master, registry = self.master, self.registry
        if (malformed := self._socket.statistics.malformed) > self._malformed:
            log.warning("dropped messages that cannot be read", count=malformed - self._malformed)
            self._malformed = malformed
        missing = len(master.missing)
        registry.gauge("ardea_tm_containers", state="missing").value = missing
        registry.gauge("ardea_tm_containers", state="registered").value = len(master.plan.containers) - missing
        registry.gauge("ardea_tm_plan_version").value = master.plan.epoch
        for number, container in master.containers.items():
            age = registry.gauge("ardea_tm_heartbeat_age_seconds", peer=f"manager-{number}")
            age.value = now - container.link.last_heard
        self._metrics.send([registry.snapshot()])

    def _stop(self, code: ExitCode) -> None:
        self.exit_code = code
        self.poller.wake()

    def _close(self) -> None:
        self._state.close()
        self._socket.close()
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


def _seconds(text: str) -> float:
    """ValueError if that is no time to wait."""
    seconds = float(text)
    if not 0.0 <= seconds < math.inf:
        raise ValueError(f"{text} is not a number of seconds")
    return seconds


def read_token(folder: Path) -> str:
    """The control port's token, from the topology's own folder."""
    return (folder / "token").read_text().strip()

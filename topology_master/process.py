"""The topology master as a process: lease and term, one socket for managers and callers, one loop."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ardea import parent_link
from ardea.config import Settings
from ardea.errors import ExitCode
from ardea.metrics import Identity
from ardea.plan.definition import Definition
from ardea.plan.names import TOPOLOGY_MASTER
from ardea.protocol.addresses import tcp_address
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.wire_pb2 import ANSWER, ASK, REFUSED, SUMMARY, Ask, Header, Refusal
from ardea.snapshots.place import Files, files_at
from ardea.state import Fenced, Lease, Term, Unavailable, open_state
from ardea.state.records import MasterLocation, RunState
from ardea.topology_master.forgotten import ForgottenError, Memory
from ardea.topology_master.gauges import Gauges
from ardea.topology_master.heard import Heard
from ardea.topology_master.master import Master
from ardea.topology_master.sockets import Sockets
from ardea.topology_master.standby import Standby
from ardea.topology_master.state_store import StateStore
from ardea.topology_master.verbs import Verbs
from ardea.transport import peer_number
from ardea.versions import PROTOCOL, protocol_differs

LINGER_AFTER_END = 3.0
STANDBY_LOOKS_EVERY = 0.1
log = logging.getLogger(TOPOLOGY_MASTER)


class MasterProcess:
    """Wires one master; :meth:`run` returns the exit code."""

    _master: Master
    _heard: Heard
    _verbs: Verbs

    def __init__(
        self,
        definition: Definition,
        host: str,
        token: str,
        metrics: str,
        wanted: Callable[[], bool] = lambda: True,
        keys: Path | None = None,
    ) -> None:
        """Opens its sockets.

        ``wanted`` is asked when this process could become the master, and while the state manager does not know the
        topology, which it may make known to it.  False ends the process, and nothing was written.
        ``keys`` is the folder with the secret key of the master's container.
        """
        self.definition = definition
        self.exit_code: ExitCode | None = None
        self._token = token
        self._wanted = wanted
        self._name = os.environ.get("ARDEA_NAME", TOPOLOGY_MASTER)
        self._state = open_state(definition.state)
        self._lease: Lease | None = None
        self._sockets = Sockets(host, metrics, definition.keys, keys)
        self._gauges = Gauges(
            Identity(topology=definition.topology, container=0, process=self._name, life=parent_link.life())
        )
        self._next_second = 0.0
        self._over_since: float | None = None

    # --- becoming the master ----------------------------------------------------------------------------------

    def _stand_by(self) -> Lease | None:
        """Until the lease is this process's; None: it was told to stop before, or nobody wants a master."""
        next_beat = 0.0
        standby = Standby(self._state, self.definition.topology, self._location(term=0))
        while self.exit_code is None:
            if (now := time.monotonic()) >= next_beat:
                next_beat = now + 1.0
                parent_link.beat(in_user_code=False)
                self._sockets.tell_metrics(self._gauges.snapshot())
            if (lease := standby.attempt()) is not None:
                return lease
            if standby.unknown and not self._is_wanted():
                return None
            self._sockets.poller.wait(STANDBY_LOOKS_EVERY, lambda: self.exit_code is not None)
            for _ in self._sockets.receive():
                pass  # nobody who has business with a master knows this port
        return None

    def _is_wanted(self) -> bool:
        """The answer may take longer than the supervisor waits for a beat."""
        with parent_link.beating(in_user_code=False):
            return self._wanted()

    def _location(self, term: int) -> MasterLocation:
        supervisor = os.environ.get("ARDEA_SUPERVISOR_ID")
        holder = f"{supervisor}/{self._name}" if supervisor else ""
        host, port = self._sockets.host, self._sockets.port
        return MasterLocation(host=host, port=port, term=term, pid=os.getpid(), holder=holder, life=parent_link.life())

    def _take_term(self, above: int = 0) -> Term:
        holder = f"pid {os.getpid()} on {self._sockets.host}"
        return Term.take(self._state, self.definition.topology, holder, above)

    def _begin(self) -> Master:
        """A new term: takes it, says where it is, goes on from what is stored."""
        definition, topology = self.definition, self.definition.topology
        term = self._take_term()
        store = StateStore(self._state, topology, term, self._files)
        store.listens(self._location(term.number))
        present, former = store.plans(definition)
        return Master(
            present,
            former,
            term.number,
            store,
            self._sockets.transmit,
            found=store.found(),
            now=time.monotonic(),
        )

    def _files(self) -> Files:
        """The store of snapshots."""
        settings = Settings.of(self.definition.shape.config)
        return files_at(settings.snapshot_storage, self.definition.state, self.definition.topology)

    def _give_way(self, memory: Memory) -> None:
        """Writes down what a manager remembers, and ends: the next life acts in a term above all others."""
        log.error("the state manager has lost what it held; the next master goes on from what managers remember")
        parent_link.report("the state manager has lost what it held: the next master knows it from the managers")
        store = StateStore(self._state, self.definition.topology, self._take_term(memory.above), self._files)
        store.forget_timeline()
        found = store.found()
        corrected = memory.correct(found, self._master.admissions.definition)
        if corrected != found:
            store.execution(corrected)
        self.stop(ExitCode.TEMPORARY)

    @property
    def address(self) -> str:
        """Of its control port."""
        return tcp_address(self._sockets.host, self._sockets.port)

    @property
    def acting(self) -> bool:
        """Whether nobody else can be the master now; from any thread."""
        return self._lease is not None and self.exit_code is None and self._lease.expires_in > 0.0

    @property
    def silence(self) -> float:
        """Seconds since the state manager has answered; from any thread."""
        return self._state.silence

    # --- the loop ---------------------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Until the final state is stored and everybody knows it."""
        signal.signal(signal.SIGTERM, lambda *_: self.stop(ExitCode.TEMPORARY))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        lease = self._stand_by()
        if lease is None or not self._is_wanted():
            self._close()
            return self.exit_code or ExitCode.TEMPORARY
        self._master = self._begin()
        self._heard = Heard(time.monotonic(), time.time())
        acting = os.environ.get("POD_NAME", self._name)
        self._verbs = Verbs(self._master, self._heard, self._token, acting)
        self._lease = lease
        log.info("this master acts", extra={"term": self._master.term})
        if self._master.execution.state.final:
            self.stop(_code_of(self._master.execution.state))
        self._next_second = due = time.monotonic()
        while self.exit_code is None:
            due = self._turn(due, lease)
        if self.exit_code is ExitCode.OK:
            self._tell_metrics(time.monotonic(), last=True)
        self._close()
        return self.exit_code

    def _turn(self, due: float, lease: Lease) -> float:
        """One round: waits until ``due`` at most; returns when the next one is."""
        sockets = self._sockets
        sockets.poller.wait(min(1.0, max(0.0, due - time.monotonic())), lambda: self.exit_code is not None)
        now = time.monotonic()
        try:
            self._receive(now)
            due = min(self._master.tick(now), self._next_second)
        except Fenced as error:
            log.error("this master's term is over", extra={"reason": error.message})
            parent_link.report(f"this master's term is over: {error.message}")
            self.stop(ExitCode.TEMPORARY)
        if not self._still_holds(lease):
            log.error("the lease may be another's: this master ends")
            parent_link.report("the lease may be another's: no answer from the state manager for too long")
            self.stop(ExitCode.TEMPORARY)
        if now >= self._next_second:
            self._gauges.late(now - self._next_second)
            self._next_second = now + 1.0
            sockets.learn(self._master.admissions.definition.keys)
            parent_link.beat(in_user_code=False)
            self._heard.look(self._master.admissions.plan, now)
            self._tell_metrics(now)
        return min(due, self._end(now)) if self._master.over else due

    def _end(self, now: float) -> float:
        """Stops when everybody knows the final state, or has had the time; returns when to look again."""
        self._over_since = self._over_since or now
        heard = self._master.admissions.everybody_knows and not self._master.ended_saved  # its caller asks once more
        if heard or now - self._over_since > LINGER_AFTER_END:
            self.stop(_code_of(self._master.execution.state))
        return now + 0.05

    def _still_holds(self, lease: Lease) -> bool:
        """Cut off from the state for too long, another may act: then this one must not."""
        with contextlib.suppress(Unavailable):
            self._state.poll()
        return lease.expires_in > 0.0

    def _tell_metrics(self, now: float, *, last: bool = False) -> None:
        self._gauges.read(self._master, self._sockets.dropped, now)
        self._sockets.tell_metrics(self._gauges.snapshot(), last=last)

    # --- messages ---------------------------------------------------------------------------------------------

    def _receive(self, now: float) -> None:
        """All that has come, unless a manager remembers more than this master knows."""
        try:
            for identity, frames in self._sockets.receive():
                self._received(identity, frames, now)
        except ForgottenError as forgotten:
            self._give_way(forgotten.memory)

    def _received(self, identity: bytes, frames: list[bytes], now: float) -> None:
        """One message; anybody can reach the port, so that it may be anything."""
        try:
            header = checked(frames)
            if header.kind == SUMMARY:
                self._summary(identity, header.protocol, frames[1], now)
        except (MalformedError, msgspec.MsgspecError, UnicodeDecodeError):
            self._sockets.malformed += 1
            return
        if header.kind == ASK:
            answer = self._verbs.answer(Ask.FromString(frames[1]), header.protocol, now)
            self._sockets.answer(identity, Header(kind=ANSWER, protocol=PROTOCOL), answer)
        elif header.kind != SUMMARY and identity.startswith(b"m") and (number := peer_number(identity)) >= 0:
            self._sockets.hears(number, header.sender, identity)
            self._master.received(number, header, frames[1:], now)

    def _summary(self, identity: bytes, protocol: int, body: bytes, now: float) -> None:
        if why := protocol_differs("the topology master", "a metrics manager", protocol):
            refusal = Refusal(code="OTHER_VERSION", message=why, definite=True)
            self._sockets.answer(identity, Header(kind=REFUSED), refusal)
        else:
            self._heard.summary(body, now)

    # --- the end ----------------------------------------------------------------------------------------------

    def stop(self, code: ExitCode) -> None:
        """Ends with this code; from any thread."""
        self.exit_code = code
        self._sockets.poller.wake()

    def _close(self) -> None:
        self._state.close()
        self._sockets.close()


def _code_of(state: RunState) -> ExitCode:
    """A final state is an orderly end of the process, whatever it says of the topology."""
    return ExitCode.OK if state.final else ExitCode.TEMPORARY


def read_token(folder: Path) -> str:
    """The control port's token, from the topology's own folder."""
    return (folder / "token").read_text().strip()

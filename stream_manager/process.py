"""The stream manager as a process: sockets, the master's link, the plan on disk, one loop."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Container

from ardea import parent_link
from ardea.config import Settings
from ardea.errors import ExitCode
from ardea.metrics import Identity, Registry, frames_of, observe_process
from ardea.plan.definition import Definition
from ardea.plan.names import STREAM_MANAGER
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import Header, Plan
from ardea.state import MasterWatch, open_state
from ardea.stream_manager.container_setup import ContainerSetup, Remembered, check_open_files
from ardea.stream_manager.departure import Departure
from ardea.stream_manager.gauges import Gauges
from ardea.stream_manager.manager import HEARTBEAT_EVERY
from ardea.stream_manager.shell import Shell
from ardea.stream_manager.sockets import Sockets, ToMaster
from ardea.supervision import kernel
from ardea.transport import Dialled

log = logging.getLogger(STREAM_MANAGER)


class StreamManagerProcess:
    """Gives one manager's shell its sockets and its files; :meth:`run` returns the exit code."""

    def __init__(self, definition: Definition, setup: ContainerSetup) -> None:
        """TooFewFiles if its connections would not fit."""
        check_open_files(definition, setup.container, kernel.open_files())
        self.exit_code: ExitCode | None = None
        self._setup = setup
        self._keeps_plans = True
        self._interval = Settings.of(definition.shape.plan().config).metrics_interval
        self._holder, life = parent_link.holder(), parent_link.life()
        self._registry = Registry(
            Identity(topology=definition.topology, container=setup.container, process=STREAM_MANAGER, life=life)
        )
        observe_process(self._registry)
        self._lag = self._registry.histogram("ardea_process_loop_lag_seconds")
        self._gauges = Gauges(self._registry)
        known = setup.recall(self._holder)
        ports = {Lane.CONTROL: known.control_port, Lane.DATA: known.data_port} if known is not None else {}
        self.sockets = Sockets(setup, definition.keys, ports)
        self._metrics = self.sockets.dial_metrics(setup.metrics)
        self._master_watch = MasterWatch(open_state(definition.state), definition.topology)
        address = setup.host, self.sockets.ports[Lane.DATA], self.sockets.ports[Lane.CONTROL]
        self.shell = Shell(self, definition, setup.container, self._holder, life, address)
        self._departure = Departure(setup.folder, self.shell)
        self._next_second = self._next_metrics = time.monotonic()
        if known is not None:
            self.shell.recall(known.admission, Plan.FromString(known.plan))

    # --- the loop ---------------------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Until the topology ends, the process is told to stop, or another holder has its place."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop(ExitCode.TEMPORARY))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        due = self._next_second
        while self.exit_code is None:
            due = self.turn(due)
        if self.exit_code is ExitCode.OK:  # else the metrics manager may have gone first, and this would wait for it
            self._tell_metrics(time.monotonic(), last=True)
        self.close()
        return self.exit_code

    def turn(self, due: float) -> float:
        """One round: takes what comes until ``due``, or in a second; returns when to be called again."""
        pause = min(1.0, max(0.0, due - time.monotonic()))
        ready = self.sockets.poller.wait(pause, lambda: self.exit_code is not None)
        now = time.monotonic()
        if any(isinstance(endpoint, Dialled) for endpoint in ready):
            self.shell.listen(now)
        self.sockets.receive(ready, now, self.shell.received)
        due = self.shell.tick(now, second=now >= self._next_second)
        if self.shell.over:
            self._stop(ExitCode.OK)
        if now >= self._next_second:
            self._lag.observe(now - self._next_second)
            self._next_second = now + HEARTBEAT_EVERY
            parent_link.beat(in_user_code=False)
        if now >= self._next_metrics:
            self._next_metrics = now + self._interval
            self._tell_metrics(now)
        return min(due, self._next_second, self._next_metrics, self._departure.look(now))

    def _tell_metrics(self, now: float, *, last: bool = False) -> None:
        if self.shell.manager is not None:
            self._gauges.read(self.shell.manager, now)
        heard = not self.shell.registrar.alone
        self._registry.gauge("ardea_stmgr_connections", peer_kind="master").value = int(heard)
        self._registry.counter("ardea_process_malformed_messages_total").value = self.malformed
        self._metrics.send(frames_of(self._registry.snapshot(), last=last))

    @property
    def malformed(self) -> int:
        """Messages that were dropped: no message, or not their sender's to send."""
        shell = self.shell
        unfit = 0 if shell.manager is None else shell.manager.statistics.malformed
        return self.sockets.malformed + shell.malformed + shell.registrar.malformed + unfit

    # --- what the shell asks for ------------------------------------------------------------------------------

    def look(self) -> MasterWatch:
        """See :class:`Outside`, as for all of these."""
        return self._master_watch.look()

    def dial(self, address: str) -> ToMaster:
        """A connection to a master."""
        return self.sockets.dial_master(address)

    def heard(self, link: Link, header: Header, source: bytes) -> None:
        """An instance is answered where it called from."""
        manager = self.shell.manager
        if manager is not None and manager.members.instances.get(link.key) is link:
            self.sockets.callers.hears(link.key, header.sender, source)

    def transmit(self, link: Link, lane: Lane, message: Message) -> None:
        """To an instance or another manager."""
        manager = self.shell.manager
        assert manager is not None
        if manager.members.instances.get(link.key) is link:
            self.sockets.to_instance(link, lane, message)
        else:
            self.sockets.to_manager(link, lane, message)

    def reach(self, plan: Plan) -> None:
        """Lets in, and dials, whoever is new."""
        self.sockets.reach(plan)

    def leave(self, others: Container[int]) -> None:
        """Hangs up on whoever is gone."""
        self.sockets.leave(others)

    def remember(self, admission: int, plan: Plan) -> bool:
        """No instance may work by a plan that its manager could forget."""
        ports = self.sockets.ports
        known = Remembered(self._holder, admission, ports[Lane.DATA], ports[Lane.CONTROL], plan.SerializeToString())
        try:
            self._setup.remember(known)
        except OSError as error:
            if self._keeps_plans:
                log.error(
                    "the plan cannot be kept for this manager's next life: %s; it is tried again each second, and an "
                    "update waits for that.  If the disk is full, make room",
                    error,
                )
            self._keeps_plans = False
            return False
        self._keeps_plans = True
        log.info("plan received", extra={"epoch": plan.epoch, "admission": admission, "life": parent_link.life()})
        return True

    # --- the end ----------------------------------------------------------------------------------------------

    def _stop(self, code: ExitCode) -> None:
        self.exit_code = code
        self.sockets.poller.wake()

    def close(self) -> None:
        """Leaves the master, if the topology goes on, and closes all sockets."""
        self.sockets.close()
        self._metrics.close()
        if self.exit_code is not ExitCode.OK:
            self.shell.registrar.leave()  # with a topology that is over the master ends too, and would be waited for
        self.shell.registrar.close()
        self.sockets.destroy()

"""The metrics manager as a process: snapshots in over ipc, /metrics out, a summary to the master each second."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from pathlib import Path

from ardea import leash
from ardea.config import Settings
from ardea.errors import ExitCode, StateError, refused
from ardea.metrics import Identity
from ardea.metrics_manager.server import MetricsManager
from ardea.metrics_manager.sinks import load_sinks
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER, METRICS_MANAGER
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.wire_pb2 import REFUSED, SUMMARY, Header, Refusal
from ardea.state import Sight, Versioned, open_state, paths
from ardea.state.records import Incarnations, decode
from ardea.supervision import records
from ardea.transport import LINGER_MS, Bound, Dialled, Keyring, Poller, caller, context, holder
from ardea.versions import PROTOCOL

LOOK_EVERY = 0.5
END_LOOK_EVERY = 0.05
"""The same once the topology is over, and the least between two looks that snapshots bring about."""
LAST_WORD_MS = 50
"""For the last summary, to a master that may have ended."""
LAST_SNAPSHOTS = 5.0
"""Seconds that the other processes of the container have to end then."""
SILENT = 60.0
"""Seconds without a snapshot after which a process is no longer exported, unless snapshots are rare."""


class MetricsManagerProcess:
    """Wires one metrics manager; ``PORT`` is written to ``metrics.port`` in the container's folder."""

    def __init__(
        self, definition: Definition, container: int, folder: Path, address: str, host: str, keys: Path | None = None
    ) -> None:
        """``keys`` is the folder with the secret key of the container."""
        settings = Settings.of(definition.shape.config)
        self._interval = settings.metrics_interval
        self.exit_code: ExitCode | None = None
        identity = Identity(
            topology=definition.topology, container=container, process=METRICS_MANAGER, life=leash.life()
        )
        places = {"topology": definition.topology, "container": str(container), "folder": str(folder.absolute())}
        sinks = load_sinks(settings.metrics_sinks or {}, places)
        self.manager = MetricsManager(identity, sinks, expiry=max(SILENT, 3 * self._interval))
        port = self.manager.serve(settings.metrics_port and settings.metrics_port + container, host)
        self._folder = folder
        (folder / "metrics.port").write_text(f"{port}\n")
        self._state = open_state(definition.state)
        self._sight = Sight(self._state, definition.topology)
        self._container, self._holder = container, leash.holder()
        # Masters are admitted by nobody; 0: it is not known yet.
        self._admission = 1 if container == MASTER_CONTAINER else 0
        self._incarnations = paths.incarnations(definition.topology)
        if container != MASTER_CONTAINER:
            self._state.watch(self._incarnations, self._found_admissions)
        self._context = context()
        self.poller = Poller()
        self._socket = Bound(self._context)
        self._socket.bind(address)
        self.poller.watch(self._socket)
        self._identity = caller("x", container)
        self._keys = Keyring.read(keys, definition.keys)
        self._master: Dialled | None = None
        self._over_since: float | None = None
        self._alone = False
        self._due = self._flush_at = self._looked = 0.0
        self._look_at = math.inf
        self._name = os.environ.get("ARDEA_NAME", "")  # as the supervisor calls it

    def run(self) -> ExitCode:
        """Until the topology is over, or the process is told to stop."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop(ExitCode.TEMPORARY))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._due = due = time.monotonic()
        while self.exit_code is None:
            self.poller.wait(max(0.0, due - time.monotonic()), lambda: self.exit_code is not None)
            due = self._turn(time.monotonic())
        self._receive(time.monotonic())
        self.manager.flush(time.monotonic(), time.time())
        self._tell_master()
        self._leave_summary()
        self._close()
        return self.exit_code

    def _turn(self, now: float) -> float:
        """What has come, and what is due; returns when there is more to do."""
        if self._receive(now):  # a last snapshot may bring the news that the topology is over
            self._look_at = min(self._look_at, max(now, self._looked + END_LOOK_EVERY))
        if now >= self._due:
            self.manager.late(now - self._due)
            self.manager.dropped(self._socket.statistics.malformed)
            self._due = now + min(self._interval, LOOK_EVERY)
            leash.beat(in_user_code=False)
            if now >= self._flush_at:
                self._flush_at = now + self._interval
                self.manager.flush(now, time.time())
            self.manager.expire(now)
            self._tell_master()
            self._look_at = now
        if now >= self._look_at:
            self._looked, self._look_at = now, math.inf
            if self._sight.look().final:
                self._look_at = now + END_LOOK_EVERY
                if self._over(now):
                    self._stop(ExitCode.OK)
        return min(self._due, self._look_at)

    def _leave_summary(self) -> None:
        """The master may be gone by now: whoever runs the topology adds the final counts up from these."""
        new = self._folder / "metrics.summary.new"
        with contextlib.suppress(OSError):  # a full disk costs the final counts only
            new.write_bytes(self.manager.summary(self._admission))
            new.rename(new.with_suffix(""))

    def _receive(self, now: float) -> bool:
        """Takes the snapshots that wait; False: there were none."""
        taken = 0
        for _, frames in self._socket.receive(1024):
            self.manager.accept(frames[0], now)
            taken += 1
        return taken > 0

    def _over(self, now: float) -> bool:
        """Whether every process has sent its last snapshot: all had ended at the look before, or will not end."""
        self._over_since = self._over_since or now
        if self._alone or now - self._over_since >= LAST_SNAPSHOTS:
            return True
        self._alone = records.is_last(self._folder, self._name)
        return False

    def _tell_master(self) -> None:
        """Cumulative, so that a lost one heals with the next.

        Only once this container's admission is known: the master orders by it what pods have counted in one place.

        Raises:
            OtherVersion: the master has refused the last one.
        """
        if (location := self._sight.master) is None or not self._admission:
            return
        address = f"tcp://{location.host}:{location.port}"
        if self._master is None or self._master.address != address:
            if self._master is not None:
                self._master.close()
            self._master = Dialled(self._context, self._identity, address, self._keys, holder(MASTER_CONTAINER))
        head = Header(kind=SUMMARY, protocol=PROTOCOL).SerializeToString()
        self._master.send([head, self.manager.summary(self._admission)])
        for frames in self._master.receive(16):
            try:
                if checked(frames).kind == REFUSED:
                    refusal = Refusal.FromString(frames[1])
                    raise refused(refusal.code, refusal.message)
            except MalformedError:
                self._socket.statistics.malformed += 1

    def _found_admissions(self, node: Versioned | None) -> None:
        if node is None:
            return
        with contextlib.suppress(StateError):
            known = decode(node.data, Incarnations, self._incarnations).containers.get(self._container)
            if known is not None and known.holder == self._holder:
                self._admission = known.admission

    def _stop(self, code: ExitCode) -> None:
        self.exit_code = code
        self.poller.wake()

    def _close(self) -> None:
        if self._master is not None:
            self._master.close(LAST_WORD_MS if self._sight.final else LINGER_MS)  # it may have ended first
        self._socket.close()
        self._state.close()
        self.manager.close()
        self._context.destroy(linger=1000)

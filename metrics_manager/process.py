"""The metrics manager as a process: snapshots in over ipc, /metrics out, a summary to the master each second."""

from __future__ import annotations

import math
import os
import signal
import time
from pathlib import Path

from ardea import parent_link
from ardea.config import Settings
from ardea.errors import ExitCode
from ardea.metrics import Identity, is_last
from ardea.metrics_manager.last_scrape import LastScrape
from ardea.metrics_manager.readiness import Readiness
from ardea.metrics_manager.server import MetricsManager
from ardea.metrics_manager.sinks import load_sinks
from ardea.metrics_manager.summaries import Summaries
from ardea.metrics_manager.supervised import Supervised
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER, METRICS_MANAGER
from ardea.state import MasterWatch, open_state, paths
from ardea.supervision import records
from ardea.transport import Bound, Keyring, Poller, context

LOOK_EVERY = 0.5
END_LOOK_EVERY = 0.05
"""The same once the topology is over, and the least between two looks that last snapshots bring about."""
LAST_SNAPSHOTS = 5.0
"""Seconds that the other processes of the container have to end then."""
SILENT = 60.0
"""Seconds without a snapshot after which a process is no longer exported, unless snapshots are rare."""


class LastSnapshots:
    """Once the topology is over, says when the other processes of a container have sent their last."""

    def __init__(self, folder: Path) -> None:
        """``folder``: the container's."""
        self._folder = folder
        self._name = os.environ.get("ARDEA_NAME", "")  # as the supervisor calls this process
        self._over_since: float | None = None
        self._alone = False

    def are_here(self, now: float) -> bool:
        """All had ended at the look before, or will not end."""
        self._over_since = self._over_since or now
        if self._alone or now - self._over_since >= LAST_SNAPSHOTS:
            return True
        self._alone = records.is_last(self._folder, self._name)
        return False


class MetricsManagerProcess:
    """Wires one metrics manager; ``PORT`` is written to ``metrics.port`` in the container's folder."""

    def __init__(
        self,
        definition: Definition,
        container: int,
        folder: Path,
        address: str,
        host: str,
        keys: Path | None = None,
        last_scrape: float | None = None,
    ) -> None:
        """Binds its sockets.

        Args:
            definition: of the topology.
            container: its number.
            folder: where its files lie.  Its supervisor keeps the whole container, or this process alone, in a pod.
            address: where snapshots come to.
            host: the interface of ``/metrics``.
            keys: the folder with the secret key of the container.
            last_scrape: it stays until those who scrape it have read the final state that its master has told, for so
                many seconds at most; None: it waits for nobody.
        """
        settings = Settings.of(definition.shape.config)
        self.exit_code: ExitCode | None = None
        self._interval = settings.metrics_interval
        self._folder = folder
        identity = Identity(
            topology=definition.topology, container=container, process=METRICS_MANAGER, life=parent_link.life()
        )
        sinks = load_sinks(settings.metrics_sinks or {}, _places(definition.topology, container, folder))
        supervised = Supervised(folder.parent if folder.name == METRICS_MANAGER else folder, container)
        expiry = max(SILENT, 3 * self._interval)
        self.manager = MetricsManager(identity, sinks, supervised, expiry=expiry)
        self._last = self._last_word(last_scrape)
        self._state = open_state(definition.state)
        self.manager.observe_state(self._state)
        ready = Readiness(supervised, (lambda: self._state.silence) if container == MASTER_CONTAINER else None)
        port = self.manager.serve(settings.metrics_port and settings.metrics_port + container, host, ready.why_not)
        (folder / "metrics.port").write_text(f"{port}\n")
        self._master_watch = MasterWatch(self._state, definition.topology)
        self._context = context()
        self.poller = Poller()
        self._socket = Bound(self._context)
        self._socket.bind(address)
        self.poller.watch(self._socket)
        secret = Keyring.read(keys, definition.keys)
        self._summaries = Summaries(
            self.manager, self._state, self._master_watch, definition.topology, container, self._context, secret
        )
        self._due = self._flush_at = self._looked = 0.0
        self._look_at = math.inf

    def _last_word(self, last_scrape: float | None) -> LastSnapshots | LastScrape:
        last = LastSnapshots(self._folder)
        if last_scrape is None:
            return last
        manager = self.manager
        return LastScrape(
            manager.scrapers, lambda: manager.final_state, last.are_here, patience=last_scrape, begun=time.monotonic()
        )

    def run(self) -> ExitCode:
        """Until the topology is over, or the process is told to stop."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop(ExitCode.TEMPORARY))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._due = due = time.monotonic()
        while self.exit_code is None:
            self.poller.wait(max(0.0, due - time.monotonic()), lambda: self.exit_code is not None)
            due = self.turn(time.monotonic())
        self._receive(time.monotonic())
        self.manager.flush(time.monotonic(), time.time())
        self._summaries.tell_master()
        self._summaries.leave(self._folder)
        self.close()
        return self.exit_code

    def turn(self, now: float) -> float:
        """What has come, and what is due; returns when there is more to do."""
        if self._receive(now):  # the topology may be over
            self._look_at = min(self._look_at, max(now, self._looked + END_LOOK_EVERY))
        if now >= self._due:
            self.manager.late(now - self._due)
            self.manager.dropped(self.malformed)
            self._due = now + min(self._interval, LOOK_EVERY)
            parent_link.beat(in_user_code=False)
            if now >= self._flush_at:
                self._flush_at = now + self._interval
                self.manager.flush(now, time.time())
            if self.manager.final_state is None:  # what was told last stays for who comes for it
                self.manager.expire(now)
            self._summaries.tell_master()
            self._look_at = now
        if now >= self._look_at:
            self._looked, self._look_at = now, math.inf
            if self._master_watch.look().final or self.manager.final_state is not None:
                self._look_at = now + END_LOOK_EVERY
                if self._last.are_here(now):
                    self._stop(ExitCode.OK)
        return min(self._due, self._look_at)

    @property
    def malformed(self) -> int:
        """Messages that were dropped."""
        return self._socket.statistics.malformed + self._summaries.malformed

    def _receive(self, now: float) -> bool:
        """Takes the snapshots that wait; whether one of them is the last of a process that ends."""
        last = False
        for _, frames in self._socket.receive(1024):
            self.manager.accept(frames[0], now)
            last |= is_last(frames)
        return last

    def _stop(self, code: ExitCode) -> None:
        self.exit_code = code
        self.poller.wake()

    def close(self) -> None:
        """Sends what waits, and stops serving."""
        self._summaries.close()
        self._socket.close()
        self._state.close()
        self.manager.close()
        self._context.destroy(linger=1000)


def _places(topology_id: str, container: int, folder: Path) -> dict[str, str]:
    """What stands for a name in braces in the configuration of a sink."""
    return {
        "topology": paths.name_of(topology_id),
        "topology_id": topology_id,
        "container": str(container),
        "folder": str(folder.absolute()),
    }

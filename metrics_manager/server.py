"""The metrics manager of one container, without its sockets: ``__main__`` brings snapshots and the clock."""

from __future__ import annotations

import logging
import platform
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from ardea import __version__
from ardea.metrics import Identity, Registry, observe_process
from ardea.metrics.sinks import Sample
from ardea.metrics_manager.last_scrape import Scrapers
from ardea.metrics_manager.metrics_state import MetricsState, Result
from ardea.metrics_manager.prometheus import MetricsServer
from ardea.metrics_manager.sinks import Batch, SinkStatistics, SinkWorker
from ardea.metrics_manager.supervised import Supervised
from ardea.state import StateManager
from ardea.state.records import RunState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Snapshots by result, processes exported, and each sink."""

    snapshots: dict[str, int]
    processes: int
    sinks: dict[str, SinkStatistics]


class MetricsManager:
    """Collects snapshots; serves Prometheus, feeds sinks, sums up for the master.

    ``accept``, ``expire``, ``flush`` and ``summary`` never wait for a reader or a sink.
    """

    def __init__(
        self,
        identity: Identity,
        sinks: Sequence[SinkWorker] = (),
        supervised: Supervised | None = None,
        *,
        expiry: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts nothing.

        Args:
            identity: of this process; its container is the one it speaks for.
            sinks: from ``load_sinks``; closed by :meth:`close`.
            supervised: what the supervisors of its container say; None: nothing.
            expiry: seconds of silence after which a process' series go.
            clock: seconds, steady; measures flushes.
        """
        self._identity, self._supervised = identity, supervised
        self._sinks = {worker.name: worker for worker in sinks}
        self._clock = clock
        self._exported_lives: set[str] = set()
        self._state = MetricsState(expiry)
        self._lock = threading.Lock()  # scrapes come in threads of their own
        self.scrapers = Scrapers()
        self._server: MetricsServer | None = None
        self._registry = Registry(identity)
        observe_process(self._registry)
        self._registry.gauge("ardea_build_info", version=__version__, python=platform.python_version()).value = 1
        self._lag = self._registry.histogram("ardea_process_loop_lag_seconds")
        self._flushes = self._registry.histogram("ardea_metrics_manager_flush_duration_seconds")
        self._malformed = self._registry.counter("ardea_process_malformed_messages_total")
        self._results = {
            result: self._registry.counter("ardea_metrics_manager_snapshots_total", result=result) for result in Result
        }
        for worker in sinks:
            live = worker.statistics()
            for field, name in (
                ("errors", "ardea_metrics_manager_sink_errors_total"),
                ("dropped", "ardea_metrics_manager_sink_dropped_total"),
            ):
                self._registry.counter(name, partial(getattr, live, field), sink=worker.name)

    def accept(self, snapshot: bytes, now: float) -> None:
        """Takes a process' snapshot; a malformed or outdated one is counted, logged and left.

        Args:
            snapshot: from ``Registry.snapshot()``.
            now: seconds, steady.
        """
        with self._lock:
            result = self._state.accept(snapshot, now)
        self._results[result].value += 1
        if result is Result.INVALID:
            _log.warning("metrics snapshot unreadable; it is ignored", extra={"bytes": len(snapshot)})

    def observe_state(self, state: StateManager) -> None:
        """Exports for how long the state manager, which the caller polls, has been silent."""
        self._registry.gauge("ardea_state_silence_seconds", lambda: state.silence)

    @property
    def final_state(self) -> RunState | None:
        """The topology's, as the master of this container has told it; None: not yet, or there is no master here."""
        with self._lock:
            return self._state.final_state

    def dropped(self, total: int) -> None:
        """How many messages were not even framed as one."""
        self._malformed.value = total

    def late(self, seconds: float) -> None:
        """How late the loop that owns this came to its timer."""
        self._lag.observe(seconds)

    def expire(self, now: float) -> None:
        """Stops exporting processes that have been silent for too long."""
        with self._lock:
            gone = self._state.expire(now)
        for who in gone:
            _log.info("metrics of a silent process removed", extra={"identity": who.process, "task": who.task})

    def flush(self, now: float, timestamp: float) -> None:
        """Takes this process' own snapshot and hands everything to the sinks.  To be called at start and regularly.

        Args:
            now: seconds, steady.
            timestamp: seconds since 1970.
        """
        begun = self._clock()
        self._export_lives()
        self.accept(self._registry.snapshot(), now)
        if self._sinks:
            batch = Batch(timestamp, self.samples())
            for worker in self._sinks.values():
                worker.offer(batch)
        self._flushes.observe(self._clock() - begun)

    def _export_lives(self) -> None:
        rows = self._supervised.rows() if self._supervised is not None else []
        lives = {row.name: row.life for row in rows}
        for gone in self._exported_lives - lives.keys():
            self._registry.remove_gauge("ardea_process_life", process=gone)
        for name, life in lives.items():
            self._registry.gauge("ardea_process_life", process=name).value = life
        self._exported_lives = set(lives)

    def serve(self, port: int, host: str = "127.0.0.1", why_not_ready: Callable[[], Sequence[str]] = tuple) -> int:
        """Serves ``/metrics``, ``/healthz`` and ``/readyz`` from a thread.

        Args:
            port: 0 picks a free one.
            host: the interface.
            why_not_ready: what ``/readyz`` says: a line for each reason.

        Returns:
            The port.

        Raises:
            ClusterError: the port cannot be bound.
        """
        self._server = MetricsServer(self.samples, self.scrapers, port, host, why_not_ready)
        return self._server.port

    def samples(self) -> list[Sample]:
        """What is exported now; safe in any thread."""
        with self._lock:
            return self._state.samples()

    def summary(self, admission: int, holder: str = "") -> bytes:
        """For the master's ``Overview.accept``.

        Args:
            admission: the one that this container holds.
            holder: who keeps this container.
        """
        with self._lock:
            summary = self._state.summary(self._identity.container, admission)
        rows = self._supervised.rows() if self._supervised is not None else []
        return msgspec.msgpack.encode(msgspec.structs.replace(summary, holder=holder, supervised=rows))

    def statistics(self) -> Statistics:
        """For logs and tests."""
        return Statistics(
            {str(result): int(counter.value) for result, counter in self._results.items()},
            self._state.exported,
            {name: worker.statistics() for name, worker in self._sinks.items()},
        )

    def close(self, timeout: float = 2.0) -> None:
        """Stops serving, lets sinks write what they have for at most ``timeout`` seconds in all."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for worker in self._sinks.values():
            worker.finish()
        deadline = self._clock() + timeout
        for worker in self._sinks.values():
            if not worker.join(max(0.0, deadline - self._clock())):
                _log.warning("metrics sink hangs; it is abandoned", extra={"sink": worker.name})

"""What a real Prometheus makes of ``/metrics``: types, rates, quantiles, and counters over a new life."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ardea.metrics import Identity, Registry
from ardea.metrics_manager.server import MetricsManager
from tests.process.metrics_manager.prometheus import Prometheus, local

pytestmark = pytest.mark.prometheus

ACKED = "ardea_instance_tuples_acked_total"


class Load:
    """A thread that counts a thousand tuples in each tenth of a second and sends snapshots; lives can end."""

    def __init__(self, manager: MetricsManager) -> None:
        self._manager = manager
        self._stop = threading.Event()
        self._restart = threading.Event()
        self.counted = 0
        self.life = 1
        self._thread = threading.Thread(target=self._run, name="load")
        self._thread.start()

    def restart(self) -> None:
        self._restart.set()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        registry, begun = self._new(), time.monotonic()
        while not self._stop.wait(0.1):
            if self._restart.is_set():
                self._restart.clear()
                self.life += 1
                registry = self._new()
            registry.counter(ACKED).value += 1000
            self.counted += 1000
            latency = registry.histogram("ardea_spout_complete_latency_seconds")
            latency.observe(0.003, 980)
            latency.observe(0.3, 20)
            registry.gauge("ardea_spout_pending_tuples").value = 42
            now = time.monotonic() - begun
            self._manager.accept(registry.snapshot(), now)
            self._manager.flush(now, time.time())

    def _new(self) -> Registry:
        return Registry(Identity("words-1", 1, "heron_instance", "lines", 1, self.life))


@pytest.fixture
def manager() -> Iterator[MetricsManager]:
    manager = MetricsManager(Identity("words-1", 1, "metrics_manager"))
    yield manager
    manager.close()


@pytest.fixture
def load(manager: MetricsManager) -> Iterator[Load]:
    load = Load(manager)
    yield load
    load.close()


@pytest.fixture
def prometheus(manager: MetricsManager, prometheus_binary: Path, tmp_path: Path) -> Iterator[Prometheus]:
    server = Prometheus(prometheus_binary, tmp_path, local(manager.serve(0)))
    yield server
    server.close()


def test_prometheus_reads_types_rates_quantiles_and_a_new_life(load: Load, prometheus: Prometheus):
    pending = prometheus.wait("ardea_spout_pending_tuples", lambda answer: list(answer.values()) == [42])
    assert list(pending) == [("lines", "1", "1", "words", "words-1")], "component, container, task, topology, its id"
    metadata = prometheus.get("metadata")
    assert metadata[ACKED.removesuffix("_total")][0]["type"] == "counter"
    assert metadata["ardea_spout_complete_latency_seconds"][0]["type"] == "histogram"
    assert metadata["ardea_spout_pending_tuples"][0]["help"] == "Open trees and rows waiting to be sent again."

    # At most a thousand tuples a tenth of a second; more where one of the first two scrapes was answered late.
    prometheus.wait(f"rate({ACKED}[5s])", lambda answer: any(0 < value <= 11_000 for value in answer.values()))

    def p(quantile: float) -> float:
        query = f"histogram_quantile({quantile}, sum by (le) (rate(ardea_spout_complete_latency_seconds_bucket[1m])))"
        return next(iter(prometheus.wait(query, lambda a: a and not math.isnan(next(iter(a.values())))).values()))

    assert 0.002 < p(0.5) <= 0.005
    assert 0.2 < p(0.99) <= 0.5

    before = load.counted
    load.restart()
    prometheus.wait(ACKED, lambda answer: any(value > before + 3000 for value in answer.values()))
    assert load.life == 2
    assert list(prometheus.ask(f"resets({ACKED}[10m])").values()) == [0], "a counter fell over the new life"
    assert list(prometheus.ask("resets(ardea_spout_complete_latency_seconds_count[10m])").values()) == [0]

    answer = prometheus.wait(
        'ardea_process_resident_memory_bytes{process="metrics_manager"}', lambda answer: bool(answer)
    )
    assert next(iter(answer.values())) > 1e6
    prometheus.wait("up", lambda answer: list(answer.values()) == [1])  # a scrape has half a second

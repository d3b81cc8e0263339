"""The sinks of a metrics manager (``ardea.metrics.sinks``) at work.

Each has its own bounded queue and thread, so that a slow or failing one delays neither the others nor the
topology.  Values are cumulative: a batch that was dropped costs resolution, not correctness.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ardea.errors import ConfigError
from ardea.metrics.sinks import MetricsSink, Sample, make_sink

if TYPE_CHECKING:
    from tenacity.wait import wait_base

CAPACITY = 8
"""Batches that wait for a sink; then the oldest is dropped."""

_log = logging.getLogger(__name__)


class Batch(NamedTuple):
    """Samples of one moment; ``timestamp`` in seconds since 1970."""

    timestamp: float
    samples: Sequence[Sample]


@dataclass(slots=True)
class SinkStatistics:
    """Counters of batches; ``queued`` is now, ``state`` one of opening, open, failing, closed."""

    written: int = 0
    dropped: int = 0
    errors: int = 0
    queued: int = 0
    capacity: int = CAPACITY
    state: str = "opening"


class SinkWorker:
    """One sink with its queue and thread."""

    def __init__(self, name: str, sink: MetricsSink, *, wait: wait_base | None = None) -> None:
        """Starts the thread.

        Args:
            name: for logs and the label ``sink``.
            sink: not yet open.
            wait: pause before another try; default 0.5 s, doubling up to 30 s, with jitter.
        """
        import tenacity  # with asyncio, 3 MB that a manager without sinks does without

        self.name = name
        self._sink = sink
        self._queue: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._statistics = SinkStatistics()
        self._retrying = tenacity.Retrying(
            wait=wait or tenacity.wait_exponential(multiplier=0.5, max=30) + tenacity.wait_random(0, 0.5),
            stop=tenacity.stop_when_event_set(self._stop),
            sleep=tenacity.sleep_using_event(self._stop),
            retry=tenacity.retry_if_exception_type(BaseException),  # a client's own, too: the thread would end by it
            reraise=True,
        )
        self._thread = threading.Thread(target=self._run, name=f"metrics-sink-{name}", daemon=True)
        self._thread.start()

    def offer(self, batch: Batch) -> None:
        """Queues a batch without waiting; a full queue loses its oldest one."""
        while self._queue.qsize() >= CAPACITY:
            self._drop_oldest()
        self._queue.put(batch)

    def statistics(self) -> SinkStatistics:
        """The counters; live."""
        self._statistics.queued = self._queue.qsize()
        return self._statistics

    def finish(self) -> None:
        """Asks the thread to write what is queued and to end; :meth:`join` waits for that."""
        self._queue.put(None)  # beyond the capacity, so that it costs no batch

    def join(self, timeout: float) -> bool:
        """Waits ``timeout`` seconds for the end, then gives up retries.

        Returns:
            Whether the sink is closed.  One that hangs in ``write`` is left to its daemon thread.
        """
        self._thread.join(timeout)
        self._stop.set()
        self._thread.join(0.2)
        return not self._thread.is_alive()

    def _drop_oldest(self) -> None:
        try:
            self._queue.get_nowait()
        except queue.Empty:
            return  # the thread was quicker
        self._statistics.dropped += 1

    def _run(self) -> None:
        while not self._stop.is_set() and (batch := self._queue.get()) is not None:
            try:
                self._retrying(self._deliver, batch)
            except BaseException:
                self._statistics.dropped += 1  # asked to end between two tries
                break
        self._close()
        self._statistics.state = "closed"

    def _deliver(self, batch: Batch) -> None:
        try:
            if self._statistics.state != "open":
                self._sink.open()
                self._statistics.state = "open"
            self._sink.write(*batch)
        except BaseException as error:
            self._statistics.errors += 1
            self._statistics.state = "failing"
            _log.warning(
                "metrics sink failed; it is opened again after a pause", extra={"sink": self.name, "error": repr(error)}
            )
            self._close()
            raise
        self._statistics.written += 1

    def _close(self) -> None:
        try:
            self._sink.close()
        except BaseException as error:
            _log.warning("metrics sink did not close", extra={"sink": self.name, "error": repr(error)})


def load_sinks(configs: Mapping[str, Mapping[str, Any]], places: Mapping[str, str]) -> list[SinkWorker]:
    """Starts the sinks that a configuration names.  One that cannot be made is logged and left out.

    Args:
        configs: as in :func:`check_sinks`.
        places: name → text; ``{name}`` in a text of a configuration stands for it.
    """
    workers = []
    for name, config in configs.items():
        try:
            workers.append(SinkWorker(name, make_sink(name, _placed(config, places))))
        except ConfigError as error:  # what was checked at submit, on another machine
            _log.error(
                "metrics sink left out; /metrics and other sinks go on", extra={"sink": name, "error": error.message}
            )
    return workers


def _placed(config: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    placed = dict(config)
    for key, value in config.items():
        for name, text in places.items():
            if isinstance(value, str):
                value = value.replace(f"{{{name}}}", text)
        placed[key] = value
    return placed

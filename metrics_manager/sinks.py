"""Further receivers of metrics: entry points of the group ``ardea.metrics_sinks``.

Each has its own bounded queue and thread, so that a slow or failing one delays neither the others nor the
topology.  Values are cumulative: a batch that was dropped costs resolution, not correctness.
"""

from __future__ import annotations

import difflib
import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import structlog
import tenacity
from tenacity.wait import wait_base

from ardea.errors import ConfigError
from ardea.metrics_manager.state import Sample

GROUP = "ardea.metrics_sinks"
CAPACITY = 8
"""Batches that wait for a sink; then the oldest is dropped."""

_log = structlog.get_logger(__name__)
_Config = TypeVar("_Config", bound=msgspec.Struct)


class MetricsSink(Protocol):
    """What the author of a sink writes.  All calls but the first come from one thread, which is the sink's own.

    Whatever ``open`` or ``write`` raises is counted and logged; the sink is closed and, after a while, opened
    again and given the same batch.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Checks the configuration, and raises ConfigError: at submit, too.  Opens nothing yet."""
        ...

    def open(self) -> None:
        """Gets ready: connects, opens files."""
        ...

    def write(self, timestamp: float, samples: Sequence[Sample]) -> None:
        """Writes a batch taken at ``timestamp`` (seconds since 1970)."""
        ...

    def close(self) -> None:
        """Frees everything; also called after a failed ``open``."""
        ...


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
        self.name = name
        self._sink = sink
        self._queue: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._statistics = SinkStatistics()
        self._retrying = tenacity.Retrying(
            wait=wait or tenacity.wait_exponential(multiplier=0.5, max=30) + tenacity.wait_random(0, 0.5),
            stop=tenacity.stop_when_event_set(self._stop),
            sleep=tenacity.sleep_using_event(self._stop),
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
            except Exception:
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
        except Exception as error:
            self._statistics.errors += 1
            self._statistics.state = "failing"
            _log.warning("metrics sink failed; it is opened again after a pause", sink=self.name, error=repr(error))
            self._close()
            raise
        self._statistics.written += 1

    def _close(self) -> None:
        try:
            self._sink.close()
        except Exception as error:
            _log.warning("metrics sink did not close", sink=self.name, error=repr(error))


def check_sinks(configs: Mapping[str, Mapping[str, Any]]) -> None:
    """What a submit, or an update, does with the sinks that are asked for; none is opened.

    Args:
        configs: sink's name → its configuration, as in ``heron.metricsmgr.sinks``.

    Raises:
        ConfigError: no installed package offers a sink of that name, its code cannot be loaded, or it refuses its
            configuration.
    """
    for name, config in configs.items():
        _make(name, config)


def load_sinks(configs: Mapping[str, Mapping[str, Any]], places: Mapping[str, str]) -> list[SinkWorker]:
    """Starts the sinks that a configuration names.  One that cannot be made is logged and left out.

    Args:
        configs: as in :func:`check_sinks`.
        places: name → text; ``{name}`` in a text of a configuration stands for it.
    """
    workers = []
    for name, config in configs.items():
        try:
            workers.append(SinkWorker(name, _make(name, _placed(config, places))))
        except ConfigError as error:  # what was checked at submit, on another machine
            _log.error("metrics sink left out; /metrics and other sinks go on", sink=name, error=error.message)
    return workers


def _placed(config: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    placed = dict(config)
    for key, value in config.items():
        for name, text in places.items():
            if isinstance(value, str):
                value = value.replace(f"{{{name}}}", text)
        placed[key] = value
    return placed


def _make(name: str, config: Mapping[str, Any]) -> MetricsSink:
    offered = {entry.name: entry for entry in entry_points(group=GROUP)}
    made: type[MetricsSink] = _load(name, offered)
    try:
        return made(config)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"the metrics sink {name!r} does not take its configuration: {error!r}",
            hint="see the documentation of the package that offers it",
        ) from error


def _load(name: str, offered: Mapping[str, EntryPoint]) -> type[MetricsSink]:
    if name not in offered:
        near = difflib.get_close_matches(name, offered, 1)
        raise ConfigError(
            f"there is no metrics sink {name!r}; installed packages offer: {', '.join(sorted(offered)) or 'none'}",
            hint=f"did you mean {near[0]!r}?" if near else f"install a package with an entry point in {GROUP}",
        )
    try:
        loaded: type[MetricsSink] = offered[name].load()
    except Exception as error:
        raise ConfigError(
            f"the metrics sink {name!r} ({offered[name].value}) cannot be loaded: {error!r}",
            hint="repair or remove the package that offers it, or take the sink out of the configuration",
        ) from error
    return loaded


def convert_config(sink: str, config: Mapping[str, Any], to: type[_Config]) -> _Config:
    """Checks a sink's configuration against a struct.

    Raises:
        ConfigError: naming the sink and the key.
    """
    try:
        return msgspec.convert(dict(config), to, str_keys=True)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"metrics sink {sink!r}: {error}", hint=f"its keys are: {', '.join(to.__struct_fields__)}"
        ) from error

"""``/metrics`` for Prometheus, made from the state at each scrape, ``/healthz`` and ``/readyz``."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ardea.errors import ClusterError
from ardea.metrics import SERIES, Kind
from ardea.metrics.sinks import Sample
from ardea.metrics_manager.last_scrape import Scrapers

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

_log = logging.getLogger(__name__)

CLIENTS = 16
"""Connections at a time; with another one the oldest is closed."""
DEADLINE = 10.0
"""Seconds for a whole request and its answer."""
LOOK = 0.5
"""Seconds between two looks at who is late."""


class SampleCollector(Collector):
    """Gives prometheus_client the samples of the moment; nothing is kept in between."""

    def __init__(self, samples: Callable[[], Sequence[Sample]]) -> None:
        self._samples = samples

    def collect(self) -> Iterable[Metric]:
        """One family a series.  Without ``_created`` series, which would double the number."""
        for name, samples in groupby(self._samples(), key=lambda sample: sample.name):
            yield _family(name, list(samples))


def _family(name: str, samples: list[Sample]) -> Metric:
    series = SERIES[name]
    if series.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, series.help, labels=series.all_labels)
        for sample in samples:
            histogram.add_metric(list(sample.labels.values()), list((sample.buckets or {}).items()), sample.sum)
        return histogram
    kind = CounterMetricFamily if series.kind is Kind.COUNTER else GaugeMetricFamily
    family = kind(name, series.help, labels=series.all_labels)
    for sample in samples:
        family.add_metric(list(sample.labels.values()), sample.value)
    return family


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class names it so
        """Scrapes are not logged."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128  # a crowd is let in at once, and out again

    def __init__(self, address: tuple[str, int]) -> None:
        self.timeout = LOOK
        self._open: dict[Any, float] = {}  # the oldest first: until when
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def look(self) -> None:
        """Serves who comes next, if anybody does, and ends those who are too many or too slow."""
        self.handle_request()
        now = time.monotonic()
        with self._lock:
            crowd = len(self._open) - CLIENTS
            for number, (request, until) in enumerate(self._open.items()):
                if number < crowd or until <= now:
                    with contextlib.suppress(OSError):  # it has gone
                        request.shutdown(socket.SHUT_RDWR)  # its thread ends

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own."""
        with self._lock:
            self._open[request] = time.monotonic() + DEADLINE
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """It is over."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer would ask the name service who we are
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 -- socketserver calls it so
        """A client that went away or sent nonsense is its own affair."""
        _log.debug("request to /metrics broke off", extra={"client": str(client_address)}, exc_info=True)


class _Noted:
    """The parts of an answer; calls ``gone`` when the last one has been sent, and not if one could not be."""

    def __init__(self, parts: Iterable[bytes], gone: Callable[[], None]) -> None:
        self._parts, self._gone = list(parts), gone

    def __len__(self) -> int:  # of one part wsgiref states the length
        return len(self._parts)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._parts
        self._gone()


def _refusal(error: OSError | OverflowError, port: int, host: str) -> ClusterError:
    reason, hint = str(error), "choose another port for metrics, or 0 for any free one"
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        reason = "another process uses it"
        if port == 0:
            reason = "no port is free"
            hint = "end what holds so many connections (`ss -s`), or widen net.ipv4.ip_local_port_range"
    return ClusterError(f"the metrics manager cannot serve /metrics on {host}:{port}: {reason}", hint=hint)


class MetricsServer:
    """An HTTP server in a thread of its own."""

    def __init__(
        self,
        samples: Callable[[], Sequence[Sample]],
        scrapers: Scrapers,
        port: int,
        host: str = "127.0.0.1",
        why_not_ready: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """Binds and starts.

        Args:
            samples: called at each scrape, in the server's thread.
            scrapers: hears of each answer that has gone.
            port: 0 picks a free one; ``self.port`` tells which.
            host: ``0.0.0.0`` for all interfaces, ``::`` for those of IPv6, too.
            why_not_ready: called for ``/readyz``, in the server's thread: a line for each reason.

        Raises:
            ClusterError: the port cannot be bound.
        """
        registry = CollectorRegistry(auto_describe=False)
        registry.register(SampleCollector(samples))
        metrics = make_wsgi_app(registry)

        def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            path = environ["PATH_INFO"]
            if path == "/metrics":
                made = time.monotonic()
                answer = metrics(environ, start_response)
                return _Noted(answer, lambda: scrapers.answered(environ.get("REMOTE_ADDR", ""), made))
            status, body = "404 Not Found", b"see /metrics\n"
            if path in ("/healthz", "/readyz"):
                reasons = why_not_ready() if path == "/readyz" else ()
                status = "503 Service Unavailable" if reasons else "200 OK"
                body = "".join(f"{line}\n" for line in reasons or ("ok",)).encode()
            start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
            return [body]

        try:
            self._server = _Server((host, port))
        except (OSError, OverflowError) as error:
            raise _refusal(error, port, host) from error
        self._server.set_app(application)
        self.port = int(self._server.server_address[1])
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="metrics-http", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._closed:
            self._server.look()

    def close(self) -> None:
        """Stops serving and frees the port, at once."""
        self._closed = True
        with contextlib.suppress(OSError):  # a request like any other, so that the thread looks
            socket.create_connection((str(self._server.server_address[0]), self.port), timeout=1.0).close()
        self._thread.join(1.0)
        self._server.server_close()

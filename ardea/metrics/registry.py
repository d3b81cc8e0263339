"""Instruments of one process and the snapshot of them that travels to the metrics manager.

Hot loops add to ``counter.value``.  A snapshot holds cumulative values, so that a lost one heals with the next.
The thread that takes snapshots need not be the one that counts: single reads and copies of built-in containers
are atomic under the interpreter lock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ardea.metrics.series import SERIES, Kind, Scope, Series
from ardea.metrics.user import MAX_KEYS, OTHER, UserMetric, sanitize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Number = int | float
Read = Callable[[], Number]
Labels = tuple[str, ...]
_LAST = b"last"


class Identity(msgspec.Struct, frozen=True, array_like=True):
    """Which process speaks.

    Attributes:
        topology: its id.
        container: 0 is the master's.
        process: ``heron_instance``, ``stream_manager``, ``topology_master`` or ``metrics_manager``.
        component: of an instance; else empty.
        task: of an instance; else -1.
        life: counts its starts in place from 1; a higher one means that its counters began again.
    """

    topology: str
    container: int
    process: str
    component: str = ""
    task: int = -1
    life: int = 1


class HistogramValue(msgspec.Struct, array_like=True):
    """Counts a bucket (not cumulative, the last one open) and the sum of what was observed."""

    buckets: list[int]
    sum: float


class Snapshot(msgspec.Struct, array_like=True):
    """What a process sends: cumulative values as (series, values of its own labels, value)."""

    identity: Identity
    counters: list[tuple[str, Labels, Number]]
    gauges: list[tuple[str, Labels, Number]]
    histograms: list[tuple[str, Labels, HistogramValue]]


class Scalar:
    """A counter or gauge: ``value`` is public and plain, or read by a callable at each snapshot."""

    __slots__ = ("read", "value")

    def __init__(self, read: Read | None = None) -> None:
        self.value: Number = 0
        self.read = read

    def current(self) -> Number:
        """The value now."""
        return self.value if self.read is None else self.read()


class Counter(Scalar):
    """Only grows: ``counter.value += n``."""

    __slots__ = ()


class Gauge(Scalar):
    """Goes up and down: ``gauge.value = n``."""

    __slots__ = ()


class Histogram:
    """Counts observations in fixed buckets; a value equal to a bound belongs to that bound's bucket."""

    __slots__ = ("bounds", "buckets", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, count: int = 1) -> None:
        """Adds ``count`` observations of one value (seconds, or the series' unit)."""
        self.buckets[bisect_left(self.bounds, value)] += count
        self.sum += value * count

    def observe_many(self, values: NDArray[np.floating[Any]]) -> None:
        """Adds each element of an array; of those that came together, many are equal."""
        if len(values) and bool((values == values[0]).all()):
            self.observe(float(values[0]), len(values))
            return
        import numpy as np  # whoever has an array has paid for the import

        found = np.bincount(np.searchsorted(self.bounds, values, side="left"), minlength=len(self.buckets))
        for index in np.flatnonzero(found).tolist():
            self.buckets[index] += int(found[index])
        self.sum += float(values.sum())

    def current(self) -> HistogramValue:
        """A copy."""
        return HistogramValue([int(count) for count in self.buckets], float(self.sum))


_Instrument = TypeVar("_Instrument", Counter, Gauge, Histogram)


class Registry:
    """All instruments of one process.  Asking twice for a series with the same labels gives the same one."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._counters: dict[tuple[str, Labels], Counter] = {}
        self._gauges: dict[tuple[str, Labels], Gauge] = {}
        self._histograms: dict[tuple[str, Labels], Histogram] = {}
        self._user: dict[str, UserMetric] = {}
        self._former_counts: dict[str, dict[str, Number]] = {}  # of metrics that are retired
        self._retired: dict[str, tuple[UserMetric, dict[str, Number]]] = {}  # the last of a name, and those before it

    def counter(self, name: str, read: Read | None = None, /, **labels: object) -> Counter:
        """A counter of the table; ``read``, if given, yields its cumulative value at each snapshot."""
        _, key = self._row(name, Kind.COUNTER, labels)
        return self._counters.setdefault(key, Counter(read))

    def gauge(self, name: str, read: Read | None = None, /, **labels: object) -> Gauge:
        """A gauge of the table; ``read``, if given, yields its value at each snapshot."""
        _, key = self._row(name, Kind.GAUGE, labels)
        return self._gauges.setdefault(key, Gauge(read))

    def histogram(self, name: str, /, **labels: object) -> Histogram:
        """A histogram of the table."""
        series, key = self._row(name, Kind.HISTOGRAM, labels)
        return self._histograms.setdefault(key, Histogram(series.buckets))

    def remove_gauge(self, name: str, /, **labels: object) -> None:
        """Forgets a gauge whose subject (a peer, a destination) is gone."""
        self._gauges.pop(self._row(name, Kind.GAUGE, labels)[1], None)

    def user_metric(self, name: str, metric: UserMetric) -> None:
        """Exports a user's metric under a name that no other has, in which odd characters become ``_``.

        It goes on from the counts of metrics of that name that are retired, if it is not the last of these itself.
        """
        name = sanitize(name)
        last, before = self._retired.pop(name, (None, {}))
        if last is metric:
            self._former_counts[name] = before
        self._user[name] = metric

    def retire(self, name: str) -> None:
        """A user's metric is over: it has no value any more.  What it has counted stays."""
        name = sanitize(name)
        counts = self._counts(name)
        self._retired[name] = self._user.pop(name), self._former_counts.get(name, {})
        self._former_counts[name] = counts

    def snapshot(self) -> bytes:
        """The cumulative values of all instruments, msgpack of :class:`Snapshot`."""
        user_counts, user_values = self._user_values()
        return msgspec.msgpack.encode(
            Snapshot(
                self.identity,
                _scalars(self._counters) + user_counts,
                _scalars(self._gauges) + user_values,
                [(name, labels, h.current()) for (name, labels), h in self._histograms.copy().items()],
            )
        )

    def _row(self, name: str, kind: Kind, labels: dict[str, object]) -> tuple[Series, tuple[str, Labels]]:
        series = SERIES.get(name)
        if series is None or series.kind is not kind or set(labels) != set(series.labels):
            wanted = f"a {series.kind} with the labels {series.labels}" if series else "not in ardea.metrics.SERIES"
            raise ValueError(f"{name} is asked for as a {kind} with the labels {tuple(labels)}, but it is {wanted}")
        if series.scope is not Scope.PROCESS and (series.scope is Scope.TASK) != (self.identity.task >= 0):
            raise ValueError(f"{name} is for {series.scope}, not for {self.identity}: its labels would not be unique")
        return series, (name, tuple(str(labels[label]) for label in series.labels))

    def _user_values(self) -> tuple[list[tuple[str, Labels, Number]], list[tuple[str, Labels, Number]]]:
        counts: list[tuple[str, Labels, Number]] = []
        values: list[tuple[str, Labels, Number]] = []
        for name in dict.fromkeys((*self._former_counts, *self._user)):
            for key, count in self._counts(name).items():
                counts.append(("ardea_user_counts_total", (name, key), _plain(count)))
        for name, metric in self._user.copy().items():
            try:
                value = metric.current()
                if value is not None:
                    values.append(("ardea_user_value", (name,), float(value)))
            except Exception as error:  # a user's reducer must not end the process
                self._raised(error)
        return counts, values

    def _counts(self, name: str) -> dict[str, Number]:
        """What the metric of that name has counted, with those before it, whose keys come first."""
        counts = dict(self._former_counts.get(name, {}))
        metric = self._user.get(name, UserMetric())
        try:
            for key, count in metric.counts().items():
                told = key if key in counts or len(counts) < MAX_KEYS else OTHER
                counts[told] = counts.get(told, 0) + count
        except Exception as error:  # likewise
            self._raised(error)
        return counts

    def _raised(self, error: Exception) -> None:
        self.counter("ardea_user_exceptions_total", exception=type(error).__name__).value += 1


def frames_of(snapshot: bytes, *, last: bool) -> list[bytes]:
    """A snapshot as it is sent to the metrics manager; ``last``: its process ends."""
    return [snapshot, _LAST] if last else [snapshot]


def is_last(frames: Sequence[bytes]) -> bool:
    """Whether no more will come of a process of which these frames have."""
    return len(frames) == 2 and frames[1] == _LAST


def _scalars(
    instruments: dict[tuple[str, Labels], Counter] | dict[tuple[str, Labels], Gauge],
) -> list[tuple[str, Labels, Number]]:
    found: list[tuple[str, Labels, Number]] = []
    for (name, labels), instrument in instruments.copy().items():
        try:
            found.append((name, labels, _plain(instrument.current())))
        except OSError:
            continue  # e.g. out of descriptors: better a sample missing than a process dead
    return found


def _plain(value: Number) -> Number:
    """NumPy's numbers and integers beyond 64 bits do not travel as they are."""
    return value if type(value) is int and value < 1 << 63 else float(value)

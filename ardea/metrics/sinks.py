"""Receivers of metrics beside ``/metrics``: what they are, which are installed, and whether they take a configuration.

They are entry points of the group ``ardea.metrics_sinks``; the metrics managers run them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from ardea.errors import ConfigError
from ardea.metrics.series import Kind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "ardea.metrics_sinks"

_Config = TypeVar("_Config", bound=msgspec.Struct)


class Sample(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value of one series, as sinks get it.

    Attributes:
        name: as in docs/metrics.md.
        type: counter, gauge or histogram.
        labels: those of the scope, then the series' own.
        value: of a histogram the number of observations.
        sum: of all observations; histograms only.
        buckets: observations up to and including each bound; the last bound is ``+Inf``; histograms only.
    """

    name: str
    type: Kind
    labels: dict[str, str]
    value: int | float
    sum: float | None = None
    buckets: dict[str, int] | None = None


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


def check_sinks(configs: Mapping[str, Mapping[str, Any]]) -> None:
    """What a submit, or an update, does with the sinks that are asked for; none is opened.

    Args:
        configs: sink's name → its configuration, as in ``heron.metricsmgr.sinks``.

    Raises:
        ConfigError: no installed package offers a sink of that name, its code cannot be loaded, or it refuses its
            configuration.
    """
    for name, config in configs.items():
        make_sink(name, config)


def make_sink(name: str, config: Mapping[str, Any]) -> MetricsSink:
    """The sink of that name.

    Raises:
        ConfigError: see :func:`check_sinks`.
    """
    from importlib.metadata import entry_points  # with email, 2 MB that a manager without sinks does without

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

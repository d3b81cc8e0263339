"""What a configuration key is, and the types that its values have."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ardea import units

Scope = Literal["topology", "component", "both", "system"]
RELIABILITY_MODES = ("ATLEAST_ONCE", "ATMOST_ONCE", "EFFECTIVELY_ONCE")


ADVANCED = frozenset(
    {
        "topology.max.spout.pending.bytes",
        "topology.max.held.bytes",
        "topology.spout.wait.ms",
        "topology.executor.batch.rows",
        "topology.executor.slice.ms",
        "topology.stateful.queue.millis",
        "topology.key.groups",
        "topology.packing.ffd.sorting.strategy",
        "topology.container.max.cpu.hint",
        "topology.container.max.ram.hint",
        "topology.container.max.disk.hint",
        "topology.container.padding.percentage",
        "topology.container.cpu.padding",
        "topology.container.ram.padding",
        "topology.container.disk.padding",
        "heron.streammgr.cache.drain.frequency.ms",
        "heron.streammgr.cache.drain.size.bytes",
        "heron.streammgr.network.backpressure.highwatermark.mb",
        "heron.streammgr.network.backpressure.lowwatermark.mb",
        "heron.instance.internal.queue.bytes",
    }
)
"""Limits and shapes whose defaults suit almost everybody."""
REPLACED = {
    f"heron.kubernetes.{name}": f"set {field} in heron.kubernetes.pod.spec"
    for name, field in (
        ("node.selector", "nodeSelector"),
        ("tolerations", "tolerations"),
        ("priority.class", "priorityClassName"),
    )
}
"""Keys that there were, and what to do instead."""


@dataclass(frozen=True, slots=True)
class Key:
    """A row of the table.

    ``scope`` says where the key may stand: ``topology`` and ``system`` (the installation's, not the author's) in a
    topology's configuration, ``component`` in a component's, ``both`` in either, the component's winning.
    """

    name: str
    type: str
    unit: str
    default: Any
    sentence: str
    scope: Scope
    check: Callable[[Any], Any]

    @property
    def advanced(self) -> bool:
        """Whether few will ever need it: it stands in a table of its own."""
        return self.name in ADVANCED


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a key; its value is multiplied by ``factor`` to give the key's."""

    name: str
    key: str
    factor: float = 1


ALIASES = {
    alias.name: alias
    for alias in (
        Alias("topology.stateful.checkpoint.interval.seconds", "topology.stateful.checkpoint.interval.secs"),
        Alias("topology.workers", "topology.stmgrs"),
        Alias("topology.tick.tuple.freq.ms", "topology.tick.tuple.freq.secs", 0.001),
    )
}
"""Other names that are accepted, among them Storm's and Heron's."""


# type in the table -> (unit, what checks and normalises a value)
TYPES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bool": ("", units.boolean),
    "text": ("", units.text),
    "texts": ("", units.texts),
    "count": ("", units.count),
    "integer": ("", units.integer),
    "bytes": ("bytes", units.size),
    "seconds": ("s", units.positive),
    "seconds or never": ("", units.seconds_or_never),
    "delay": ("s", units.number),
    "milliseconds": ("ms", units.number),
    "megabytes": ("MiB", units.count),
    "cores": ("cores", units.positive),
    "padding": ("cores", units.number),
    "percent": ("%", units.number),
    "share": ("", units.share),
    "slots": ("", units.slots),
    "mode": ("", units.choice(*RELIABILITY_MODES)),
    "backend": ("", units.choice_or_class("memory", "rocksdb")),
    "format": ("", units.choice("text", "json")),
    "sorting": ("", units.choice("RAM_FIRST", "CPU_FIRST")),
    "status": ("", units.choice("ACTIVE", "INACTIVE")),
    "cores by component": ("cores", units.mapping(units.positive, "split:2,count:0.5")),
    "bytes by component": ("bytes", units.mapping(units.size, "split:256MB,count:1GiB")),
    "texts by name": ("", units.pairs),
    "object": ("", units.one_object),
    "objects": ("", units.objects),
    "objects by name": ("", units.objects_by_name),
}


def declared(name: str, kind: str, scope: Scope, default: Any, sentence: str) -> Any:
    """The field of a key; ``kind`` is a row of TYPES."""
    unit, check = TYPES[kind]
    key = Key(name, kind, unit, default, sentence, scope, check)
    return dataclasses.field(default=default, metadata={"key": key})

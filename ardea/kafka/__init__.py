"""Kafka: spouts, sinks and states (docs/kafka.md).  The client is loaded by the tasks that use it.

from ardea.kafka import KafkaSink, KafkaSpout, Record

Names are looked up when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ardea.kafka.record import Record as Record
    from ardea.kafka.sink import KafkaSink as KafkaSink
    from ardea.kafka.spout import KafkaSpout as KafkaSpout
    from ardea.kafka.stamps import record_time as record_time
    from ardea.kafka.state import KafkaState as KafkaState
    from ardea.kafka.state import KafkaWriter as KafkaWriter
    from ardea.kafka.trident import KafkaTridentSpout as KafkaTridentSpout

_HOMES = {
    "KafkaSink": "sink",
    "KafkaSpout": "spout",
    "KafkaState": "state",
    "KafkaTridentSpout": "trident",
    "KafkaWriter": "state",
    "Record": "record",
    "record_time": "stamps",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module 'ardea.kafka' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ardea.kafka.{home}"), name)
    globals()[name] = value
    return value

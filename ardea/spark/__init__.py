"""Spark batch jobs and streams as spouts.  Importing this loads neither pyspark nor pyarrow.

Names are looked up when they are first used: Spark's Python workers need none of them, and each would wait for all.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ardea.spark.source import ArdeaSource as ArdeaSource
    from ardea.spark.spout import SparkSpout as SparkSpout
    from ardea.spark.streaming import SparkStreamSpout as SparkStreamSpout
    from ardea.spark.table_tasks import ArdeaSink as ArdeaSink
    from ardea.spark.table_tasks import ArdeaSpout as ArdeaSpout
    from ardea.spark.trident import SparkTridentSpout as SparkTridentSpout

_HOMES = {
    "ArdeaSink": "table_tasks",
    "ArdeaSource": "source",
    "ArdeaSpout": "table_tasks",
    "SparkSpout": "spout",
    "SparkStreamSpout": "streaming",
    "SparkTridentSpout": "trident",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module 'ardea.spark' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ardea.spark.{home}"), name)
    globals()[name] = value
    return value

"""Trident: batches of tuples that are counted exactly once (docs/trident.md).

from ardea.trident import Count, SqliteState, TridentTopology

Names are looked up when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ardea.trident.builtin import Count as Count
    from ardea.trident.builtin import Equals as Equals
    from ardea.trident.builtin import FilterNull as FilterNull
    from ardea.trident.builtin import Max as Max
    from ardea.trident.builtin import Min as Min
    from ardea.trident.builtin import Negate as Negate
    from ardea.trident.builtin import Sum as Sum
    from ardea.trident.directory import DirectorySpout as DirectorySpout
    from ardea.trident.files import CsvSpout as CsvSpout
    from ardea.trident.files import FileSpout as FileSpout
    from ardea.trident.files import JsonLinesSpout as JsonLinesSpout
    from ardea.trident.files import ParquetSpout as ParquetSpout
    from ardea.trident.folder import FolderState as FolderState
    from ardea.trident.joins import JoinFields as JoinFields
    from ardea.trident.joins import JoinType as JoinType
    from ardea.trident.kinds import MapStateFactory as MapStateFactory
    from ardea.trident.maps import CachedMap as CachedMap
    from ardea.trident.maps import NonTransactionalMap as NonTransactionalMap
    from ardea.trident.maps import OpaqueMap as OpaqueMap
    from ardea.trident.maps import OpaqueValue as OpaqueValue
    from ardea.trident.maps import SnapshottableMap as SnapshottableMap
    from ardea.trident.maps import TransactionalMap as TransactionalMap
    from ardea.trident.maps import TransactionalValue as TransactionalValue
    from ardea.trident.memcached import MemcachedState as MemcachedState
    from ardea.trident.memory import LRUMemoryMapState as LRUMemoryMapState
    from ardea.trident.memory import MemoryMap as MemoryMap
    from ardea.trident.memory import MemoryMapState as MemoryMapState
    from ardea.trident.operations import Aggregator as Aggregator
    from ardea.trident.operations import BatchCollector as BatchCollector
    from ardea.trident.operations import Collector as Collector
    from ardea.trident.operations import CombinerAggregator as CombinerAggregator
    from ardea.trident.operations import Filter as Filter
    from ardea.trident.operations import Function as Function
    from ardea.trident.operations import GroupedMultiReducer as GroupedMultiReducer
    from ardea.trident.operations import MultiReducer as MultiReducer
    from ardea.trident.operations import Operation as Operation
    from ardea.trident.operations import OperationContext as OperationContext
    from ardea.trident.operations import ReducerAggregator as ReducerAggregator
    from ardea.trident.partitioned import PartitionedSpout as PartitionedSpout
    from ardea.trident.plain import PlainSpout as PlainSpout
    from ardea.trident.redis import RedisState as RedisState
    from ardea.trident.spout import Attempt as Attempt
    from ardea.trident.spout import BatchSpout as BatchSpout
    from ardea.trident.spout import Coordinator as Coordinator
    from ardea.trident.spout import Emitter as Emitter
    from ardea.trident.spout import FixedBatchSpout as FixedBatchSpout
    from ardea.trident.spout import TridentSpout as TridentSpout
    from ardea.trident.sqlite import SqliteState as SqliteState
    from ardea.trident.state import BackingMap as BackingMap
    from ardea.trident.state import MapGet as MapGet
    from ardea.trident.state import MapState as MapState
    from ardea.trident.state import QueryFunction as QueryFunction
    from ardea.trident.state import SnapshotGet as SnapshotGet
    from ardea.trident.state import Snapshottable as Snapshottable
    from ardea.trident.state import State as State
    from ardea.trident.state import StateFactory as StateFactory
    from ardea.trident.state import StateUpdater as StateUpdater
    from ardea.trident.stream import GroupedStream as GroupedStream
    from ardea.trident.stream import Stream as Stream
    from ardea.trident.topology import TridentTopology as TridentTopology
    from ardea.trident.trident_state import TridentState as TridentState
    from ardea.trident.tuples import TridentTuple as TridentTuple
    from ardea.trident.windows import WindowConfig as WindowConfig

_NAMES = {
    "builtin": (
        "Count",
        "Equals",
        "FilterNull",
        "Max",
        "Min",
        "Negate",
        "Sum",
    ),
    "directory": ("DirectorySpout",),
    "files": (
        "CsvSpout",
        "FileSpout",
        "JsonLinesSpout",
        "ParquetSpout",
    ),
    "folder": ("FolderState",),
    "joins": (
        "JoinFields",
        "JoinType",
    ),
    "kinds": ("MapStateFactory",),
    "maps": (
        "CachedMap",
        "NonTransactionalMap",
        "OpaqueMap",
        "OpaqueValue",
        "SnapshottableMap",
        "TransactionalMap",
        "TransactionalValue",
    ),
    "memcached": ("MemcachedState",),
    "memory": (
        "LRUMemoryMapState",
        "MemoryMap",
        "MemoryMapState",
    ),
    "operations": (
        "Aggregator",
        "BatchCollector",
        "Collector",
        "CombinerAggregator",
        "Filter",
        "Function",
        "GroupedMultiReducer",
        "MultiReducer",
        "Operation",
        "OperationContext",
        "ReducerAggregator",
    ),
    "partitioned": ("PartitionedSpout",),
    "plain": ("PlainSpout",),
    "redis": ("RedisState",),
    "spout": (
        "Attempt",
        "BatchSpout",
        "Coordinator",
        "Emitter",
        "FixedBatchSpout",
        "TridentSpout",
    ),
    "sqlite": ("SqliteState",),
    "state": (
        "BackingMap",
        "MapGet",
        "MapState",
        "QueryFunction",
        "SnapshotGet",
        "Snapshottable",
        "State",
        "StateFactory",
        "StateUpdater",
    ),
    "stream": (
        "GroupedStream",
        "Stream",
    ),
    "topology": ("TridentTopology",),
    "trident_state": ("TridentState",),
    "tuples": ("TridentTuple",),
    "windows": ("WindowConfig",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module 'ardea.trident' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ardea.trident.{home}"), name)
    globals()[name] = value
    return value

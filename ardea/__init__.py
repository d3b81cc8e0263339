"""Ardea: a topology engine for Python.  What a topology's author imports.

Names are looked up when they are first used, so that processes which need only a part (the supervisor: none of it)
do not load the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ardea.versions import __version__ as __version__

if TYPE_CHECKING:
    from ardea.component import Bolt as Bolt
    from ardea.component import Component as Component
    from ardea.component import GlobalStreamId as GlobalStreamId
    from ardea.component import Spec as Spec
    from ardea.component import Spout as Spout
    from ardea.component import Stream as Stream
    from ardea.context import BoltAckInfo as BoltAckInfo
    from ardea.context import BoltExecuteInfo as BoltExecuteInfo
    from ardea.context import BoltFailInfo as BoltFailInfo
    from ardea.context import EmitInfo as EmitInfo
    from ardea.context import SpoutAckInfo as SpoutAckInfo
    from ardea.context import SpoutFailInfo as SpoutFailInfo
    from ardea.context import TaskHook as TaskHook
    from ardea.context import TopologyContext as TopologyContext
    from ardea.errors import ArdeaError as ArdeaError
    from ardea.errors import ConfigError as ConfigError
    from ardea.errors import EncodingError as EncodingError
    from ardea.errors import FailedException as FailedException
    from ardea.errors import RunFailed as RunFailed
    from ardea.errors import TopologyError as TopologyError
    from ardea.errors import UserError as UserError
    from ardea.grouping import CustomStreamGrouping as CustomStreamGrouping
    from ardea.grouping import Grouping as Grouping
    from ardea.keyed import KeyedState as KeyedState
    from ardea.keyed import ListState as ListState
    from ardea.keyed import TaskState as TaskState
    from ardea.lines import JsonLines as JsonLines
    from ardea.lines import Lines as Lines
    from ardea.metrics.user import AssignableMetric as AssignableMetric
    from ardea.metrics.user import CountMetric as CountMetric
    from ardea.metrics.user import MeanReducer as MeanReducer
    from ardea.metrics.user import MultiCountMetric as MultiCountMetric
    from ardea.metrics.user import ReducedMetric as ReducedMetric
    from ardea.script import RunResult as RunResult
    from ardea.script import run as run
    from ardea.sinks import Mark as Mark
    from ardea.sinks import Sink as Sink
    from ardea.sinks import TwoPhaseSink as TwoPhaseSink
    from ardea.sources import END as END
    from ardea.sources import PartitionReader as PartitionReader
    from ardea.sources import PositionLost as PositionLost
    from ardea.sources import Source as Source
    from ardea.sources import SourceSpout as SourceSpout
    from ardea.timers import Timers as Timers
    from ardea.topology import Topology as Topology
    from ardea.topology import TopologyBuilder as TopologyBuilder
    from ardea.tuples import ColumnBatch as ColumnBatch
    from ardea.tuples import Tuple as Tuple
    from ardea.tuples import is_tick as is_tick
    from ardea.watermarks import Timestamps as Timestamps

_NAMES = {
    "ardea.script": ("RunResult", "run"),
    "ardea.component": ("Bolt", "Component", "GlobalStreamId", "Spec", "Spout", "Stream"),
    "ardea.context": (
        "BoltAckInfo",
        "BoltExecuteInfo",
        "BoltFailInfo",
        "EmitInfo",
        "SpoutAckInfo",
        "SpoutFailInfo",
        "TaskHook",
        "TopologyContext",
    ),
    "ardea.errors": (
        "ArdeaError",
        "ConfigError",
        "EncodingError",
        "FailedException",
        "RunFailed",
        "TopologyError",
        "UserError",
    ),
    "ardea.grouping": ("CustomStreamGrouping", "Grouping"),
    "ardea.keyed": ("KeyedState", "ListState", "TaskState"),
    "ardea.metrics.user": ("AssignableMetric", "CountMetric", "MeanReducer", "MultiCountMetric", "ReducedMetric"),
    "ardea.lines": ("JsonLines", "Lines"),
    "ardea.sinks": ("Mark", "Sink", "TwoPhaseSink"),
    "ardea.sources": ("END", "PartitionReader", "PositionLost", "Source", "SourceSpout"),
    "ardea.timers": ("Timers",),
    "ardea.topology": ("Topology", "TopologyBuilder"),
    "ardea.tuples": ("ColumnBatch", "Tuple", "is_tick"),
    "ardea.watermarks": ("Timestamps",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module 'ardea' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value

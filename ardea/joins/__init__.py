"""Joins of two streams, of a stream with a table, and of a stream with what is looked up: see docs/joins.md.

What is declared (``declared.py``) makes a machine that knows nothing of topologies (``pairs.py``, ``versions.py``); a
bolt (``bolt.py``) keeps its rows as state.  Lookups keep none (``lookup.py``).
"""

from ardea.joins.bolt import JoinBolt as JoinBolt
from ardea.joins.declared import LATE as LATE
from ardea.joins.declared import AsOfJoin as AsOfJoin
from ardea.joins.declared import IntervalJoin as IntervalJoin
from ardea.joins.declared import TableJoin as TableJoin
from ardea.joins.declared import WindowJoin as WindowJoin
from ardea.joins.lookup import LookupBolt as LookupBolt
from ardea.joins.lookup import LookupJoin as LookupJoin

__all__ = [
    "LATE",
    "AsOfJoin",
    "IntervalJoin",
    "JoinBolt",
    "LookupBolt",
    "LookupJoin",
    "TableJoin",
    "WindowJoin",
]

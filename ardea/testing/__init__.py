"""Topologies in one process, on simulated time: for the tests of whoever writes one, and for the engine's own.

result = ardea.testing.run(WordCount, containers=2, seed=7)
assert result.state == "SUCCEEDED"
assert result.tuples("split") == [("the",), ("heron",)]
"""

from ardea.testing.audit import InvariantError
from ardea.testing.backends import check_state_backend
from ardea.testing.cluster import Cluster
from ardea.testing.components import AckEveryOther, CollectBolt, FeederSpout, RowsSpout
from ardea.testing.network import Network
from ardea.testing.record import Emitted, Raised, Received, Record
from ardea.testing.run import Result, run, run_bolt
from ardea.testing.sinks import check_sink
from ardea.testing.sources import check_source

__all__ = [
    "AckEveryOther",
    "Cluster",
    "CollectBolt",
    "Emitted",
    "FeederSpout",
    "InvariantError",
    "Network",
    "Raised",
    "Received",
    "Record",
    "Result",
    "RowsSpout",
    "check_sink",
    "check_source",
    "check_state_backend",
    "run",
    "run_bolt",
]

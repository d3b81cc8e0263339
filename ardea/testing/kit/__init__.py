"""Faults for topologies on real processes: kill, freeze, cut, delay, from a seed or a journal.

with LocalTopology("words.py:WordCount", tmp_path) as topology:
    topology.ready()
    topology.faults.play(Schedule.seeded(7, topology.targets, faults=20, seconds=60))
    assert topology.finish(300).state == "SUCCEEDED"
"""

from ardea.testing.kit.faults import Faults
from ardea.testing.kit.forwarder import Forwarder
from ardea.testing.kit.local import LocalTopology
from ardea.testing.kit.machines import Machine, Machines
from ardea.testing.kit.processes import Found, Processes, targets
from ardea.testing.kit.schedule import Fault, Kind, Schedule, Targets

__all__ = [
    "Fault",
    "Faults",
    "Forwarder",
    "Found",
    "Kind",
    "LocalTopology",
    "Machine",
    "Machines",
    "Processes",
    "Schedule",
    "Targets",
    "targets",
]

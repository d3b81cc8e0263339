"""How a topology is doing: what supervisors say of its processes, and the words for it (docs/health.md)."""

from ardea.health.processes import ProcessRow
from ardea.health.raised import Raised
from ardea.health.words import Health, HealthState, Trouble, cut_off

__all__ = ["Health", "HealthState", "ProcessRow", "Raised", "Trouble", "cut_off"]

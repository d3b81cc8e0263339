"""``ardea logs --level``: which lines are shown."""

from __future__ import annotations

import enum
import logging

from ardea.logs import level_of
from ardea.scheduler.schedulers import LogLine


class Level(enum.StrEnum):
    """Of a record."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class Levels:
    """Passes lines of processes: records by their level, and the lines after a record as that one."""

    def __init__(self, least: Level | None) -> None:
        self._least = 0 if least is None else logging.getLevelNamesMapping()[least.value]
        self._passing: dict[str, bool] = {}

    def passes(self, line: LogLine) -> bool:
        """Whether it is shown."""
        if (level := level_of(line.text)) is not None:
            self._passing[line.label] = level >= self._least
        return self._passing.get(line.label, not self._least)

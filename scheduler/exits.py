"""The ends of all processes of a local topology, read from its supervisors' folders."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ardea.plan.names import CONTAINERS
from ardea.supervision.records import Exit, read_exits


class ExitRecords:
    """Reads what is new; cheap while nothing ends."""

    def __init__(self, folder: Path, tasks: Collection[str]) -> None:
        """``tasks`` keep their names; other processes get their container's before them."""
        self._folder, self._tasks = folder, tasks
        self._read: dict[Path, tuple[int, list[Exit]]] = {}

    def read(self) -> dict[str, list[Exit]]:
        """The last ends of each process that ended, oldest first."""
        found: dict[str, list[Exit]] = {}
        for file in (*self._folder.glob("exits/*.jsonl"), *self._folder.glob(f"{CONTAINERS}/exits/*.jsonl")):
            container = file.parents[1]
            changed = file.stat().st_mtime_ns
            if self._read.get(file, (0,))[0] != changed:
                self._read[file] = changed, read_exits(container, file.stem)
            alone = file.stem in self._tasks or container == self._folder
            found[file.stem if alone else f"{container.name}/{file.stem}"] = self._read[file][1]
        return found

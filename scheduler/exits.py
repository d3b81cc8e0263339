"""The ends of all processes of a local topology, read from its supervisors' folders."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ardea.plan.names import CONTAINERS, container_number, of_a_task
from ardea.supervision.records import Exit, read_exits


class ExitRecords:
    """Reads what is new; cheap while nothing ends."""

    def __init__(self, folder: Path, tasks: Collection[str] | None = None) -> None:
        """``tasks``, all that the plan has, keep their names; other processes get their container's before them.

        None: all of a container do, those that an update has removed as well.
        """
        self._folder, self._tasks = folder, tasks
        self._read: dict[Path, tuple[int, list[Exit]]] = {}

    def read(self) -> dict[str, list[Exit]]:
        """The last ends of each process that ended, oldest first; of a task those in all its containers."""
        found: dict[str, list[Exit]] = {}
        for file in (*self._folder.glob("exits/*.jsonl"), *self._folder.glob(f"{CONTAINERS}/exits/*.jsonl")):
            container = file.parents[1]
            changed = file.stat().st_mtime_ns
            if self._read.get(file, (0,))[0] != changed:
                self._read[file] = changed, read_exits(container, file.stem)
            alone = container == self._folder or file.stem in (self._tasks or ())
            if not alone and self._tasks is not None and of_a_task(container_number(container.name), file.stem):
                continue  # an update has removed it
            name, ends = file.stem if alone else f"{container.name}/{file.stem}", self._read[file][1]
            # Of a task that an update has moved each place has some.
            found[name] = sorted([*found[name], *ends], key=lambda end: end.time) if name in found else ends
        return found

"""Where the process of a stream manager is: container, addresses, and the folder with what its last life has left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from ardea.errors import TooFewFiles
from ardea.plan import open_files
from ardea.plan.definition import Definition
from ardea.plan.wire import packing_from_bytes


class Remembered(msgspec.Struct, frozen=True):
    """What lies beside the life counter, so that a restarted manager comes back without the master."""

    holder: str
    admission: int
    data_port: int
    control_port: int
    plan: bytes


def check_open_files(definition: Definition, container: int, allowed: int) -> None:
    """Before anything is dialled: later, connections would fail one by one.

    Raises:
        TooFewFiles: that is too few for the container's tasks and for all managers.
    """
    containers = packing_from_bytes(definition.packing).containers
    tasks = sum(len(each.instances) for each in containers if each.number == container)
    if (needed := open_files.needed(tasks, len(containers))) > allowed:
        raise TooFewFiles(
            f"container {container} needs about {needed:,} open files for {tasks:,} tasks among {len(containers):,} "
            f"containers, and {allowed:,} are allowed; raise the hard limit of the container runtime (LimitNOFILE of "
            "containerd), or give the topology fewer containers with more tasks each"
        )


@dataclass(frozen=True, slots=True)
class ContainerSetup:
    """Which container, where its instances dial, where its files are."""

    container: int
    folder: Path
    control: str
    data: str
    metrics: str
    host: str
    keys: Path | None = None

    def remember(self, known: Remembered) -> None:
        """For the next life."""
        path = self._plan
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.msgpack.encode(known))
        temporary.replace(path)

    def recall(self, holder: str) -> Remembered | None:
        """What the last life under that supervisor has left."""
        try:
            known = msgspec.msgpack.decode(self._plan.read_bytes(), type=Remembered)
        except (OSError, ValueError):
            return None
        return known if known.holder == holder else None

    @property
    def _plan(self) -> Path:
        return self.folder / "manager.plan"

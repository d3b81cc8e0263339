"""``ardea.run``: for scripts and notebooks.  What it takes is loaded when it is called, for no task needs it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ardea.errors import RunFailed
from ardea.topology import NOTHING, Topology


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run has ended.

    Attributes:
        id: the topology's id; ``ardea logs ID`` knows it, too.
        topology: its name.
        state: ``SUCCEEDED``, ``FAILED``, or ``KILLED`` after an interrupt.
        reason: why it FAILED; empty otherwise.
        seconds: how long it took.
        components: by component what it did, as ``ardea run -o json`` has it: ``emitted``, ``acked``, ``failed`` ...
        errors: the last exceptions of its tasks, a line each.
        folder: where its logs are.
    """

    id: str
    topology: str
    state: str
    reason: str
    seconds: float
    components: Mapping[str, Mapping[str, Any]]
    errors: tuple[str, ...]
    folder: Path

    def logs(self, selection: str | None = None) -> list[str]:
        """The lines that processes have printed and logged, as ``PROCESS: LINE`` where there are several.

        Args:
            selection: ``COMPONENT``, ``COMPONENT:INDEX`` or a process such as ``stream-manager``; None: all.

        Raises:
            NotFound: nothing of that name has a log.
        """
        kept = importlib.import_module("ardea.scheduler.logs").LocalLogs(self.folder)
        several = len(kept.names(selection)) > 1
        lines = (line for line in kept.lines(selection) if line is not None)
        return [f"{line.label}: {line.text}" if several else line.text for line in lines]

    def raise_for_state(self) -> Self:
        """Itself, if the topology has SUCCEEDED.

        Raises:
            RunFailed: it has not.
        """
        if self.state != "SUCCEEDED":
            raise RunFailed(
                f"{self.topology} {self.state}" + (f": {self.reason}" if self.reason else ""),
                hint=f"`ardea logs {self.id}` shows what its processes say",
            )
        return self


def run(
    topology: type[Topology],
    *,
    containers: int | None = None,
    name: str | None = None,
    config: Mapping[str, Any] = NOTHING,
    logs: Sequence[str] = (),
    give_up: float | None = None,
    state: str | Path | None = None,
) -> RunResult:
    """Runs a topology in processes of its own on this machine, and returns when the last of them is gone.

    Progress goes to stderr.  An interrupt lets open tuples finish, a second one ends the processes at once.

    Args:
        topology: the class, or what ``build()`` returns.  The processes import the file that defines it; of a script
            call ``ardea.run`` below ``if __name__ == "__main__":``.  What cells of a notebook define is sent to them by
            cloudpickle: ``pip install 'ardea[notebook]'``.
        containers: how many; None: what the topology's configuration says.
        name: of the topology; None: that of the class.
        config: wins over the topology's configuration.
        logs: components whose output is shown on stdout.
        give_up: it ends as FAILED after so many seconds of failures without an ack; None: 30, 0: never.
        state: the state directory; None: ``~/.ardea``.

    Raises:
        UserError: the topology, its configuration or its place is wrong; nothing was started.
        ClusterError: the machine has no room for it; nothing is left of it.
    """
    here = importlib.import_module("ardea.cli.here")
    result: RunResult = here.run(topology, containers, name, config, logs, give_up, state)
    return result

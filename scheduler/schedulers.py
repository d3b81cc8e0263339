"""Schedulers: what one does, and which are installed (docs/schedulers.md)."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar, Self

from ardea.errors import UsageError, UserError
from ardea.scheduler.submission import Submission
from ardea.state.records import RunState

GROUP = "ardea.schedulers"
"""The entry points: ``NAME = "module:Class"``."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a topology is: RUNNING when every task has reported, else its final state, and why.

    ``hint``: what to look at.
    """

    state: RunState
    reason: str = ""
    hint: str | None = None


class Deployment(ABC):
    """A topology that one scheduler is ready to start.

    Attributes:
        submission: what was loaded, checked and packed.
        place: where it is going to run, for people: ``namespace streams``.
        where: the same for programs; ``-o json`` has these keys, too.
        options: what the other verbs need to find it: `` -n streams``; empty: nothing.
    """

    submission: Submission
    place: str
    where: Mapping[str, str]
    options: str = ""

    @property
    def id(self) -> str:
        """The topology's."""
        return self.submission.definition.topology

    def manifests(self) -> list[dict[str, Any]]:
        """What a dry run prints in place of the packing plan: the documents that another system would be given."""
        return []

    @abstractmethod
    def submit(self, say: Callable[[str], None]) -> None:
        """Starts it, once; returns when it is accepted: it comes up, and stays, without this process.

        ``say`` takes a sentence for people.

        Raises:
            Conflict: a topology of this name runs.  Like after any other error, nothing of the new one is left.
            ClusterError: there is no room, or no right.
        """

    @abstractmethod
    def wait(self, patience: float | None, *, ended: bool, show: Callable[[str, str], None]) -> Verdict:
        """Returns when it runs, or has ended; with ``ended`` only the latter.

        Args:
            patience: seconds; None: for ever.
            ended: whether to wait for its end.
            show: takes its state, and for whom it waits, as often as there is news.

        Raises:
            ClusterError: it ended before it ran, or can never run.
            Conflict: somebody has removed it meanwhile.
            TimedOut: not yet; it goes on.
        """

    def close(self) -> None:  # noqa: B027 -- many hold nothing
        """Gives back what this process holds; the topology goes on.  Can be repeated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Scheduler(ABC):
    """Where topologies run.  The docstring of the class is what ``ardea submit NAME --help`` says.

    The parameters of its constructor are the options of ``ardea submit NAME``: each has a default, and may be annotated
    as typer has it.  The constructor asks nobody and touches nothing.
    """

    start_secs: ClassVar[float] = 60.0
    """How long ``submit`` waits until a topology runs, unless it is told otherwise."""

    @abstractmethod
    def prepare(self, target: str, overrides: Mapping[str, Any]) -> Deployment:
        """Loads, checks and packs; nothing is written or started.

        Args:
            target: ``FILE`` or ``FILE:Class``.
            overrides: configuration that wins over the topology's.

        Raises:
            NotFound: there is no such file.
            UserError: the file, the topology, a key or an option is wrong.
        """

    @abstractmethod
    def kill(self, topology: str, wait_secs: float, say: Callable[[str], None]) -> None:
        """Ends the topology of that name or id, and forgets it; returns when its last process is gone.

        Can be repeated.

        Args:
            topology: running, ended, or dead.
            wait_secs: what open tuples have to finish.
            say: takes a sentence for people.

        Raises:
            NotFound: there is none.
            TimedOut: something of it still lives; the same again goes on.
        """

    def close(self) -> None:  # noqa: B027 -- many hold nothing
        """Gives back what this process holds.  Can be repeated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def installed() -> list[str]:
    """The names of all schedulers, sorted."""
    return sorted(entry_points(group=GROUP).names)


def load(name: str) -> type[Scheduler]:
    """The scheduler of that name.

    Raises:
        UserError: none is installed under it, or it cannot be used.
    """
    found = entry_points(group=GROUP)
    if name not in found.names:
        if name.partition(":")[0].endswith(".py") or Path(name).is_file():
            raise UsageError(
                f"{name} is the topology's file; the scheduler stands before it",
                hint=f"`ardea submit local {name}` starts it on this machine; installed are {', '.join(installed())}",
            )
        raise UserError(
            f"no scheduler is called {name}; installed are {', '.join(installed())}",
            hint="install the package that brings it into this Python's environment; docs/schedulers.md says how to "
            "write one",
        )
    entry = found[name]
    try:
        scheduler = entry.load()
    except Exception as error:
        raise _unusable(entry, f"{type(error).__name__}: {error}") from error
    if not (isinstance(scheduler, type) and issubclass(scheduler, Scheduler)):
        raise _unusable(entry, f"{entry.value} is no subclass of ardea.scheduler.schedulers.Scheduler")
    if missing := sorted(getattr(scheduler, "__abstractmethods__", ())):
        raise _unusable(entry, f"{entry.value} has no {', '.join(missing)}")
    for parameter in inspect.signature(scheduler).parameters.values():
        if parameter.default is parameter.empty or parameter.kind is parameter.POSITIONAL_ONLY:
            raise _unusable(entry, f"the parameter {parameter.name} of {entry.value} has no default")
    return scheduler


def _unusable(entry: EntryPoint, why: str) -> UserError:
    package = entry.dist.name if entry.dist is not None else "unknown"
    return UserError(
        f"the scheduler {entry.name} of the package {package} cannot be used: {why}",
        hint=f"`pip install --upgrade {package}`, or tell its authors",
    )

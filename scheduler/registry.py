"""The schedulers that are installed (docs/schedulers.md)."""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import msgspec

from ardea.errors import UsageError, UserError
from ardea.scheduler.schedulers import Scheduler

GROUP = "ardea.schedulers"
"""The entry points: ``NAME = "module:Class"``."""


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


class Place(msgspec.Struct, frozen=True):
    """Where topologies are: a scheduler, and the options of its constructor that find them."""

    scheduler: str
    options: dict[str, Any] = {}

    def open(self) -> Scheduler:
        """The scheduler; errors are those of :func:`load`."""
        return load(self.scheduler)(**self.options)

"""Which state backend a topology has chosen, and the scratch folder in which it works."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ardea.backends.bases import MemoryBackend
from ardea.backends.contract import Backend, Base
from ardea.backends.rocksdb import RocksBackend
from ardea.errors import UserError
from ardea.snapshots.key_groups import Keys

Opened = Callable[[], Backend]
_OWN: dict[str, type[Any]] = {"memory": MemoryBackend, "rocksdb": RocksBackend}


def backend_class(name: str) -> type[Any]:
    """The one that ``topology.stateful.backend`` names.

    Raises:
        UserError: there is none of that name.
    """
    if name in _OWN:
        return _OWN[name]
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"topology.stateful.backend = {name!r} cannot be found: {error}",
            hint=f"Write {', '.join(_OWN)}, or a class as package.module:Class.",
        ) from error
    if not isinstance(found, type):
        raise UserError(f"topology.stateful.backend = {name!r} is no class")
    return found


class Scratch:
    """A folder that holds nothing between two lives of a task, nor between two objects of its component."""

    def __init__(self, made: type[Any], folder: Path) -> None:
        self._made, self._folder = made, folder
        self._numbers = itertools.count(1)

    def open(self) -> Backend:
        """In a folder of its own; those of before are removed."""
        shutil.rmtree(self._folder, ignore_errors=True)
        place = self._folder / f"{next(self._numbers)}"
        return _Scratched(self._made(place), self._folder)


class _Scratched:
    """A backend whose folder goes with it."""

    def __init__(self, backend: Backend, folder: Path) -> None:
        self._backend, self._folder = backend, folder

    def base(self, state: str, keys: Keys, ttl: float | None, now: Callable[[], float]) -> Base:
        """See :class:`ardea.backends.contract.Backend`."""
        return self._backend.base(state, keys, ttl, now)

    def close(self) -> None:
        """And nothing is left; what it raises does not matter, for its content does not."""
        with contextlib.suppress(Exception):
            self._backend.close()
        shutil.rmtree(self._folder, ignore_errors=True)

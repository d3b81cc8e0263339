"""What every state manager is tested with, here on files.  tests/process/state does so on ZooKeeper."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ardea.state import FileState, StateManager
from tests.machine import out_of_patience

DEADLINE = 20.0


class Backend(ABC):
    """Storages of one kind; ``connect`` opens the current one once more."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._open = ExitStack()
        self.fresh()

    @abstractmethod
    def begin(self, name: str) -> None:
        """The current storage is a new one, of this name."""

    @abstractmethod
    def open(self) -> StateManager:
        """The current storage."""

    def fresh(self) -> StateManager:
        self._open.close()
        self.begin(f"state-{next(self._numbers)}")
        return self.connect()

    def connect(self) -> StateManager:
        return self._open.enter_context(self.open())

    def close(self) -> None:
        self._open.close()


class Files(Backend):
    """Each in a directory of its own."""

    def __init__(self, base: Path) -> None:
        self._base = base
        super().__init__()

    def begin(self, name: str) -> None:
        self._root = self._base / name

    def open(self) -> StateManager:
        return FileState(self._root)


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    backend = Files(tmp_path)
    yield backend
    backend.close()


@pytest.fixture
def state(backend: Backend) -> StateManager:
    return backend.connect()


@pytest.fixture
def other(backend: Backend) -> StateManager:
    """A second connection to the same storage."""
    return backend.connect()


@pytest.fixture
def poll_until() -> Callable[[StateManager, Callable[[], bool]], None]:
    def poll_until(state: StateManager, condition: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not condition():
            assert not out_of_patience(began, DEADLINE), "the condition did not come true"
            state.poll()

    return poll_until


@pytest.fixture
def run_python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts ``python -c``; whatever still runs at the end is killed."""
    with ExitStack() as stack:

        def run(script: str, *args: object) -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", script, *map(str, args)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            return process

        yield run

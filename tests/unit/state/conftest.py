"""What every state manager is tested with.  Another one joins by a class like ``Files`` in ``BACKENDS``."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ardea.state import FileState, StateManager

DEADLINE = 20.0


class Files:
    """Storages in directories of their own; ``connect`` opens the current one once more."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._numbers = itertools.count()
        self._open = ExitStack()
        self.fresh()

    def fresh(self) -> StateManager:
        self._open.close()
        self.root = self._base / f"state-{next(self._numbers)}"
        return self.connect()

    def connect(self) -> StateManager:
        return self._open.enter_context(FileState(self.root))

    def close(self) -> None:
        self._open.close()


BACKENDS = {"files": Files}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    backend = BACKENDS[request.param](tmp_path)
    yield backend
    backend.close()


@pytest.fixture
def state(backend: Files) -> StateManager:
    return backend.connect()


@pytest.fixture
def other(backend: Files) -> StateManager:
    """A second connection to the same storage."""
    return backend.connect()


@pytest.fixture
def poll_until() -> Callable[[StateManager, Callable[[], bool]], None]:
    def poll_until(state: StateManager, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true"
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

"""``ardea.run``: a topology on this machine, from a script or a cell of a notebook, until it has ended."""

from __future__ import annotations

import base64
import contextlib
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ardea import loader
from ardea.cli import console, submission
from ardea.cli.run import check_components
from ardea.cli.watching import Watch
from ardea.documents.figures import of_totals
from ardea.errors import UserError
from ardea.scheduler.home import DEFAULT, Home
from ardea.scheduler.hopeless_run import PATIENCE
from ardea.scheduler.run import LocalRun
from ardea.scheduler.submission import Submission
from ardea.script import RunResult
from ardea.topology import Topology

_CELL = '''\
"""What a notebook had defined when ``ardea.run`` was called, by value."""

import base64
import pickle

topology = pickle.loads(base64.b64decode({text!r}))
'''


def run(
    topology: type[Topology],
    containers: int | None,
    name: str | None,
    config: Mapping[str, Any],
    logs: Sequence[str],
    give_up: float | None,
    state: str | Path | None,
) -> RunResult:
    """See :func:`ardea.run`."""
    if threading.current_thread() is not threading.main_thread():
        raise UserError(
            "ardea.run() is called in a thread, where it gets no signals", hint="call it in the main thread"
        )
    if isinstance(logs, str):
        raise UserError(f"ardea.run(): logs= takes a list, not the text {logs!r}", hint=f"logs=[{logs!r}]")
    home = Home(DEFAULT if state is None else state)
    given = {"topology.name": name, "topology.stmgrs": containers}
    overrides = {**config, **{key: value for key, value in given.items() if value is not None}}
    submission.checked(overrides, "ardea.run()")
    with _target(topology) as target:
        made = Submission.of(target, overrides, home.state_url)
    check_components(list(logs), made, "ardea.run(): logs=")
    local = LocalRun(made, home, give_up=PATIENCE if give_up is None else give_up)
    watch = Watch(local, list(logs), console.err())
    outcome = watch.run_to_end()
    return RunResult(
        id=watch.run.topology,
        topology=made.plan.name,
        state=outcome.state.value,
        reason=outcome.reason,
        seconds=outcome.seconds,
        components={name: msgspec.to_builtins(of_totals(totals)) for name, totals in outcome.components.items()},
        errors=tuple(outcome.errors),
        folder=watch.run.folder,
    )


@contextlib.contextmanager
def _target(topology: type[Topology]) -> Iterator[str]:
    """``FILE:Class``, which can be loaded as long as the context lasts."""
    if not (isinstance(topology, type) and issubclass(topology, Topology)):
        raise UserError(
            f"ardea.run() takes a topology's class, not {topology!r}", hint="with a builder, pass what build() returns"
        )
    if (file := loader.importing()) is not None:
        raise UserError(
            f"{file} calls ardea.run() while it is imported, which each process of a topology does; put the call below "
            'if __name__ == "__main__":'
        )
    module = sys.modules[topology.__module__] if topology.__module__ != Topology.__module__ else None
    modules = [module] if module is not None else [sys.modules["__main__"], *sys.modules.copy().values()]
    for each in modules:
        name = next((name for name, entry in vars(each).items() if entry is topology), None)
        if name is not None and (path := getattr(each, "__file__", None)) and Path(path).is_file():
            yield f"{path}:{name}"
            return
    if "<locals>" in topology.__qualname__ or (module is not None and module.__name__ != "__main__"):
        raise UserError(
            f"no file has {topology.__qualname__} in a variable, so that processes could not find it",
            hint="define the topology at the top of a module",
        )
    with tempfile.TemporaryDirectory(prefix="ardea-") as folder:
        path = Path(folder) / f"notebook_{topology.__name__}.py"
        path.write_text(_CELL.format(text=base64.b64encode(_pickled(topology)).decode()))
        yield f"{path}:topology"


def _pickled(topology: type[Topology]) -> bytes:
    try:
        import cloudpickle  # what is defined in no file needs it, nobody else
    except ModuleNotFoundError as error:
        raise UserError(
            f"{topology.__qualname__} is defined in no file, and cloudpickle, which could send it, is not installed",
            hint="pip install 'ardea[notebook]', or write it into a file",
        ) from error
    try:
        return bytes(cloudpickle.dumps(topology))
    except Exception as error:  # whatever an author's values raise
        raise UserError(
            f"{topology.__qualname__} cannot be sent to its processes: {type(error).__name__}: {error}",
            hint="open connections, locks and files in initialize(), not in the notebook",
        ) from error

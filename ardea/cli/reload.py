"""``ardea run --reload``: the topology starts again whenever a file of its author changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from ardea import loader
from ardea.cli import console
from ardea.cli.watching import Watch
from ardea.errors import UserError
from ardea.scheduler.run import Outcome
from ardea.scheduler.submission import Submission


class Changes:
    """Of Python files below a folder; a thread looks."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stopped, self._changed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look, name="changes", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    @property
    def seen(self) -> bool:
        """Whether there was one since :meth:`clear`."""
        return self._changed.is_set()

    def clear(self) -> None:
        """They are known now."""
        self._changed.clear()

    def wait(self) -> None:
        """For the next one, or for an interrupt."""
        while not self._changed.wait(1.0):
            pass

    def _look(self) -> None:
        import watchfiles  # 40 ms that every other verb does without

        watched = watchfiles.watch(
            self._root, watch_filter=watchfiles.PythonFilter(), stop_event=self._stopped, raise_interrupt=False
        )
        for _ in watched:
            self._changed.set()


def run_anew(
    target: str, load: Callable[[], Submission], watch_of: Callable[[Submission], Watch]
) -> tuple[Watch, Outcome]:
    """Runs it again after each change, until a signal ends it; returns the last run, and how that ended."""
    root = loader.root_of(target)
    with Changes(root) as changes:
        while True:
            changes.clear()
            try:
                watch = watch_of(load())
            except UserError as error:
                console.report(error)
            else:
                watch.outdated = lambda: changes.seen
                outcome = watch.run_to_end()
                if watch.interrupted:
                    return watch, outcome
            if not changes.seen:
                console.say("waits for a change of its files; Ctrl-C ends it")
            changes.wait()
            loader.forget(root)

"""``ardea run --reload``: the topology starts again whenever a file of its author changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from ardea import loader
from ardea.cli import console
from ardea.cli.watching import Watch
from ardea.errors import ArdeaError, ClusterError, NotFound, UserError
from ardea.scheduler.run import Outcome
from ardea.scheduler.submission import Submission


class Changes:
    """Of Python files below a folder; a thread looks."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stopped, self._changed = threading.Event(), threading.Event()
        self._trouble = ""  # why no more are seen
        self._thread = threading.Thread(target=self._look, name="changes", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    @property
    def seen(self) -> bool:
        """Whether there was one since :meth:`clear`.

        Raises:
            ClusterError: they cannot be seen.
        """
        if self._trouble:
            raise ClusterError(
                f"changes of files below {self._root} cannot be seen: {self._trouble}",
                hint="without --reload the topology runs; on Linux `sysctl fs.inotify` says how much can be watched",
            )
        return self._changed.is_set()

    def clear(self) -> None:
        """They are known now."""
        self._changed.clear()

    def wait(self) -> None:
        """For the next one, or for an interrupt; ClusterError as for :attr:`seen`."""
        while not self.seen:
            self._changed.wait(1.0)

    def _look(self) -> None:
        try:
            self._watch_all()
        except (OSError, RuntimeError) as error:  # the latter: of watchfiles itself
            self._trouble = str(error)
            self._changed.set()

    def _watch_all(self) -> None:
        """Beside a folder that may not be read watchfiles sees no change at all, unless it is told each of the rest."""
        try:
            self._watch([self._root], recursive=True)
        except PermissionError:
            below = {Path(folder) for folder, _, _ in os.walk(self._root)}
            self._watch([*{self._root, *below}], recursive=False)

    def _watch(self, folders: list[Path], *, recursive: bool) -> None:
        import watchfiles  # 40 ms that every other verb does without

        watched = watchfiles.watch(
            *folders,
            watch_filter=watchfiles.PythonFilter(),
            stop_event=self._stopped,
            raise_interrupt=False,
            recursive=recursive,
        )
        for _ in watched:
            self._changed.set()


def run_anew(
    target: str, load: Callable[[], Submission], watch_of: Callable[[Submission], Watch]
) -> tuple[Watch, Outcome]:
    """Runs it again after each change, until a signal ends it; returns the last run, and how that ended.

    Raises:
        NotFound: there has never been such a file.
        ClusterError: changes cannot be seen.
    """
    root = loader.root_of(target)
    awaited: tuple[type[ArdeaError | OSError], ...] = (UserError,)
    with Changes(root) as changes:
        while True:
            changes.clear()
            try:
                watch = watch_of(load())
            except awaited as error:
                console.report(error)
            else:
                watch.outdated = lambda: changes.seen
                outcome = watch.run_to_end()
                if watch.interrupted:
                    return watch, outcome
            awaited = UserError, NotFound, OSError  # a file that was there may come back
            if not changes.seen:
                console.say("waits for a change of its files; Ctrl-C ends it")
            changes.wait()
            loader.forget(root)

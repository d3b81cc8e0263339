"""Starts the processes of one supervisor, each with a life that no former one had."""

from __future__ import annotations

import logging
import os
import selectors
from collections.abc import Iterable, Sequence

from ardea import logs
from ardea.supervision import kernel, records
from ardea.supervision.child import Child, environment, reap_orphans
from ardea.supervision.folder import Folder
from ardea.supervision.forkserver import Forkserver
from ardea.supervision.spec import ProcessSpec

logger = logging.getLogger(logs.SUPERVISOR)


class Spawner:
    """Forks them from a process that has their modules loaded, where there is one.

    Attributes:
        lives: of those that it has started.
    """

    def __init__(self, files: Folder, id_: str, selector: selectors.BaseSelector) -> None:
        """``id_``: what they know their supervisor by; ``selector``: calls what is registered with each file."""
        self._files, self._id = files, id_
        self._selector = selector
        self._forkserver: Forkserver | None = None
        self._adopts = os.getpid() == 1
        self.lives: dict[str, int] = {}

    def preload(self, modules: Sequence[str]) -> None:
        """Starts the forkserver, if there is to be one; until it is :attr:`ready`, processes start without it."""
        if not modules or not kernel.adopt():
            return
        self._adopts = True
        try:
            self._forkserver = Forkserver(modules, environment(cores=1))
            self._selector.register(self._forkserver, selectors.EVENT_READ, self._on_forkserver)
        except OSError as error:
            logger.warning("forkserver: could not be started: %s; the processes go on", error)

    @property
    def ready(self) -> bool:
        """Whether the forkserver has nothing left to load; so has one that is not there."""
        return self._forkserver is None or self._forkserver.ready

    def _on_forkserver(self) -> None:
        if self._forkserver is not None and not self._forkserver.hear():
            self.give_up("it has ended")

    def give_up(self, reason: str) -> None:
        """Goes on without the forkserver: processes start more slowly then, and take no harm."""
        assert self._forkserver is not None
        logger.warning("forkserver: %s; processes are started without it", reason)
        self._selector.unregister(self._forkserver)
        self._forkserver.close()
        self._forkserver = None

    def spawn(self, spec: ProcessSpec) -> Child:
        """Starts its next life.

        Raises:
            OSError: it cannot be started, for example because there is no such command.
            ClusterError: its lives are unknown.
        """
        folder, lock, name = self._files.path, self._files.lock_fd, spec.name
        records.take_reason(folder, name)
        self.lives[name] = records.raise_life(folder, name)
        env = {
            **environment(spec.cores),
            **spec.env,
            "ARDEA_NAME": name,
            "ARDEA_LIFE": str(self.lives[name]),
            "ARDEA_FOLDER": str(folder),
            "ARDEA_SUPERVISOR_ID": self._id,
        }
        if self._forkserver is not None and self._forkserver.can_fork(spec.argv, env):
            try:
                return Child.spawn(spec.argv, env, lock, self._forkserver.fork)
            except OSError as error:
                self.give_up(str(error))
        return Child.spawn(spec.argv, env, lock)

    def reap(self, children: Iterable[Child]) -> None:
        """Takes the dead that are neither ``children`` nor its own, where this process adopts orphans."""
        if self._adopts:
            forkserver = {self._forkserver.pid} if self._forkserver is not None else set()
            reap_orphans({child.pid for child in children} | forkserver)

    def close(self) -> None:
        """Ends the forkserver; what it has forked goes on."""
        if self._forkserver is not None:
            self._forkserver.close()

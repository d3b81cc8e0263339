"""Processes follow the plan that a master has written: the seam between masters and those who keep processes.

A master decides what runs where and writes that to the state; it starts nothing.  Whoever keeps the processes watches
the state, and brings them in line, as often as the plan changes (docs/updating.md).
"""

from __future__ import annotations

import logging
from typing import Protocol

from ardea.errors import ArdeaError, StateError
from ardea.plan.definition import Definition
from ardea.state import StateManager, Versioned, paths

log = logging.getLogger("ardea.scheduler")


class Processes(Protocol):
    """The containers of one topology, and the processes in them."""

    def follow(self, definition: Definition) -> object:
        """Starts and stops containers and processes until they are those of the plan.  Can be repeated.

        An instance whose ``definition.build`` is another than it was started with is started again.

        Raises:
            OSError, ArdeaError: not now; it is called again.
        """


class Follower:
    """Watches one topology's plan for the processes that keep it."""

    def __init__(self, state: StateManager, present: Definition, processes: Processes) -> None:
        """``present`` is what runs.  The owner of ``state`` polls it."""
        self._processes = processes
        self._epoch = present.epoch
        self._path = paths.physical_plan(present.topology)
        self._wanted: Definition | None = None
        state.watch(self._path, self._seen)

    def step(self) -> Definition | None:
        """After each poll: follows the newest plan; returns it if it is another one now."""
        wanted = self._wanted
        if wanted is None:
            return None
        try:
            self._processes.follow(wanted)
        except (OSError, ArdeaError) as error:
            log.error("plan %d cannot be followed yet, and is tried again: %s", wanted.epoch, error)
            return None
        log.info("processes follow plan %d", wanted.epoch)
        self._epoch, self._wanted = wanted.epoch, None
        return wanted

    def _seen(self, node: Versioned | None) -> None:
        if node is None:
            return
        try:
            definition = Definition.unpacked(node.data, self._path)
        except StateError as error:
            log.error("%s", error.message)
            return
        self._wanted = definition if definition.epoch > self._epoch else None

"""The author's component from ``initialize`` to ``close``, and what the master wants of its task."""

from __future__ import annotations

from ardea.context import hook_class
from ardea.errors import ArdeaError, printable
from ardea.heron_instance.environment import Environment
from ardea.loader import place_of
from ardea.ready_made import prepare


class Lifecycle:
    """Of one task.

    ``came_up``: in this process ``initialize`` has succeeded, if not for the present object.  ``hold`` is the number of
    the order to hold, while it holds.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self.initialized = False
        self.came_up = False
        self.closed = False
        self.active = False
        self.ending = False
        self.draining = False
        self.hold = 0

    def take_over(self, former: Lifecycle) -> None:
        """What the master wants of the task still holds."""
        self.active, self.draining, self.hold = former.active, former.draining, former.hold
        self.came_up = former.came_up

    @property
    def running(self) -> bool:
        """Whether the component is between ``initialize`` and ``close``."""
        return self.initialized and not self.closed

    def initialize(self) -> None:
        """Initialises the component, which may add task hooks."""
        env, self.initialized = self._env, True
        for name in env.settings.task_hooks:
            env.context.add_task_hook(hook_class(name)())
        prepare(env.component, env.context)
        env.component.initialize(dict(env.config), env.context)
        self.came_up = True
        env.states.complete()

    def close(self, *, over: bool) -> None:
        """Closes the component, once; ``over``: the topology is."""
        if self.running:
            self.closed = True
            self._env.context.topology_over = over
            self._env.component.close()
            if self._env.commits is not None:
                self._env.commits.close()
            for hook in self._env.context.hooks:
                hook.cleanup()

    def fails_topology(self, error: BaseException) -> str:
        """Why the topology cannot go on after an error that ends the process; empty: it is started again."""
        if isinstance(error, ArdeaError) and error.lasts:
            place, hint = place_of(error, authors=True), f"; {error.hint}" if error.hint else ""
            return f"{self._env.task.name} cannot go on: {error.message}" + (f" at {place}" if place else "") + hint
        if self.ending:
            what = f"{type(error).__name__}: {printable(error)} at {place_of(error)}"
            return f"{self._env.task.name} died as it ended: {what}"
        return ""

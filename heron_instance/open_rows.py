"""The rows of one spout task that are not done with, and how many more there may be."""

from __future__ import annotations

from ardea.heron_instance.congestion import CongestionWindow
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.trees import OpenTrees, Replays


class OpenRows:
    """Open trees, and rows that wait to be sent again.

    ``owed`` are those that the author has promised to send again, while the task is on hold.
    """

    def __init__(self, env: Environment) -> None:
        self._settings = env.settings
        self.tracked = env.settings.reliability_mode == "ATLEAST_ONCE" and env.settings.ackers != 0
        self.acked_at_once = not self.tracked and env.snapshots is None
        self.trees = OpenTrees(env.task.task, env.rng)
        self.replays = Replays()
        self.congestion = CongestionWindow(env.settings.message_timeout, env.clock())
        self.owed = 0

    @property
    def waiting(self) -> int:
        """Rows waiting to be sent again, by the executor or by the author."""
        return len(self.replays) + self.owed

    @property
    def count(self) -> int:
        """All of them."""
        return self.trees.pending + self.waiting

    def budget(self, now: float) -> int:
        """How many more rows may be open."""
        settings, trees = self._settings, self.trees
        if not self.tracked:
            return settings.batch_rows
        pending, size = self.count, trees.pending_bytes + self.replays.size
        room = settings.max_spout_pending - pending
        if pending:
            room = min(room, (settings.max_spout_pending_bytes - size) // max(1, size // pending))
        return min(room, trees.room, self.admitted(now), settings.batch_rows)

    def admitted(self, now: float) -> int:
        """How many more trees the congestion window lets be open."""
        return self.congestion.rows(now) - self.trees.pending

    def forget_pace(self, now: float) -> None:
        """Most trees are lost at once and will be sent again; the tasks that come instead may be slower."""
        self.congestion = CongestionWindow(self._settings.message_timeout, now)

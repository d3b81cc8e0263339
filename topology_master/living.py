"""Which incarnations of tasks and stream managers the master has heard of last."""

from __future__ import annotations

from collections.abc import Mapping


class Living:
    """``places``: the container of each task.  A life of 0 has not been heard of."""

    def __init__(self, places: Mapping[int, int]) -> None:
        self._places = dict(places)
        self.tasks = dict.fromkeys(places, 0)
        self.managers = dict.fromkeys(places.values(), 0)

    def replanned(self, places: Mapping[int, int]) -> None:
        """Another plan: no task has been heard of that works by it."""
        self._places = dict(places)
        self.tasks = dict.fromkeys(places, 0)
        self.managers = {container: self.managers.get(container, 0) for container in places.values()}

    def task_rose(self, task: int, life: int) -> bool:
        """Whether this life is a newer one."""
        if life <= self.tasks.get(task, life):
            return False
        self.tasks[task] = life
        return True

    def manager_rose(self, container: int, life: int) -> bool:
        """Whether this life is a newer one."""
        if life <= self.managers.get(container, life):
            return False
        self.managers[container] = life
        return True

    def manager_met(self, container: int) -> bool:
        """Some life of it begins: it has to say which one, and who lives in its container; whether one was known."""
        known = self.managers.get(container, 0) > 0
        if known:
            self.managers[container] = 0
            self.tasks.update((task, 0) for task, place in self._places.items() if place == container)
        return known

    def risen_alone(self, tasks: Mapping[int, int], managers: Mapping[int, int]) -> list[int]:
        """Of these lives of tasks, those that are over though that of their manager among these is not."""
        return [
            task
            for task, life in tasks.items()
            if self.tasks.get(task, life) != life
            and managers.get(self._places[task]) == self.managers.get(self._places[task])
        ]

    @property
    def silent(self) -> list[int]:
        """The tasks that have no life yet."""
        return [task for task, life in self.tasks.items() if not life]

    @property
    def all_heard(self) -> bool:
        """Whether each of them has a life."""
        return all(self.tasks.values()) and all(self.managers.values())

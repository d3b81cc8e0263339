"""Restarts the processes of containers in place: the supervisor in each container is told to, through exec."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from ardea.errors import ClusterError, NotFound, TimedOut
from ardea.plan.names import MASTER_CONTAINER
from ardea.protocol.incarnations import life_of
from ardea.scheduler.control import ControlPort, Status, waiting_for
from ardea.scheduler.kubernetes import layout, names
from ardea.scheduler.kubernetes.client import Cluster, Manifest
from ardea.scheduler.kubernetes.decisions import container_statuses
from ardea.scheduler.kubernetes.topologies import Found, pods_of

LOOK_EVERY = 0.5
_ORDER = ("python", "-P", "-c", "import os, signal; os.kill(1, signal.SIGUSR2)")


class Restart:
    """One restart; the same again restarts again."""

    def __init__(
        self,
        cluster: Cluster,
        found: Found,
        control: ControlPort,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster, self._found, self._control = cluster, found, control
        self._clock, self._pause = clock, pause

    def containers(self) -> list[int]:
        """Those that the topology has, 0 (the masters') included."""
        return [MASTER_CONTAINER, *(plan.number for plan in self._found.inputs.containers)]

    def restart(self, containers: Sequence[int], patience: float) -> None:
        """Returns when every process of these containers is back, and the topology complete.

        Raises:
            NotFound: there is no such container.
            TimedOut: they are not back after ``patience`` seconds; they are still being started.
        """
        known = self.containers()
        if unknown := [number for number in containers if number not in known]:
            raise NotFound(
                f"{self._found.id} has no container {unknown[0]}; it has {', '.join(map(str, known))}",
                hint="container 0 is the masters'",
            )
        before = self._status()
        deadline = self._clock() + patience
        told = {
            (self._number(pod), container)
            for pod in self._pods(containers)
            for container in self._running(pod)
            if self._order(pod["metadata"]["name"], container, deadline)
        }
        tasks = {
            instance.name
            for plan in self._found.inputs.containers
            for instance in plan.instances
            if (plan.number, names.instance_names(plan.instances)[instance.task]) in told
        }
        while missing := self._missing(before, tasks):
            if self._clock() >= deadline:
                raise TimedOut(
                    f"{self._found.id} is not complete {patience:g} s after the restart: it waits for {missing}; "
                    "its supervisors go on starting them",
                    hint=f"`ardea describe {self._found.id} -n {self._cluster.namespace}` shows how far they are",
                )
            self._pause(LOOK_EVERY)

    def _pods(self, containers: Sequence[int]) -> list[Manifest]:
        return [pod for pod in pods_of(self._cluster, self._found.id) if self._number(pod) in containers]

    @staticmethod
    def _number(pod: Manifest) -> int:
        return int(pod["metadata"]["labels"][names.CONTAINER])

    @staticmethod
    def _running(pod: Manifest) -> list[str]:
        """The containers with a supervisor that run; one that does not is being started in any case."""
        if pod.get("status", {}).get("phase") != "Running":
            return []
        run = {status["name"] for status in container_statuses(pod) if "running" in status.get("state", {})}
        spec: dict[str, Any] = pod["spec"]
        ours = [*layout.SIDECARS, *(container["name"] for container in spec["containers"])]
        return [name for name in ours if name in run]

    def _order(self, pod: str, container: str, deadline: float) -> bool:
        """Tells the supervisor; False: its container has ended meanwhile."""
        while True:
            try:
                return self._told(pod, container)
            except (NotFound, ClusterError):
                if self._clock() >= deadline:
                    raise
            self._pause(LOOK_EVERY)

    def _told(self, pod: str, container: str) -> bool:
        """One attempt; NotFound or a ClusterError: it failed, and the container may run."""
        try:
            self._cluster.execute(pod, container, _ORDER)
        except (NotFound, ClusterError):
            seen = [each for each in pods_of(self._cluster, self._found.id) if each["metadata"]["name"] == pod]
            if any(container in self._running(each) for each in seen):
                raise
            return False
        return True

    def _missing(self, before: Status | None, tasks: set[str]) -> str:
        """For whom it waits; empty when all are back."""
        now = self._status()
        if now is None:
            return "the topology master"
        known = before.tasks if before is not None else {}
        lives = {name: life_of(task.life) for name, task in now.tasks.items()}
        late = sorted(name for name in tasks if name in known and lives.get(name, 0) <= life_of(known[name].life))
        return waiting_for(now).removeprefix("waiting for ") or ", ".join(late[:4])

    def _status(self) -> Status | None:
        """None: the master does not answer now, or cannot be asked."""
        with contextlib.suppress(ClusterError):
            return self._control.ask("status")
        return None

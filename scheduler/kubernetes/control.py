"""The control port of a topology on Kubernetes: asked by a small program inside a master's pod."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from itertools import count

from ardea.errors import NotFound, Unreachable, UserError
from ardea.plan.names import MASTER_CONTAINER, TOPOLOGY_MASTER
from ardea.protocol.checked import MalformedError
from ardea.protocol.wire_pb2 import Ask
from ardea.scheduler.control import PATIENCE, Status, answered
from ardea.scheduler.kubernetes import inside, layout, names, objects
from ardea.scheduler.kubernetes.client import Cluster, Manifest
from ardea.scheduler.kubernetes.exec import Exec
from ardea.scheduler.kubernetes.topologies import Found, master_pods
from ardea.transport import holder

STARTS_WITHIN = 30.0
"""Seconds that the program has to start in a container of a tenth of a CPU."""
ANSWERS_WITHIN = 2.0
"""Seconds that a master has to answer before it is looked where the acting one is."""
GRACE = 1.0
"""Seconds that the program has to say that nobody has answered."""
LOOK_EVERY = 0.5
_PROGRAM = ("python", "-P", "-m", "ardea.scheduler.kubernetes.inside")


class Port:
    """A :class:`ardea.scheduler.control.ControlPort`; the program runs until it is closed.  Belongs to one thread."""

    def __init__(
        self,
        cluster: Cluster,
        found: Found,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster, self._found, self._clock, self._pause = cluster, found, clock, pause
        self._program: Exec | None = None
        self._numbers = count(1)

    def ask(self, verb: str, *, patience: float = PATIENCE, body: bytes = b"", **arguments: str) -> Status:
        """See :class:`ControlPort`.  The first question takes longer: the program has to start."""
        ask = Ask(verb=verb, arguments=arguments, body=body)
        failure: Unreachable | None = None
        with contextlib.suppress(Unreachable):  # it is tried again below
            self._start()
        deadline = self._clock() + patience
        while (left := deadline - self._clock()) > 0:
            try:
                if (status := self._answer(self._start(), ask, left)) is not None:
                    return status
            except Unreachable as error:
                failure = error
                self.close()
            self._pause(LOOK_EVERY)
        raise failure or Unreachable(
            f"the master of {self._found.id} did not answer `{verb}` within {patience:g} s",
            hint=f"`ardea logs {self._found.id} -n {self._cluster.namespace}` shows what its masters say",
        )

    def close(self) -> None:
        """Ends the program.  Can be repeated."""
        if self._program is not None:
            self._program.close()
            self._program = None

    def _answer(self, program: Exec, ask: Ask, left: float) -> Status | None:
        """None: the master that acted when this was asked has not answered.

        Raises:
            Unreachable: the program has said nothing at all: it is frozen, or its connection is gone.
        """
        root = self._cluster.find("ConfigMap", str(self._found.root["metadata"]["name"]))
        if root is None:
            raise NotFound(f"{self._found.id} is gone")
        status = objects.status_of(root)
        if status is None or not status.master:
            return None  # none acts yet
        number, key = next(self._numbers), self._found.inputs.definition.keys.get(holder(MASTER_CONTAINER), "")
        seconds = min(ANSWERS_WITHIN, left)
        program.write(inside.question(number, status.master, key, ask, seconds))
        deadline, silent = self._clock() + seconds + GRACE, True
        while (line := program.read_line(max(0.0, deadline - self._clock()))) is not None:
            silent = False
            try:
                answers, frames = inside.answer(line)
            except (ValueError, KeyError, TypeError):
                continue  # something in the image prints
            if answers == number:
                return self._read(frames)
        if silent:
            raise Unreachable(f"the program that asks the masters of {self._found.id} says nothing any more")
        return None

    def _read(self, frames: list[bytes] | None) -> Status | None:
        try:
            return answered(frames, self._found.id) if frames else None
        except MalformedError:
            return None

    def _start(self) -> Exec:
        """The program, in the pod of a master that runs, whichever that is.

        Raises:
            Unreachable: none does, or its image has no such program.
        """
        failure: Unreachable | None = None
        for pod in master_pods(self._cluster, self._found.id) if self._program is None else ():
            try:
                self._program = self._started(pod)
                break
            except (NotFound, UserError, Unreachable) as error:  # the pod, or its container, is gone by now
                failure = Unreachable(error.message, hint=error.hint)
        if self._program is not None:
            return self._program
        where = f"-n {self._cluster.namespace} -l {names.of_topology(self._found.id)}"
        raise failure or Unreachable(
            f"no pod of {self._found.id}'s masters runs in namespace {self._cluster.namespace}",
            hint=f"`kubectl get pods {where}` shows what they do",
        )

    def _started(self, pod: Manifest) -> Exec:
        argv = [*_PROGRAM, str(layout.topology_folder(self._found.id))]
        program = self._cluster.open(pod["metadata"]["name"], TOPOLOGY_MASTER, argv, stdin=True)
        deadline = self._clock() + STARTS_WITHIN
        try:
            while (left := deadline - self._clock()) > 0:
                if program.read_line(left) == inside.READY:
                    return program
        except BaseException:
            program.close()
            raise
        program.close()
        raise Unreachable(f"{pod['metadata']['name']} cannot be asked: nothing starts in it within {STARTS_WITHIN:g} s")

"""Ends a topology on Kubernetes, with a living master or without, and leaves no object of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ardea.errors import ClusterError, Conflict, NotFound, TimedOut, Unreachable, Unrecognized
from ardea.scheduler.kubernetes import names, objects, pods
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.root_object import store_of
from ardea.scheduler.kubernetes.topologies import Found, master_pods
from ardea.scheduler.kubernetes.waiting import BORNE_FOR
from ardea.scheduler.patience import Patience

MASTER_WITHIN = 15.0
"""Seconds beyond those of open tuples that a living master has to end the topology and to remove its paths."""
SOON = 5.0
"""Seconds that masters take which nobody scrapes."""
TOLD_WITHIN = 90.0
"""Seconds that its masters have after the end, which stay until a Prometheus that scrapes them has seen it."""
GONE_WITHIN = 90.0
LOOK_EVERY = 0.5

T = TypeVar("T")


class Killing:
    """One kill.  Can be repeated: whatever a former one left half done is found done, or done again."""

    def __init__(
        self,
        cluster: Objects,
        found: Found,
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``say`` takes a sentence for people."""
        self._cluster, self._found, self._say = cluster, found, say
        self._patience = Patience(LOOK_EVERY, clock, pause)
        self._name = str(found.root["metadata"]["name"])
        self._uid = str(found.root["metadata"]["uid"])
        self._store = store_of(found.inputs.definition)

    def kill(self, wait_secs: float) -> None:
        """Marks the root, lets a living master drain for ``wait_secs``, deletes the root and waits until all is gone.

        Raises:
            Conflict: another topology has the name by now; nothing of it was changed.
            TimedOut: something of it is still there; Kubernetes goes on removing it.
            Unreachable, Unrecognized: the cluster has given no answer for a while.
        """
        topology = self._found.id
        if self._found.topology.running:
            mark = {"uid": self._uid, "annotations": {objects.KILL: f"{wait_secs:g}"}}
            self._change("ConfigMap", self._name, mark)
            if self._masters():
                self._say(f"{topology}: no new tuples; open ones have {wait_secs:g} s")
                if self._patience.within(wait_secs + MASTER_WITHIN, self._ended):
                    self._wait_for_masters()
                else:
                    self._say(f"{topology}: its master does not end it; Kubernetes does")
            else:
                self._say(f"{topology} has no living master; what the state manager keeps of it is removed later")
        if left := self._snapshots():
            self._say(f"{topology}: its snapshots stay in {left}; no master of it has deleted them")
        self._own()
        self._answered(partial(self._cluster.delete, "ConfigMap", self._name, uid=self._uid, foreground=True))
        if not self._patience.within(GONE_WITHIN, self._gone):
            left = ", ".join(self._left())
            raise TimedOut(
                f"{topology}: {left} still there after {GONE_WITHIN:g} s; Kubernetes goes on removing it",
                hint="a pod on a node that is gone stays until the node is back, or `kubectl delete pod --force`",
            )

    def _own(self) -> None:
        """What kubectl has made of a file is nobody's: it shall go with the root as everything else."""
        owner = [pods.reference(self._name, self._uid)]
        for kind in ("ConfigMap", "Job", "Secret"):
            for manifest in self._there(kind):
                metadata = manifest["metadata"]
                if metadata["uid"] != self._uid and not metadata.get("ownerReferences"):
                    with contextlib.suppress(Conflict, NotFound):  # somebody deletes it at this moment
                        self._change(kind, metadata["name"], {"uid": metadata["uid"], "ownerReferences": owner})

    def _wait_for_masters(self) -> None:
        def gone() -> bool:
            return not self._masters()

        if self._store:
            self._patience.within(TOLD_WITHIN, lambda: self._snapshots() != self._store or gone())
        if not self._patience.within(SOON, gone):
            self._say(f"{self._found.id} has ended; its masters stay until a Prometheus that scrapes them has seen it")
            self._patience.within(TOLD_WITHIN, gone)

    def _ended(self) -> bool:
        if (root := self._root()) is None:
            return True
        status = objects.status_of(root)
        return (status is not None and status.final) or not self._masters()

    def _snapshots(self) -> str:
        """Where they lie; empty: a master has deleted them, or there never were any."""
        if (root := self._root()) is None:
            return ""
        status = objects.status_of(root)
        return status.snapshots if status is not None and status.removed else self._store

    def _gone(self) -> bool:
        return not self._left()

    def _left(self) -> list[str]:
        kinds = ("ConfigMap", "Job", "Pod", "Secret")
        return [f"{kind} {manifest['metadata']['name']}" for kind in kinds for manifest in self._there(kind)]

    def _there(self, kind: str) -> list[Manifest]:
        """The topology's; of the Secrets none where this account may not list them: they go with the root."""
        try:
            return self._answered(partial(self._cluster.list, kind, names.of_topology(self._found.id)))
        except (Unreachable, Unrecognized):
            raise
        except ClusterError:
            if kind != "Secret":
                raise
            return []

    def _root(self) -> Manifest | None:
        """None: it is gone, and another topology may have the name."""
        root = self._answered(partial(self._cluster.find, "ConfigMap", self._name))
        return root if root is not None and root["metadata"]["uid"] == self._uid else None

    def _masters(self) -> list[Manifest]:
        return self._answered(partial(master_pods, self._cluster, self._found.id))

    def _change(self, kind: str, name: str, metadata: Manifest) -> None:
        self._answered(partial(self._cluster.patch, kind, name, {"metadata": metadata}))

    def _answered(self, ask: Callable[[], T]) -> T:
        """What the cluster answers; for a while it is asked again while it does not, whatever it has done by then."""
        clock, pause = self._patience.clock, self._patience.pause
        given_up = clock() + BORNE_FOR
        while True:
            try:
                return ask()
            except (Unreachable, Unrecognized) as error:
                if clock() >= given_up:
                    raise type(error)(error.message, hint="the same again finishes what is half done") from error
            pause(LOOK_EVERY)

"""What an update brings into a namespace and takes out of it, beside other updates that do the same.

Code and keys are shared by whoever wants the same.  Each that brings one, or finds it there, writes into it for which
plan it is needed; what a later plan needs, or somebody has written into meanwhile, is not removed (decision 44).
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable

from ardea.errors import Conflict, NotFound
from ardea.scheduler.kubernetes import names
from ardea.scheduler.kubernetes.client import Manifest, Objects

ATTEMPTS = 5
"""How often an object may come and go while it is brought."""


class Provision:
    """The objects of one update."""

    def __init__(self, cluster: Objects, topology_id: str, update: str) -> None:
        """``update`` names it among others."""
        self._cluster, self._topology, self._update = cluster, topology_id, update
        self._made: list[Manifest] = []

    def bring(self, manifests: Iterable[Manifest]) -> None:
        """Makes what is not there yet, and keeps others from removing what is; all or nothing.

        Raises:
            Conflict: another update makes a key of its own for the same container at this moment.
        """
        try:
            for manifest in manifests:
                self._bring(manifest)
        except BaseException:
            self.withdraw()
            raise

    def withdraw(self, used: Collection[str] = ()) -> None:
        """Removes what this update has made, if nobody else needs it by now; ``used``: names that stay in any case."""
        for manifest in self._made:
            if manifest["metadata"]["name"] not in used:
                self._remove(manifest)

    def sweep(self, plan: int, used: Collection[str]) -> None:
        """Removes what neither this plan, which is in force, nor a later one needs; ``used``: names in this one."""
        there = [
            {**manifest, "kind": kind}  # members of a list do not say it
            for kind, role in (("ConfigMap", names.CODE), ("Secret", names.KEY))
            for manifest in self._cluster.list(kind, f"{names.of_topology(self._topology)},{names.ROLE}={role}")
        ]
        for manifest in there:
            if manifest["metadata"]["name"] not in used and _plan_of(manifest) <= plan:
                self._remove(manifest)

    def _bring(self, wanted: Manifest) -> None:
        metadata = wanted["metadata"]
        marked = {**metadata, "annotations": {**metadata["annotations"], names.UPDATE: self._update}}
        for _ in range(ATTEMPTS):
            with contextlib.suppress(Conflict):
                self._made.append(self._cluster.create({**wanted, "metadata": marked}))
                return
            if self._claim(wanted):
                return
        raise Conflict(
            f"{wanted['kind']} {metadata['name']} comes and goes: others update {self._topology} at this moment; "
            "nothing was changed",
            hint="repeat the command",
        )

    def _claim(self, wanted: Manifest) -> bool:
        """Writes into an object that is there; False: it has changed, or is gone."""
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        there = self._cluster.find(kind, name)
        if there is None:
            return False
        if there.get("data") != wanted.get("data"):
            raise Conflict(
                f"another update of {self._topology} has made {kind} {name} at this moment; nothing was changed",
                hint="repeat the command",
            )
        marks = {names.PLAN: str(max(_plan_of(there), _plan_of(wanted))), names.UPDATE: self._update}
        version = there["metadata"]["resourceVersion"]
        try:
            self._cluster.patch(kind, name, {"metadata": {"resourceVersion": version, "annotations": marks}})
        except (Conflict, NotFound):
            return False
        return True

    def _remove(self, seen: Manifest) -> None:
        """This very object, as it was seen."""
        metadata = seen["metadata"]
        self._cluster.delete(seen["kind"], metadata["name"], uid=metadata["uid"], version=metadata["resourceVersion"])


def _plan_of(manifest: Manifest) -> int:
    """The latest plan that needs it; 0: it was made before that was written down."""
    return int((manifest["metadata"].get("annotations") or {}).get(names.PLAN, 0))

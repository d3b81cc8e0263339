"""The health of a topology of a cluster: what its master says, and what its objects say.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ardea.health import Health, HealthState, Trouble
from ardea.health.processes import CRASH_LOOP
from ardea.health.words import assessed
from ardea.plan.names import MASTER_CONTAINER, container_name
from ardea.scheduler.kubernetes import names, objects
from ardea.scheduler.kubernetes.client import Manifest
from ardea.scheduler.kubernetes.decisions import container_statuses
from ardea.scheduler.kubernetes.describe import why_ended
from ardea.scheduler.kubernetes.lease import VALID_SECS, holder, renewed
from ardea.scheduler.kubernetes.waiting import trouble_of

CONDITION = f"{names.DOMAIN}/Healthy"
"""The type of the condition in which a pod says how it is doing."""
MOST, LONGEST = 50, 300
"""Troubles, and characters of each, that are written into a root: all its annotations have 256 KiB."""
NEW = 30.0
"""Seconds that a submitter has for making all objects of a topology."""
_KUBELET_BACKS_OFF = "CrashLoopBackOff"


def with_pods(said: Health | None, pods: Iterable[Manifest], refused: Mapping[int, str], *, came_up: bool) -> Health:
    """What a master says of its topology, and what the cluster says of its pods.

    Args:
        said: by the master; None: there is none.
        pods: all of the topology.
        refused: why the cluster makes no pod, by container.
        came_up: whether the topology was complete at least once.
    """
    found = [each for pod in pods if objects.deleted_at(pod) is None for each in pod_troubles(pod)]
    found += [Trouble(container_name(number), None, f"gets no pod: {why}") for number, why in refused.items()]
    explained = {trouble.who.partition("/")[0] for trouble in found}
    others = [trouble for trouble in (said.troubles if said else ()) if trouble.who not in explained]
    return assessed([*others, *found], came_up=came_up)


def bounded(health: Health) -> Health:
    """The first troubles, those that crash before others, and how many more there are."""
    shown = [msgspec.structs.replace(each, why=each.why[:LONGEST]) for each in health.troubles[:MOST]]
    if (more := len(health.troubles) - MOST) > 0:
        shown.append(Trouble(f"and {more:,} more", None, f"only the first {MOST} are written down"))
    return Health(health.state, shown)


def pod_troubles(pod: Manifest) -> list[Trouble]:
    """What keeps a pod, or a container of it, from running."""
    number = int(pod["metadata"]["labels"][names.CONTAINER])
    looping = [(status["name"], why) for status in container_statuses(pod) if (why := _crash_loop(status))]
    if looping:
        return [Trouble(f"{container_name(number)}/{name}", None, why, crashing=True) for name, why in looping]
    why = trouble_of(pod)
    return [Trouble(container_name(number), None, why)] if why else []


def is_over(root: Manifest) -> bool:
    """Whether the topology has ended, or ends now."""
    status = objects.status_of(root)
    return (status is not None and status.final) or objects.deleted_at(root) is not None


def without_master(
    root: Manifest, lease: Manifest | None, jobs: list[Manifest], pods: list[Manifest], now: datetime
) -> Health | None:
    """The health of a topology whose Lease is not valid; None: its masters are of a version that says nothing of it.

    ``jobs`` and ``pods`` are those of the topology.
    """
    status, name = objects.status_of(root), root["metadata"]["name"]
    made = datetime.fromisoformat(root["metadata"]["creationTimestamp"])
    if not jobs and (now - made).total_seconds() > NEW:
        gone = Trouble(name, None, "the root has no Jobs: nothing keeps the topology; `ardea kill` removes it")
        return Health(HealthState.ORPHANED, [gone])
    living = [pod for pod in pods if objects.deleted_at(pod) is None]
    masters = [pod for pod in living if pod["metadata"]["labels"].get(names.COMPONENT) == names.MASTER]
    said = [Trouble(pod["metadata"]["name"], None, why) for pod in masters if (why := condition_of(pod))]
    found = [*said, *(each for pod in living for each in pod_troubles(pod))]
    if lease is None and status is not None:
        if status.health is None:
            return None
        unseen = Trouble(
            name, None, "there is no Lease by which to see that a master acts; `helm upgrade` grants the right"
        )
        return Health(HealthState.UNREACHABLE, [unseen, *found])
    if lease is None:
        none = Trouble(container_name(MASTER_CONTAINER), made.timestamp(), "no master has acted yet")
        return assessed([*found, none], came_up=False)
    last = Trouble(holder(lease) or name, renewed(lease).timestamp(), "the master that acted has not been heard since")
    return Health(HealthState.UNREACHABLE, [last, *found])


def is_valid(lease: Manifest, now: datetime) -> bool:
    """Whether a master acts."""
    return (now - renewed(lease)).total_seconds() <= VALID_SECS


def is_of(lease: Manifest, root: Manifest) -> bool:
    """Whether it is this topology's; that of a former one of the name goes a little later than its root."""
    owners = lease["metadata"].get("ownerReferences", ())
    return any(owner["uid"] == root["metadata"]["uid"] for owner in owners)


def condition_of(pod: Manifest) -> str:
    """What a pod's own condition says is wrong; empty: nothing."""
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == CONDITION and condition["status"] == "False":
            return str(condition.get("message") or condition.get("reason") or CONDITION)
    return ""


def _crash_loop(status: dict[str, Any]) -> str:
    """Of a container that kubelet starts again and again, as its supervisor cannot: it was killed with the process."""
    last = (status.get("lastState") or {}).get("terminated")
    waiting = (status.get("state") or {}).get("waiting", {})
    restarts = int(status.get("restartCount", 0))
    if waiting.get("reason") != _KUBELET_BACKS_OFF or restarts < CRASH_LOOP:
        return ""
    return f"its container was started {restarts} times again: {why_ended(last) if last else _KUBELET_BACKS_OFF}"

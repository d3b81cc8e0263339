"""Whether a namespace is in order for topologies, and whether whoever asks may do what the verbs do."""

from __future__ import annotations

from collections.abc import Iterator

from ardea.errors import ArdeaError, ClusterError
from ardea.scheduler.kubernetes import capacity
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.submission import find_defaults
from ardea.scheduler.schedulers import Check

OLDEST = (1, 31)
"""Native sidecars and pod failure policies as topologies need them."""


def _each(resource: str, *verbs: str, part: str = "") -> tuple[tuple[str, str, str], ...]:
    return tuple((verb, resource, part) for verb in verbs)


_ASKS = (*_each("configmaps", "get"), *_each("pods", "list"), *_each("pods", "get", "create", part="exec"))
"""A master, by a program in its pod: the connection is made by GET."""
_OWNED = _each("configmaps", "update", part="finalizers")
"""Objects that the root owns, where the admission plugin ``OwnerReferencesPermissionEnforcement`` asks for it."""
RIGHTS = {
    "submit": (
        *_each("configmaps", "get", "list", "create", "patch", "delete"),
        *_each("secrets", "get", "list", "create", "patch", "delete"),
        *_each("jobs", "list", "create", "patch", "delete"),
        *_each("pods", "list"),
        *_each("events", "list"),
        *_OWNED,
    ),
    "list, describe": (
        *_each("configmaps", "list"),
        *_each("jobs", "list"),
        *_each("pods", "list"),
        *_each("events", "list"),
        *_each("leases", "get", "list"),
    ),
    "logs": _each("pods", "get", part="log"),
    "top, activate, restart, debug": _ASKS,
    "update": (
        *_ASKS,
        *_each("configmaps", "list", "create", "patch", "delete"),
        *_each("secrets", "get", "list", "create", "patch", "delete"),
        *_OWNED,
    ),
    "kill": (
        *_each("configmaps", "get", "list", "patch", "delete"),
        *_each("secrets", "list", "patch"),
        *_each("jobs", "list", "patch"),
        *_each("pods", "list"),
        *_OWNED,
    ),
}
_GROUPS = {"jobs": "batch", "leases": "coordination.k8s.io"}


def checks(cluster: Cluster) -> Iterator[Check]:
    """See :meth:`ardea.scheduler.schedulers.Scheduler.checks`."""
    version = cluster.version()
    yield Check("Kubernetes", version >= OLDEST, f"{version[0]}.{version[1]}; {OLDEST[0]}.{OLDEST[1]} is needed")
    yield _defaults(cluster)
    yield _nodes(cluster)
    yield from _rights(cluster)


def _defaults(cluster: Cluster) -> Check:
    try:
        defaults = find_defaults(cluster)
    except ArdeaError as error:
        return Check("defaults", False, error.message)
    if not defaults.image or not defaults.state:
        missing = f"none in namespace {cluster.namespace}: say --image and --state, or install the chart"
        return Check("defaults", False, missing)
    return Check("defaults", True, f"image {defaults.image}, state {defaults.state}")


def _nodes(cluster: Cluster) -> Check:
    """Which nodes there are is a right of the whole cluster, that many have not."""
    try:
        nodes = cluster.list("Node")
    except ClusterError:
        return Check("nodes", True, "may not be listed, so that submit cannot refuse a container that fits none")
    found = capacity.largest(nodes)
    return Check("nodes", found != capacity.NONE, found)


def _rights(cluster: Cluster) -> Iterator[Check]:
    for verbs, needed in RIGHTS.items():
        missing = [
            f"{verb} {resource}{'/' if part else ''}{part}"
            for verb, resource, part in needed
            if not cluster.may(verb, resource, _GROUPS.get(resource, ""), part)
        ]
        yield Check(f"rights: {verbs}", not missing, f"missing: {', '.join(missing)}" if missing else "granted")

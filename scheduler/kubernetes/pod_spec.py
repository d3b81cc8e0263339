"""Parts of a PodSpec that platform teams and authors add to Ardea's own: checked, and merged as ``kubectl patch`` does.

Pure.  What Ardea relies on cannot be changed (decision 78); docs/kubernetes.md has the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from ardea.errors import UserError
from ardea.scheduler.kubernetes.affinity import Affinity

KEY = "heron.kubernetes.pod.spec"
NAMESPACE = "topology.podSpec of the chart"
Fragment = Mapping[str, Any]
"""A part of a PodSpec, with the names of Kubernetes."""

_OURS = {
    "activeDeadlineSeconds": "a topology ends by itself, or by `ardea kill`",
    "automountServiceAccountToken": "masters need their account's token, and user code gets none",
    "ephemeralContainers": "`kubectl debug` makes them",
    "hostNetwork": "processes find one another by names that each pod has for itself",
    "hostPID": "process 1 of each container is its supervisor",
    "restartPolicy": "how a Job ends depends on it",
    "serviceAccount": "serviceAccounts of the chart says whose rights pods have",
    "serviceAccountName": "serviceAccounts of the chart says whose rights pods have",
    "shareProcessNamespace": "process 1 of each container is its supervisor",
    "terminationGracePeriodSeconds": "set heron.kubernetes.grace.secs",
}
"""Fields that nobody else sets, and why."""
_OF_TASKS = ("name", "securityContext", "resources", "ports")
"""What may be said of the containers of tasks."""
_INSTEAD = {
    "env": "set heron.kubernetes.env",
    "envFrom": "set heron.kubernetes.env.from",
    "volumeMounts": "set heron.kubernetes.volumes",
}
_PACKED = ("cpu", "memory", "ephemeral-storage")
_NAMED = {
    "volumes": "name",
    "initContainers": "name",
    "containers": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
}
"""Lists whose entries are merged one by one, and the field by which they are told apart."""
_UNITED = "tolerations"
METRICS_PORT = "metrics"
"""The name of the port at which a pod is scraped."""
_SPREAD = "topologySpreadConstraints"


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Alias(msgspec.Struct, frozen=True):
    ip: str


class _Resources(msgspec.Struct, frozen=True):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class _Container(_Named, frozen=True, rename="camel"):
    security_context: dict[str, Any] | None = None
    resources: _Resources | None = None
    volume_mounts: tuple[_Named, ...] | None = None
    ports: tuple[dict[str, Any], ...] | None = None


class _Shape(msgspec.Struct, frozen=True, rename="camel"):
    """Of what is looked at here; the API server knows the rest."""

    volumes: tuple[_Named, ...] | None = None
    init_containers: tuple[_Container, ...] | None = None
    containers: tuple[_Container, ...] | None = None
    image_pull_secrets: tuple[_Named, ...] | None = None
    host_aliases: tuple[_Alias, ...] | None = None
    tolerations: tuple[dict[str, Any], ...] | None = None
    topology_spread_constraints: tuple[dict[str, Any], ...] | None = None
    node_selector: dict[str, str | None] | None = None
    security_context: dict[str, Any] | None = None
    affinity: Affinity | None = None


def layered(
    namespace: Fragment, topology: Fragment, components: Mapping[str, Fragment], known: Collection[str]
) -> dict[str, Any]:
    """What all of these add to one pod; a later one wins over an earlier one.

    Args:
        namespace: what the chart says.
        topology: what the topology's configuration says.
        components: what those of the components say that have tasks in the pod.
        known: all components of the topology.

    Raises:
        UserError: one of them sets what is Ardea's, or is no part of a PodSpec; two components want different things.
    """
    _check(namespace, NAMESPACE, ())
    _check(topology, f"{KEY} of the topology", known)
    made = merged(namespace, topology)
    for number, (name, fragment) in enumerate(components.items()):
        _check(fragment, f"{KEY} of {name}", (name,))
        for other, former in list(components.items())[:number]:
            if where := _dispute(former, fragment):
                raise UserError(
                    f"{other} and {name} have tasks in one pod, and their {KEY} differ in {where}",
                    hint="set it for the whole topology, or let them be packed apart "
                    "(heron.class.packing.algorithm, topology.container.max.instances)",
                )
        made = merged(made, fragment)
    return made


def merged(below: Fragment, above: Fragment) -> dict[str, Any]:
    """``above`` over ``below``, as a strategic merge patch.

    Maps are merged, lists of named entries by name, tolerations added; None takes away; anything else is replaced.
    """
    lists = {key: value for key, value in above.items() if (key in _NAMED or key == _UNITED) and value is not None}
    made = _patched(below, {key: value for key, value in above.items() if key not in lists})
    for key, value in lists.items():
        there = made.get(key) or ()
        if key == _UNITED:
            made[key] = [*there, *(each for each in value if each not in there)]
        else:
            entries = _by_name(key, there)
            added = {name: _patched(entries.get(name, {}), entry) for name, entry in _by_name(key, value).items()}
            made[key] = list((entries | added).values())
    return made


def applied(pod: dict[str, Any], added: Fragment, tasks: Mapping[str, str], image: Mapping[str, str]) -> dict[str, Any]:
    """Ardea's PodSpec with what is added to it.

    Args:
        pod: Ardea's own, which spreads by one constraint, and prepares in the first init container.
        added: as :func:`layered` has made it.
        tasks: the component of each container that runs a task.
        image: the fields of an init container that names no image.

    Raises:
        UserError: a name is taken, or a volume is not there.
    """
    own = {field: _by_name(field, pod[field]).keys() for field in ("volumes", "initContainers", "containers")}
    _refuse_taken(added, "volumes", own["volumes"])
    _refuse_taken(added, "initContainers", own["initContainers"] | own["containers"])
    users = [entry if "image" in entry else {**image, **entry} for entry in added.get("initContainers", ())]
    _require_volumes(users, _by_name("volumes", added.get("volumes", ())))
    changes = _by_name("containers", added.get("containers", ()))
    prepare, *others = pod["initContainers"]
    (spread,) = pod[_SPREAD]
    return {
        **merged(pod, {key: value for key, value in added.items() if key not in ("initContainers", "containers")}),
        "initContainers": [prepare, *users, *others],
        "containers": [_changed(each, changes.get(tasks.get(each["name"], ""))) for each in pod["containers"]],
        _SPREAD: [{"labelSelector": spread["labelSelector"], **each} for each in added.get(_SPREAD, [spread])],
    }


def _check(fragment: Fragment, where: str, components: Collection[str]) -> None:
    for field, why in _OURS.items():
        if field in fragment:
            raise UserError(f"{where} cannot set {field}, which is Ardea's: {why}")
    try:
        shape = msgspec.convert(fragment, _Shape)
    except msgspec.ValidationError as error:
        raise UserError(f"{where} is no part of a PodSpec: {error}") from error
    for field, key in _NAMED.items():
        for name, count in Counter(entry[key] for entry in fragment.get(field) or ()).items():
            if count > 1:
                raise UserError(f"{where} has two {field} of the {key} {name}")
    for container in shape.containers or ():
        if container.name not in components:
            raise UserError(
                f"{where}: containers has {container.name}, and takes the names of components only "
                f"(here {', '.join(sorted(components)) or 'none'})",
                hint="a sidecar is one of initContainers with restartPolicy: Always; another container would keep the "
                "pod's Job from ending",
            )
    for entry in fragment.get("containers") or ():
        _check_task(entry, f"{where}, container {entry['name']},")


def _check_task(entry: Fragment, where: str) -> None:
    """Of the containers of a component's tasks."""
    for field in entry:
        if field not in _OF_TASKS:
            instead = _INSTEAD.get(field, f"{', '.join(_OF_TASKS[1:])} can be set")
            raise UserError(f"{where} cannot set {field}, which is Ardea's: {instead}")
    if any(port.get("name") == METRICS_PORT for port in entry.get("ports") or ()):
        raise UserError(
            f"{where} cannot name a port {METRICS_PORT}: each pod has one of that name, at which Ardea is scraped",
            hint="give yours another name, and let Prometheus scrape it by that",
        )
    for field in ("runAsUser", "runAsGroup"):
        if field in (entry.get("securityContext") or {}):
            raise UserError(
                f"{where} cannot set {field}: all processes of a pod run as one user",
                hint="set it in the securityContext of the pod",
            )
    for kind in ("requests", "limits"):
        for what in (entry.get("resources") or {}).get(kind) or {}:
            if what in _PACKED:
                raise UserError(
                    f"{where} cannot set {what}: a task gets what it was packed with",
                    hint="cpu=, ram= and disk= of spec(), or topology.component.cpumap, .rammap and .diskmap",
                )


def _refuse_taken(added: Fragment, field: str, taken: Collection[str]) -> None:
    for name in _by_name(field, added.get(field, ())):
        if name in taken:
            raise UserError(f"{field}: {name} is a name of Ardea's own in a pod; give yours another one")


def _require_volumes(containers: Iterable[Fragment], volumes: Collection[str]) -> None:
    for container in containers:
        for mount in container.get("volumeMounts") or ():
            if mount["name"] not in volumes:
                raise UserError(
                    f"init container {container['name']} mounts {mount['name']}, which nobody has added to its pod; "
                    f"added is {', '.join(sorted(volumes)) or 'none'}",
                    hint="volumes of heron.kubernetes.volumes are in pods with tasks, not in masters': set what needs "
                    f"them in {KEY} of components",
                )


def _changed(container: dict[str, Any], change: Fragment | None) -> dict[str, Any]:
    if not change:
        return container
    ports = [*container.get("ports", ()), *(change.get("ports") or ())]
    return _patched(container, {**change, "name": container["name"], "ports": ports or None})


def _patched(below: Fragment, above: Fragment) -> dict[str, Any]:
    """A JSON merge patch."""
    made = dict(below)
    for key, value in above.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, Mapping):
            there = made.get(key)
            made[key] = _patched(there if isinstance(there, Mapping) else {}, value)
        else:
            made[key] = value
    return made


def _dispute(one: Fragment, other: Fragment) -> str:
    """The path to what two fragments want differently; empty: nothing."""
    for key in sorted(one.keys() & other.keys() - {_UNITED}):
        mine, theirs = one[key], other[key]
        if key in _NAMED and mine is not None and theirs is not None:
            mine, theirs = _by_name(key, mine), _by_name(key, theirs)
        if (path := _difference(mine, theirs)) is not None:
            return ".".join((key, *path))
    return ""


def _difference(one: Any, other: Any) -> list[str] | None:
    """The path to where two values differ; None: nowhere."""
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return None if one == other else []
    for key in sorted(one.keys() & other.keys()):
        if (path := _difference(one[key], other[key])) is not None:
            return [key, *path]
    return None


def _by_name(field: str, entries: Iterable[Fragment]) -> dict[str, Any]:
    return {entry[_NAMED[field]]: entry for entry in entries}

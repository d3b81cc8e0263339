"""Whether the nodes of the cluster are large enough for the pods of a topology, even when they are empty.

A topology that has a pod for no node, or more pods than all nodes together have room for, is refused before anything of
it is made, unless its author says that the cluster brings nodes when they are asked for.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ardea.errors import ClusterError, UserError
from ardea.scheduler.kubernetes import pods
from ardea.scheduler.kubernetes.affinity import Affinity, allows
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs

CPU, MEMORY, DISK, PODS = "cpu", "memory", "ephemeral-storage", "pods"
_RESOURCES = (CPU, MEMORY, DISK)
_COUNTED = (*_RESOURCES, PODS)
_KEEPS_AWAY = ("NoSchedule", "NoExecute")
_COMES_AND_GOES = "node.kubernetes.io/"
_GROWS = "heron.kubernetes.nodes.grow=true goes on, for a cluster that brings larger nodes, or more, when asked"
_LESS = "ram=, cpu= and disk= of components say what a task asks for"
_EMPTY = f", even when they are empty, so not all can be scheduled; {_LESS}"

NONE = "none takes pods"

Amounts = Counter[str]
"""Thousandths of a core, bytes, and pods, by the names that Kubernetes gives them."""


def require(cluster: Objects, inputs: ManifestInputs) -> None:
    """Whoever may not list nodes hears nothing.

    Raises:
        UserError: a pod of the topology fits no node, or its pods do not fit the nodes together.
    """
    if inputs.settings.kubernetes_nodes_grow:
        return
    try:
        nodes = cluster.list("Node")
    except ClusterError:
        return
    wanted = pods.jobs(inputs, None)
    if said := shortage(nodes, [(job["metadata"]["name"], job["spec"]["template"]["spec"]) for job in wanted]):
        raise UserError(said, hint=_GROWS)


def shortage(nodes: Iterable[Manifest], wanted: Iterable[tuple[str, Manifest]]) -> str:
    """Pure.  ``wanted``: the name of a Job, and the spec of its pod.

    Empty: each fits a node, and nothing shows that they do not fit the nodes together.  Not every way to place them is
    tried: what is refused can never run, and what is not may wait for room none the less.
    """
    nodes, wanted = list(nodes), list(wanted)
    misfits = [(name, pod) for name, pod in wanted if not any(fits(pod, node) for node in nodes)]
    return _misfits_said(nodes, misfits) if misfits else _crowd(nodes, wanted)


def _crowd(nodes: list[Manifest], wanted: list[tuple[str, Manifest]]) -> str:
    """For people: why all nodes together cannot hold all pods; empty: they may."""
    open_ = [allocatable(node) for node in nodes if any(admits(node, pod) for _, pod in wanted)]
    total, sizes = Amounts(), dict[tuple[int, ...], list[str]]()
    for name, pod in wanted:
        asked = requests(pod)
        total += asked
        sizes.setdefault(tuple(asked[what] for what in _COUNTED), []).append(name)
    for size, names in sizes.items():
        number = sum(len(others) for other, others in sizes.items() if all(map(operator.ge, other, size)))
        least = {what: amount for what, amount in zip(_COUNTED, size, strict=True) if amount}
        places = sum(min(has[what] // amount for what, amount in least.items()) for has in open_)
        if places < number:
            return (
                f"{number} pods ask for as much as that of {names[0]} ({_shown(Amounts(least), _RESOURCES)}) or more, "
                f"and the nodes have room for {places} of these{_EMPTY}"
            )
    whole = sum(open_, Amounts())
    if lacking := [what for what in _RESOURCES if total[what] > whole[what]]:
        together, there = _shown(total, lacking), _shown(whole, lacking)
        return f"the {len(wanted)} pods ask for {together} together, and the nodes have {there}{_EMPTY}"
    return ""


def _misfits_said(nodes: list[Manifest], misfits: list[tuple[str, Manifest]]) -> str:
    name, pod = max(misfits, key=lambda misfit: requests(misfit[1])[MEMORY])
    others = f" (like {len(misfits) - 1} more)" if len(misfits) > 1 else ""
    if not (open_ := [node for node in nodes if admits(node, pod)]):
        labels = "".join(f" the label {key}={value} and" for key, value in pod.get("nodeSelector", {}).items())
        affine = " fits its affinity and" if "affinity" in pod else ""
        return (
            f"no node takes the pod of {name}{others}, so it cannot be scheduled: none{affine} has{labels} only taints "
            "that it tolerates; nodeSelector, affinity and tolerations of heron.kubernetes.pod.spec, and of "
            "topology.podSpec of the chart, say which nodes may"
        )
    asked = requests(pod)
    closest = min(open_, key=lambda node: _excess(asked, allocatable(node)))
    has = allocatable(closest)
    lacking = [what for what in _RESOURCES if asked[what] > has[what]]
    held = ", ".join(container["name"] for container in pod["containers"])
    return (
        f"no node is large enough for the pod of {name} ({held}){others}, even when it is empty, so it cannot be "
        f"scheduled: it asks for {_shown(asked, lacking)}, and {closest['metadata']['name']}, which comes closest, has "
        f"{_shown(has, lacking)}; more containers (--containers) make each of them smaller, and {_LESS}"
    )


def largest(nodes: Iterable[Manifest]) -> str:
    """For people: how many nodes take pods that tolerate nothing, and what the largest has."""
    open_ = [allocatable(node) for node in nodes if admits(node, {}) and not any(map(_passing, _taints(node)))]
    if not open_:
        return NONE
    most = max(open_, key=lambda has: (has[MEMORY], has[CPU]))
    return f"{len(open_)} take pods; the largest has {_shown(most, _RESOURCES)}"


def fits(pod: Manifest, node: Manifest) -> bool:
    """Whether a node may have this pod, and could if it had no other."""
    return admits(node, pod) and requests(pod) <= allocatable(node)


def admits(node: Manifest, pod: Manifest) -> bool:
    """Whether the node takes this pod, whatever its size, once it takes any: its labels and the taints that last."""
    labels = node["metadata"].get("labels") or {}
    if not pod.get("nodeSelector", {}).items() <= labels.items():
        return False
    if not allows(msgspec.convert(pod.get("affinity", {}), Affinity), node):
        return False
    lasting = [taint for taint in _taints(node) if not _passing(taint)]
    return all(any(_tolerates(each, taint) for each in pod.get("tolerations", ())) for taint in lasting)


def requests(pod: Manifest) -> Amounts:
    """As Kubernetes counts: sidecars and containers together, or the largest init container with what runs by then."""
    running, most = Amounts({PODS: 1}), Amounts()
    for container in pod.get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            running += _requested(container)
        else:
            most |= running + _requested(container)
    for container in pod["containers"]:
        running += _requested(container)
    return running | most


def allocatable(node: Manifest) -> Amounts:
    """What a node has for pods."""
    return _amounts(node.get("status", {}).get("allocatable") or {})


def _requested(container: Manifest) -> Amounts:
    """A limit alone is a request, too; one who adds a container may say neither."""
    resources = container.get("resources") or {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(found: Mapping[str, str]) -> Amounts:
    from kubernetes.utils import parse_quantity  # large, and nobody else needs it

    thousandths = {CPU: 1000}
    try:
        return Amounts({w: int(parse_quantity(found[w]) * thousandths.get(w, 1)) for w in _COUNTED if w in found})
    except ValueError as error:
        raise UserError(f"resources {dict(found)} are no amounts that Kubernetes knows: {error}") from error


def _taints(node: Manifest) -> list[Manifest]:
    return [taint for taint in node.get("spec", {}).get("taints") or () if taint["effect"] in _KEEPS_AWAY]


def _passing(taint: Manifest) -> bool:
    """Of Kubernetes itself: a cordon, a node that is not ready or short of something."""
    return bool(taint["key"].startswith(_COMES_AND_GOES))


def _excess(asked: Amounts, has: Amounts) -> float:
    return max(amount / max(has[what], 1) for what, amount in asked.items())


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return (toleration.get("key"), toleration.get("value") or "") == (taint["key"], taint.get("value") or "")


def _shown(amounts: Amounts, which: Iterable[str]) -> str:
    """``2.5 CPU, 7.60 GiB of memory``."""
    said = {
        CPU: f"{amounts[CPU] / 1000:g} CPU",
        MEMORY: f"{amounts[MEMORY] / 2**30:.2f} GiB of memory",
        DISK: f"{amounts[DISK] / 2**30:.2f} GiB of disk",
    }
    return ", ".join(said[what] for what in which)

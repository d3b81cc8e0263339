"""What lets the chart's console into one topology: rights of its account, which go with the topology.

RBAC knows Secrets by their names alone, so that the chart cannot give rights to those of topologies yet to come.
Whoever submits gives no more than it has itself: Kubernetes refuses a Role with other rights.
"""

from __future__ import annotations

from ardea.errors import ArdeaError
from ardea.scheduler.kubernetes import names, pods
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.manifest_inputs import Console, ManifestInputs

_GROUP = "rbac.authorization.k8s.io"


def manifests(inputs: ManifestInputs, console: Console, namespace: str, owner: pods.Owner) -> list[Manifest]:
    """A Role and its binding; ``namespace`` is the account's."""
    name = names.callers_role(inputs.root, inputs.id)
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]} | _only(names.callers_secret(inputs.root))]
    if console.kills:
        rules.append(
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "delete"]} | _only(inputs.root)
        )
    group = {"apiVersion": f"{_GROUP}/v1"}
    role = pods.owned(name, "Role", inputs, owner) | group | {"rules": rules}
    account = {"kind": "ServiceAccount", "name": console.account, "namespace": namespace}
    refers = {"roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": name}, "subjects": [account]}
    return [role, pods.owned(name, "RoleBinding", inputs, owner) | group | refers]


def grant(cluster: Objects, inputs: ManifestInputs, console: Console | None, root: Manifest) -> str:
    """Makes them; returns why the console is not let in, which is no reason to refuse a topology; empty: it is."""
    if console is None:
        return ""
    try:
        for manifest in manifests(inputs, console, cluster.namespace, root):
            cluster.create(manifest)
    except ArdeaError as error:
        return (
            f"the console cannot ask this topology's master, for it was not let in ({error.message}); "
            "name the topology in `console.topologies` of the chart's values, and upgrade the release"
        )
    return ""


def _only(name: str) -> dict[str, list[str]]:
    return {"resourceNames": [name]}

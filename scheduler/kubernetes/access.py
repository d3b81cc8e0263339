"""What opens the state manager: for processes and tasks what its servers want to see, for tasks a root of their own.

That root lies beside their topology's and has a credential of its own.  Both belong to the topology's name: what
Trident remembers there outlives the topology, for the next one of that name.
"""

from __future__ import annotations

import base64
import secrets

from ardea.errors import Conflict
from ardea.scheduler.kubernetes import layout, names
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.state import paths
from ardea.state.address import ADDRESS_FILE, CREDENTIAL_FILE, SECRETS

VOLUME, SECRETS_VOLUME = "ardea-state", "ardea-zookeeper"
_OWNER_AND_GROUP = 0o440


def volume(inputs: ManifestInputs) -> Manifest:
    """Of a pod that has tasks with access."""
    secret = {"secretName": names.state_secret(inputs.root), "defaultMode": _OWNER_AND_GROUP}
    return {"name": VOLUME, "secret": secret}


def mount() -> Manifest:
    """Of the container of such a task."""
    return {"name": VOLUME, "mountPath": str(layout.STATE_MOUNT), "readOnly": True}


def secrets_volume(inputs: ManifestInputs) -> list[Manifest]:
    """Of a pod in which somebody opens the state manager."""
    secret = {"secretName": inputs.pods.state_secret, "defaultMode": _OWNER_AND_GROUP}
    return [{"name": SECRETS_VOLUME, "secret": secret}] if inputs.pods.state_secret else []


def secrets_mount(inputs: ManifestInputs) -> list[Manifest]:
    """Of a container that does."""
    mount = {"name": SECRETS_VOLUME, "mountPath": str(layout.ZOOKEEPER_MOUNT), "readOnly": True}
    return [mount] if inputs.pods.state_secret else []


def secrets_env(inputs: ManifestInputs) -> list[Manifest]:
    """Its environment."""
    return [{"name": SECRETS, "value": str(layout.ZOOKEEPER_MOUNT)}] if inputs.pods.state_secret else []


def secret(inputs: ManifestInputs, credential: str) -> Manifest:
    """The Secret; ``credential`` is ``user:password``, and the user's name is that of the root."""
    name = paths.name_of(inputs.id)
    above = inputs.definition.state.rpartition("/")[0]
    values = {ADDRESS_FILE: f"{above}/{credential.partition(':')[0]}", CREDENTIAL_FILE: credential}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": names.state_secret(inputs.root),
            "labels": inputs.pods.labels | names.of_name(name) | {names.ROLE: names.STATE},
            "annotations": {**inputs.pods.annotations},
        },
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def new_credential(topology_name: str) -> str:
    """For a name that has none; nobody can guess the user and be there first."""
    return f"{paths.new_topology_id(topology_name)}:{secrets.token_hex(16)}"


def grant(cluster: Objects, inputs: ManifestInputs) -> None:
    """Makes the Secret where the name has none; otherwise its tasks find what their predecessors left.

    Nothing is done for a topology whose tasks need none.

    Raises:
        Conflict: the Secret of that name is somebody else's.
    """
    if not inputs.definition.state_users:
        return
    former = cluster.find("Secret", names.state_secret(inputs.root))
    if former is None:
        try:
            cluster.create(secret(inputs, new_credential(paths.name_of(inputs.id))))
        except Conflict:
            former = cluster.find("Secret", names.state_secret(inputs.root))
    if former is not None:
        cluster.apply(secret(inputs, _credential(cluster, inputs, former)))  # at the servers of today


def _credential(cluster: Objects, inputs: ManifestInputs, found: Manifest) -> str:
    topology, name = paths.name_of(inputs.id), found["metadata"]["name"]
    held = (found.get("data") or {}).get(CREDENTIAL_FILE)
    labels = found["metadata"].get("labels") or {}
    if held is None or not names.of_name(topology).items() <= labels.items():
        raise Conflict(
            f"namespace {cluster.namespace} has a Secret {name} which no topology named {topology} has left; "
            "it is left as it is",
            hint="submit under another --name",
        )
    return base64.b64decode(held).decode()

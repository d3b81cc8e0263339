"""What tasks may reach of the state manager: a root beside their topology's, with a credential of its own.

Both belong to the topology's name: what Trident remembers there outlives the topology, for the next one of that name.
"""

from __future__ import annotations

import base64
import secrets
from typing import Any

from ardea.errors import Conflict
from ardea.scheduler.kubernetes import layout, names
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.state import paths
from ardea.state.address import ADDRESS_FILE, CREDENTIAL_FILE

VOLUME = "ardea-state"
_OWNER_AND_GROUP = 0o440


def volume(inputs: ManifestInputs) -> Manifest:
    """Of a pod that has tasks with access."""
    secret = {"secretName": names.state_secret(inputs.root), "defaultMode": _OWNER_AND_GROUP}
    return {"name": VOLUME, "secret": secret}


def mount() -> Manifest:
    """Of the container of such a task."""
    return {"name": VOLUME, "mountPath": str(layout.STATE_MOUNT), "readOnly": True}


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
        cluster.apply(secret(inputs, _credential(former)))  # at the servers of today


def _credential(found: dict[str, Any]) -> str:
    return base64.b64decode(found["data"][CREDENTIAL_FILE]).decode()

"""The objects of a topology beside its Jobs: the root, which owns all of them, the code, and the Secrets.  Pure."""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from ardea.health import Health
from ardea.plan.names import MASTER_CONTAINER
from ardea.scheduler.kubernetes import names, pods
from ardea.scheduler.kubernetes.damage import reading
from ardea.scheduler.kubernetes.manifest_inputs import BUNDLE, PODS, Bundle, ManifestInputs
from ardea.state.records import TopologyRecord
from ardea.transport import CALLERS, KEY_FILE, holder

RECORD = "record.json"
STATUS = f"{names.DOMAIN}/status"
"""The annotation of the root in which the acting master says how its topology is doing."""
KILL = f"{names.DOMAIN}/kill"
"""The annotation by which the root asks the acting master for the end; its value: seconds for open tuples."""


class RootStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the acting master last wrote into its root.

    ``state`` as in the state manager, ``came_up`` whether every task has reported at least once, ``waiting`` for whom
    it waits, ``removed`` whether the state manager has forgotten the topology, ``master`` where its control port is:
    ``tcp://HOST:PORT``; ``health``: None once it has ended; ``snapshots``: where they lie that stay after the end.
    """

    state: str
    reason: str = ""
    came_up: bool = False
    waiting: str = ""
    removed: bool = False
    master: str = ""
    health: Health | None = None
    snapshots: str = ""

    @property
    def final(self) -> bool:
        """Whether nothing comes after it."""
        return self.state in ("SUCCEEDED", "FAILED", "KILLED")


def root(inputs: ManifestInputs, record: TopologyRecord) -> dict[str, Any]:
    """The object whose deletion is the end of all others."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": inputs.root,
            "labels": inputs.pods.labels | names.labels(inputs.id) | {names.ROLE: "topology"},
            "annotations": {**inputs.pods.annotations},
        },
        **content(inputs, record),
    }


def content(inputs: ManifestInputs, record: TopologyRecord) -> dict[str, Any]:
    """What the root says, as an update changes it."""
    data = inputs.data()
    return {**data, "data": {**data["data"], RECORD: msgspec.json.encode(record).decode()}}


def code(inputs: ManifestInputs, bundle: Bundle | None, owner: pods.Owner) -> dict[str, Any]:
    """One version of the author's files, and how its pods are made.  It never changes; another is another object."""
    manifest = pods.owned(names.code(inputs.root, inputs.definition.code), "ConfigMap", inputs, owner)
    manifest["metadata"]["labels"] |= {names.ROLE: names.CODE}
    manifest["metadata"]["annotations"] |= _plan(inputs)
    data = base64.b64encode(bundle.data).decode() if bundle else ""
    return {
        **manifest,
        "immutable": True,
        "data": {PODS: inputs.data()["data"][PODS]},
        **({"binaryData": {BUNDLE: data}} if data else {}),
    }


def access_secrets(
    inputs: ManifestInputs, token: str, credential: str, keys: Mapping[str, str], owner: pods.Owner
) -> list[dict[str, Any]]:
    """One for the topology's pods, and one for callers in the cluster that no pod of it mounts.

    Args:
        inputs: the topology.
        token: opens the control port.
        credential: ``user:password`` for ZooKeeper.
        keys: secret keys by the names that :func:`ardea.scheduler.keys.issue` has.
        owner: the root; None: nobody.
    """
    values = {"token": token, "zookeeper": credential}
    shown = {"token": token, **({CALLERS: keys[CALLERS]} if CALLERS in keys else {})}
    return [
        _secret(names.secret(inputs.root), values, inputs, owner),
        _secret(names.callers_secret(inputs.root), shown, inputs, owner),
    ]


def key_secrets(inputs: ManifestInputs, keys: Mapping[str, str], owner: pods.Owner) -> list[dict[str, Any]]:
    """One for each container; ``keys``: secret keys by the names that :func:`ardea.scheduler.keys.issue` has."""
    made = []
    for number in (MASTER_CONTAINER, *(plan.number for plan in inputs.containers)):
        if holder(number) in keys:
            values = {KEY_FILE: keys[holder(number)]}
            if number == MASTER_CONTAINER:
                values[CALLERS] = keys[CALLERS]
            secret = _secret(names.key_secret(inputs.root, number), values, inputs, owner)
            secret["metadata"]["labels"] |= {names.ROLE: names.KEY}
            secret["metadata"]["annotations"] |= _plan(inputs)
            made.append(secret)
    return made


def record_of(root: dict[str, Any]) -> TopologyRecord:
    """Who submitted the topology of this root.

    Raises:
        StateError: it does not say so.
    """
    with reading(root):
        return msgspec.json.decode(root["data"][RECORD], type=TopologyRecord)


def status_of(root: dict[str, Any]) -> RootStatus | None:
    """What the acting master said last; None: nothing yet.

    Raises:
        StateError: it cannot be read.
    """
    written = (root["metadata"].get("annotations") or {}).get(STATUS)
    with reading(root):
        return msgspec.json.decode(written, type=RootStatus) if written else None


def kill_of(root: dict[str, Any]) -> float | None:
    """Seconds that open tuples have, if somebody asked for the end; what is no number of seconds asks for nothing."""
    written = (root["metadata"].get("annotations") or {}).get(KILL)
    with contextlib.suppress(ValueError):
        if written and 0.0 <= (seconds := float(written)) < math.inf:
            return seconds
    return None


def deleted_at(manifest: dict[str, Any]) -> datetime | None:
    """When the object is, or was, to be gone; None: it stays."""
    written = manifest["metadata"].get("deletionTimestamp")
    return datetime.fromisoformat(written) if written else None


def _plan(inputs: ManifestInputs) -> dict[str, str]:
    return {names.PLAN: str(inputs.definition.epoch)}


def _secret(name: str, values: Mapping[str, str], inputs: ManifestInputs, owner: pods.Owner) -> dict[str, Any]:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return {**pods.owned(name, "Secret", inputs, owner), "type": "Opaque", "data": data}

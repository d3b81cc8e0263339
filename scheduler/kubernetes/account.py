"""What the masters' account shows the API server: for the container that keeps the topology, and no other of its pod.

An author's init containers run there, too.  So Kubernetes adds nothing by itself (``automountServiceAccountToken``);
the volume is the one that it would add.
"""

from __future__ import annotations

from ardea.scheduler.kubernetes import layout
from ardea.scheduler.kubernetes.client import Manifest

VOLUME = "ardea-account"
_LIVES = 3607
"""Seconds, as Kubernetes itself has it: kubelet writes a new token in time."""
_READABLE = 0o644


def volume() -> Manifest:
    """Of a master's pod."""
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": _LIVES}},
        {"configMap": authority},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": VOLUME, "projected": {"sources": sources, "defaultMode": _READABLE}}


def mount() -> Manifest:
    """Of the container that asks the API server."""
    return {"name": VOLUME, "mountPath": str(layout.ACCOUNT_MOUNT), "readOnly": True}

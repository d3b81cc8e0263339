"""The Lease by which everybody sees that a master acts: its keeper renews it.  Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ardea.scheduler.kubernetes import pods
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs

RENEW_EVERY = 10.0
VALID_SECS = 30
"""A Lease that is older is nobody's: no master acts."""


def lease(inputs: ManifestInputs, root: dict[str, Any], holder: str, now: datetime) -> dict[str, Any]:
    """Called as the root, and owned by it; ``holder`` is the acting master's pod."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": VALID_SECS, "renewTime": _micro(now)}
    return {**pods.owned(inputs.root, "Lease", inputs, root), "apiVersion": "coordination.k8s.io/v1", "spec": spec}


def renewed(manifest: dict[str, Any]) -> datetime:
    """When it was renewed last; the beginning of time if it never was."""
    written = manifest["spec"].get("renewTime")
    return datetime.fromisoformat(written) if written else datetime.min.replace(tzinfo=UTC)


def holder(manifest: dict[str, Any]) -> str:
    """The pod that holds it."""
    return str(manifest["spec"].get("holderIdentity") or "")


def _micro(moment: datetime) -> str:
    """As Kubernetes writes a time of microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

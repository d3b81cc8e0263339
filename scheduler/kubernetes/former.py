"""What is left of a topology whose root was deleted and made again, as kubectl does with a file of manifests.  Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ardea.scheduler.kubernetes.decisions import STUCK_AFTER, pod_seen


class Former(enum.Enum):
    """GONE: nothing.  ENDS: pods whose Jobs are gone.  RUNS: Jobs, which nobody has deleted with the former root."""

    GONE = enum.auto()
    ENDS = enum.auto()
    RUNS = enum.auto()


def former(
    root: dict[str, Any], jobs: Iterable[dict[str, Any]], pods: Iterable[dict[str, Any]], now: datetime
) -> Former:
    """What these pods and Jobs of one id say.

    Pods that have ended do not count, nor does one on a node that does not end it.

    Args:
        root: the present one.
        jobs: those that there are.
        pods: those that there are.
        now: with a time zone.
    """
    living = [pod for pod in pods if _lives(pod, now)]
    kept = {job["metadata"]["uid"] for job in jobs}
    since = _made(root)
    if any(_owners(pod) & kept and _made(pod) < since for pod in living):
        return Former.RUNS
    return Former.ENDS if any(not _owners(pod) & kept for pod in living) else Former.GONE


def _lives(pod: dict[str, Any], now: datetime) -> bool:
    seen = pod_seen(pod)
    stuck = seen.gone_by is not None and (now - seen.gone_by).total_seconds() > STUCK_AFTER
    return not seen.over and not stuck


def _owners(pod: dict[str, Any]) -> set[str]:
    return {owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())}


def _made(manifest: dict[str, Any]) -> str:
    """Kubernetes writes whole seconds of UTC, so that texts compare as times do."""
    return str(manifest["metadata"]["creationTimestamp"])

"""Where things lie inside a pod.  Everything below HOME is one emptyDir, which ``prepare`` fills.

HOME/.ardea/local/ID        the topology's folder, as on one's own machine: definition, token
  container-N/PROCESS       of the supervisor in the container that is called so: lives, exits, status
  container-N/PROCESS.json  what that supervisor is to run
HOME/code                   the author's files, if they came in a bundle
"""

from __future__ import annotations

from pathlib import Path

from ardea.plan.names import METRICS_MANAGER, STREAM_MANAGER, container_name
from ardea.scheduler.home import Home

USER = 10001
HOME = Path("/home/ardea")
CODE = HOME / "code"
ROOT_MOUNT = Path("/etc/ardea/topology")
"""The root object's definition."""
CODE_MOUNT = Path("/etc/ardea/code")
"""The version of the author's files that a container's pod runs."""
TOKEN_MOUNT = Path("/etc/ardea/access")
"""The token of the control port, in the pods of masters."""
KEY_MOUNT = Path("/etc/ardea/key")
"""A container's secret key, for its managers; in a master's pod the callers', too."""
STATE_MOUNT = Path("/etc/ardea/state")
"""What opens the tasks' part of the state manager, for those tasks that use it."""
ZOOKEEPER_MOUNT = Path("/etc/ardea/zookeeper")
"""What ZooKeeper's servers want to see of whoever opens the state manager: certificates, SASL."""
ACCOUNT_MOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""What a pod's account shows the API server: where every client looks."""
TEMPORARY = "/tmp"  # noqa: S108 -- each container has its own
TERMINATION_LOG = Path("/dev/termination-log")
METRICS_PORT = 9404
GRACE_LEFT = 5.0
"""Seconds of a pod's grace that its supervisors keep for themselves."""

PREPARE = "prepare"
SIDECARS = (STREAM_MANAGER, METRICS_MANAGER)
"""Of its init containers, those that a pod has for as long as it runs; others but PREPARE are not Ardea's."""


def topology_folder(topology_id: str) -> Path:
    """The folder in which the verbs look, too, when they run inside a master's pod."""
    return Home(HOME / ".ardea").folder(topology_id)


def process_folder(topology_id: str, container: int, process: str) -> Path:
    """Of one container's supervisor."""
    return topology_folder(topology_id) / container_name(container) / process


def specification(topology_id: str, container: int, process: str) -> Path:
    """What that supervisor is to run."""
    return process_folder(topology_id, container, process).with_suffix(".json")

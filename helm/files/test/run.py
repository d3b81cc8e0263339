"""Runs in the pod of `helm test`: submits a small topology, waits until it has ended, and says how."""

from __future__ import annotations

import os
import subprocess
import sys

from kubernetes import client, config

NAMESPACE, POD, OWNER, SECONDS = (os.environ[name] for name in ("NAMESPACE", "POD", "OWNER", "SECONDS"))
TOPOLOGY = "HelmTest"


def leave_with_the_release() -> None:
    """Helm forgets the pods of its tests; one that the release's ConfigMap owns goes when that goes."""
    config.load_incluster_config()
    api = client.CoreV1Api()
    uid = api.read_namespaced_config_map(OWNER, NAMESPACE).metadata.uid
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": OWNER, "uid": uid}
    api.patch_namespaced_pod(POD, NAMESPACE, {"metadata": {"ownerReferences": [owner]}})


def give_up_rights() -> None:
    """Helm does, too, unless it was stopped meanwhile."""
    client.RbacAuthorizationV1Api().delete_namespaced_role_binding(OWNER, NAMESPACE)


def ardea(*arguments: str) -> int:
    print("$ ardea", *arguments, flush=True)
    return subprocess.run(["ardea", *arguments], check=False).returncode


def forget_the_last_test() -> None:
    """One that was cut short has left its topology; most have not, which is no news."""
    subprocess.run(["ardea", "kill", TOPOLOGY, "-n", NAMESPACE, "--wait-secs", "0"], check=False, capture_output=True)


def main() -> int:
    leave_with_the_release()
    forget_the_last_test()
    try:
        code = ardea("submit", "kubernetes", "/test/topology.py", "-n", NAMESPACE, "--wait", "--wait-secs", SECONDS)
        ardea("describe", TOPOLOGY, "-n", NAMESPACE)
        return max(code, ardea("kill", TOPOLOGY, "-n", NAMESPACE, "--wait-secs", "0"))
    finally:
        give_up_rights()


if __name__ == "__main__":
    sys.exit(main())

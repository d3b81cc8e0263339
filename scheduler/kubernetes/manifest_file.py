"""A topology's objects for files that kubectl applies and deletes; no cluster is asked."""

from __future__ import annotations

import json
import os
import secrets
import shlex
from pathlib import Path

from ardea.errors import StateError, UserError
from ardea.plan.names import MASTER_CONTAINER
from ardea.scheduler.home import DEFAULT, Home
from ardea.scheduler.kubernetes import access, names, objects, pods
from ardea.scheduler.kubernetes.client import Manifest
from ardea.scheduler.kubernetes.manifest_inputs import Defaults
from ardea.scheduler.kubernetes.submission import Prepared, defaults_of
from ardea.scheduler.schedulers import Preview
from ardea.state import paths
from ardea.state.disk import Disk
from ardea.versions import __version__

CHART = Defaults(
    image=f"ardea:{__version__}",
    state="zookeeper://ardea-zookeeper:2181/ardea",
    master_service_account="ardea-master",
    container_service_account="ardea-container",
)
"""What `helm install ardea ./helm` tells submitters; the name of its ZooKeeper is good in any namespace."""
KEPT = 20
"""The Secrets of so many dry runs stay."""
_APPLY = "kubectl apply --server-side -f"
_WORDS = 16
"""Random bytes of a token or password."""


def read_defaults(file: Path) -> Defaults:
    """What the chart says to submitters, from its ConfigMap as helm or kubectl prints it, alone or among others.

    Raises:
        Conflict: there are two.
        UserError: there is none, or it cannot be read.
    """
    try:
        import yaml  # comes with the package kubernetes

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        documents = [each for each in yaml.load_all(file.read_text(), loader) if isinstance(each, dict)]
    except ModuleNotFoundError as error:
        raise UserError("--defaults needs PyYAML, which is not installed", hint="pip install pyyaml") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"--defaults {file} cannot be read: {error}; nothing was printed or submitted") from error
    manifests = [each for document in documents for each in document.get("items", [document])]
    found = [each for each in manifests if _role(each) == names.DEFAULTS]
    if not found:
        raise UserError(
            f"--defaults {file} holds no ConfigMap with the label {names.DEFAULTS}; nothing was printed or submitted",
            hint=f"`kubectl get configmap -n NAMESPACE -l {names.DEFAULTS} -o yaml` prints it",
        )
    return defaults_of(found, f"--defaults {file}")


def preview(prepared: Prepared, namespace: str | None, *, include_secrets: bool) -> Preview:
    """The objects, without an owner, for whose UID nobody can know.

    The Secrets are among them, or in a file of their own; then ``after`` is the command that applies them.

    Args:
        prepared: the topology.
        namespace: where the objects are to be; None: kubectl says it.
        include_secrets: whether they are among the objects.

    Raises:
        StateError: the file of the Secrets cannot be written.
    """
    inputs = prepared.inputs
    jobs = pods.jobs(inputs, None)
    # Masters go last: by then nothing that they would bring back is left to be deleted.
    jobs.sort(key=lambda job: job["metadata"]["labels"][names.CONTAINER] == str(MASTER_CONTAINER))
    plain = _placed([prepared.root(), objects.code(inputs, prepared.bundle, None)], namespace)
    hidden, jobs = _placed(_secrets(prepared), namespace), _placed(jobs, namespace)
    before = (
        f"{inputs.id}: image {inputs.pods.image}, state {inputs.definition.state.rpartition('/')[0]}, service accounts "
        f"{inputs.pods.master_service_account} and {inputs.pods.container_service_account}; no cluster was asked.\n"
        f"`{_APPLY} FILE` makes it of what stands here, and `kubectl delete -f FILE` removes it."
    )
    if include_secrets:
        return Preview(prepared.submission, [*plain, *hidden, *jobs], before)
    after = f"Its Secrets do not stand here.  This applies them:\n{_APPLY} {shlex.quote(str(_keep(hidden, inputs.id)))}"
    return Preview(prepared.submission, [*plain, *jobs], before, after)


def _secrets(prepared: Prepared) -> list[Manifest]:
    inputs, name = prepared.inputs, paths.name_of(prepared.inputs.id)
    token, password = secrets.token_hex(_WORDS), secrets.token_hex(_WORDS)
    made = [
        *objects.access_secrets(inputs, token, f"{inputs.id}:{password}", prepared.keys, None),
        *objects.key_secrets(inputs, prepared.keys, None),
    ]
    if inputs.definition.state_users:
        made.append(access.secret(inputs, access.new_credential(name)))
    return made


def _placed(manifests: list[Manifest], namespace: str | None) -> list[Manifest]:
    """Without empty annotations, which the cluster leaves out: kubectl would find a difference each time."""
    for manifest in manifests:
        heads = [manifest["metadata"], *([manifest["spec"]["template"]["metadata"]] if "spec" in manifest else [])]
        for head in heads:
            if not head["annotations"]:
                del head["annotations"]
        if namespace is not None:
            manifest["metadata"]["namespace"] = namespace
    return manifests


def _keep(manifests: list[Manifest], topology_id: str) -> Path:
    """In a file that only this user can read."""
    home, disk = Home(os.environ.get("ARDEA_STATE", DEFAULT)), Disk()
    folder = home.root / "kubernetes"
    file = folder / f"{topology_id}-secrets.json"
    try:
        home.make(folder)
        disk.write(file, json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}, indent=1).encode())
        there = sorted(folder.glob("*-secrets.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in there[KEPT:]:
            disk.remove(old)
    except OSError as error:
        raise StateError(
            f"the Secrets of {topology_id} cannot be kept in {folder}: {error.strerror}; nothing was printed",
            hint="--include-secrets prints them instead; ARDEA_STATE names another directory",
        ) from error
    return file


def _role(manifest: object) -> str:
    match manifest:
        case {"kind": "ConfigMap", "metadata": {"labels": {names.ROLE: role}}}:
            return f"{names.ROLE}={role}"
    return ""

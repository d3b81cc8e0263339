"""What the objects of a topology are called, and how they are labelled.  Pure."""

from __future__ import annotations

import hashlib
import re

from ardea.plan.packing import InstancePlan
from ardea.state import paths

DOMAIN = "ardea.dev"
TOPOLOGY_ID = f"{DOMAIN}/topology-id"
"""A label, which may have to be cut; of pods also an annotation, which has the whole id, as metrics do."""
CONTAINER = f"{DOMAIN}/container"
JOB = "batch.kubernetes.io/job-name"
ROLE = f"{DOMAIN}/role"
CONTENT = f"{DOMAIN}/content"
"""The annotation of a container's Job that says for what tasks, of what build, its pod was made."""
PLAN = f"{DOMAIN}/plan"
"""The annotation of code and keys that says for which plan they were last needed: the number of its epoch."""
UPDATE = f"{DOMAIN}/update"
"""The annotation of the same that names the update which last needed them."""
INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
MASTER = "master"
WORKER = "container"
STATE = "state"
CODE = "code"
KEY = "key"
ROOTS = f"{ROLE}=topology"
"""Selects the root object of every topology."""
DEFAULTS = f"{ROLE}=defaults"
"""Selects what the chart has written down for submitters."""
FIELD_MANAGER = "ardea"

_LONGEST_ROOT = 40  # Kubernetes has 63 characters for a Job's name with what is added to it
_LONGEST_LABEL = 63


def root(topology_name: str) -> str:
    """The root's name: that of the topology in small letters, with ``-`` for what Kubernetes has no letters for."""
    return _dns(topology_name, _LONGEST_ROOT)


def secret(root_name: str) -> str:
    """The Secret with the token of the control port and the credential for ZooKeeper."""
    return f"{root_name}-access"


def callers_secret(root_name: str) -> str:
    """The Secret with what a caller in the cluster shows at the control port, and nothing else: token and key."""
    return f"{root_name}-callers"


def callers_role(root_name: str, topology_id: str) -> str:
    """The Role, and the RoleBinding, of the console for one topology: no former one's, that may be on its way out."""
    return f"{root_name}-callers-{topology_id.rpartition('-')[2]}"


def state_secret(root_name: str) -> str:
    """The Secret of those tasks that use the state manager; it outlives the topology."""
    return f"{root_name}-state"


def code(root_name: str, version: str) -> str:
    """The ConfigMap with one version of the author's files."""
    return f"{root_name}-code-{version}"


def key_secret(root_name: str, number: int) -> str:
    """The Secret with the key of one container, which its pod alone mounts; 0: the masters'."""
    return f"{root_name}-key-{number}"


def master_job(root_name: str, number: int) -> str:
    """A master's Job; ``number`` counts from 1."""
    return f"{root_name}-{MASTER}-{number}"


def container_job(root_name: str, number: int) -> str:
    """A container's Job."""
    return f"{root_name}-{WORKER}-{number}"


def container(instance: InstancePlan) -> str:
    """What a person types after ``kubectl logs -c``: ``count-1``."""
    return _dns(instance.name, _LONGEST_LABEL)


def instance_names(instances: tuple[InstancePlan, ...]) -> dict[int, str]:
    """The names of one pod's instances by task; those that would be equal end in the task's id."""
    names = {instance.task: container(instance) for instance in instances}
    taken = list(names.values())
    return {task: f"{name[:56]}-{task}" if taken.count(name) > 1 else name for task, name in names.items()}


def labels(topology_id: str, component: str | None = None, number: int | None = None) -> dict[str, str]:
    """The labels of an object; of a pod with its ``component`` (master, container) and container number."""
    found = {**of_name(paths.name_of(topology_id)), TOPOLOGY_ID: label(topology_id)}
    if component is not None:
        found[COMPONENT] = component
    if number is not None:
        found[CONTAINER] = str(number)
    return found


def of_name(topology_name: str) -> dict[str, str]:
    """The labels of an object that belongs to a name, whatever topology has it."""
    return {
        "app.kubernetes.io/name": "ardea",
        "app.kubernetes.io/part-of": "ardea",
        "app.kubernetes.io/managed-by": "ardea",
        INSTANCE: label(topology_name),
    }


def label(text: str) -> str:
    """``text`` as the value of a label: itself wherever that is possible."""
    if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", text) and len(text) <= _LONGEST_LABEL:
        return text
    digest = _digest(text)
    cut = re.sub(r"[^A-Za-z0-9._-]", "-", text).strip("._-")[: _LONGEST_LABEL - len(digest) - 1]
    return f"{cut}-{digest}".lstrip("-")


def of_topology(topology_id: str, component: str | None = None) -> str:
    """The selector of a topology's objects."""
    chosen = f"{TOPOLOGY_ID}={label(topology_id)}"
    return chosen if component is None else f"{chosen},{COMPONENT}={component}"


def _dns(text: str, longest: int) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if name and len(name) <= longest and text.isascii():
        return name
    digest = _digest(text)
    return f"{name[: longest - len(digest) - 1].rstrip('-')}-{digest}".lstrip("-")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]

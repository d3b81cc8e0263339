"""The Jobs of a topology: one for each master, one for each container.  Pure: values in, manifests out."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ardea.config import Settings
from ardea.errors import UserError
from ardea.plan.names import LEFT, MASTER_CONTAINER, METRICS_MANAGER, STREAM_MANAGER, TOPOLOGY_MASTER
from ardea.plan.packing import ContainerPlan
from ardea.plan.resource import MIB, Resource
from ardea.scheduler.kubernetes import access, account, layout, names, pod_spec, processes
from ardea.scheduler.kubernetes.manifest_inputs import BUNDLE, DEFINITION, PODS, VOLUMES, Extras, ManifestInputs
from ardea.state.address import CREDENTIAL
from ardea.supervision.records import LEAVING, LOCK

Manifest = dict[str, Any]
Owner = Manifest | None
"""The root object as the cluster knows it; None: nobody owns what kubectl makes of a file."""
LOST_NODE_SECS = 5
"""How long a pod stays on a node that does not answer; node's own silence before that is the cluster's setting."""
EXIT_PERMANENT = 78
STANDS_STILL_SECS = 60
"""Seconds without a sign of life after which a supervisor stands still."""
_NEVER = 2147483647
_LOOK = 0.2
_SECURITY: Manifest = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_POD_SECURITY: Manifest = {
    "runAsNonRoot": True,
    "runAsUser": layout.USER,
    "runAsGroup": layout.USER,
    "fsGroup": layout.USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def jobs(inputs: ManifestInputs, owner: Owner) -> list[Manifest]:
    """All Jobs."""
    masters = [master_job(inputs, number, owner) for number in range(1, inputs.pods.masters + 1)]
    return [*masters, *(container_job(inputs, plan, owner) for plan in inputs.containers)]


def master_job(inputs: ManifestInputs, number: int, owner: Owner) -> Manifest:
    """A master's Job, which ends as the topology does: Complete, or Failed."""
    settings = inputs.settings
    metrics = Resource(0.05, settings.metricsmgr_ram, 64 * MIB)
    needs = Resource(settings.master_cpu, settings.master_ram, 256 * MIB)
    containers = [
        _prepare(inputs, MASTER_CONTAINER),
        _metrics_manager(inputs, MASTER_CONTAINER, metrics),
        _container(inputs, MASTER_CONTAINER, TOPOLOGY_MASTER, needs, _stored(inputs, _keeping(inputs))),
    ]
    pod = _pod(
        inputs,
        names.MASTER,
        MASTER_CONTAINER,
        {TOPOLOGY_MASTER: inputs.extras()},
        {
            "restartPolicy": "Never",  # what a podFailurePolicy asks for
            "serviceAccountName": inputs.pods.master_service_account,
            "automountServiceAccountToken": False,  # the author's init containers need none
            "initContainers": containers[:2],
            "containers": containers[2:],
            "volumes": [
                {"name": "access", "secret": _secret_file(inputs)},
                *_key_volume(inputs, MASTER_CONTAINER),
                *access.secrets_volume(inputs),
                account.volume(),
            ],
        },
        {},
    )
    rules: list[Manifest] = [
        {"action": "FailJob", "onExitCodes": _exits(name)} for name in (layout.PREPARE, TOPOLOGY_MASTER)
    ]
    rules.append({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]})
    name = names.master_job(inputs.root, number)
    return _job(inputs, name, names.MASTER, MASTER_CONTAINER, pod, owner, {"podFailurePolicy": {"rules": rules}})


def container_job(inputs: ManifestInputs, plan: ContainerPlan, owner: Owner) -> Manifest:
    """A container's Job: managers as sidecars, each instance a container of its own."""
    number = plan.number
    called = names.instance_names(plan.instances)
    extras = {component: inputs.extras(component) for component in sorted({i.component for i in plan.instances})}
    manager, metrics = _shares(plan.overhead, inputs.settings)
    granted = inputs.definition.state_users & extras.keys()
    instances = [
        _instance(inputs, number, called[i.task], i.resource, extras[i.component], granted=i.component in granted)
        for i in plan.instances
    ]
    pod = _pod(
        inputs,
        names.WORKER,
        number,
        extras,
        {
            "restartPolicy": "OnFailure",
            "serviceAccountName": inputs.pods.container_service_account,
            "automountServiceAccountToken": False,
            "initContainers": [
                _prepare(inputs, number, content=inputs.content(plan)),
                _stream_manager(inputs, number, manager),
                _metrics_manager(inputs, number, metrics),
            ],
            "containers": instances,
            "volumes": [
                _code_volume(inputs),
                *_key_volume(inputs, number),
                *access.secrets_volume(inputs),
                *([access.volume(inputs)] if granted else []),
            ],
        },
        {called[i.task]: i.component for i in plan.instances},
    )
    job = _job(inputs, names.container_job(inputs.root, number), names.WORKER, number, pod, owner, {})
    job["metadata"]["annotations"][names.CONTENT] = inputs.content(plan)
    return job


def _shares(overhead: Resource, settings: Settings) -> tuple[Resource, Resource]:
    """What the stream manager and the metrics manager get of what is packed beside the tasks."""
    metrics = Resource(round(overhead.cpu / 4, 3), settings.metricsmgr_ram, overhead.disk // 4)
    ram = max(settings.stmgr_ram, overhead.ram - metrics.ram)
    return Resource(round(overhead.cpu - metrics.cpu, 3), ram, overhead.disk - metrics.disk), metrics


def owned(name: str, kind: str, inputs: ManifestInputs, owner: Owner) -> Manifest:
    """The head of an object that goes with the root."""
    metadata: Manifest = {
        "name": name,
        "labels": inputs.pods.labels | names.labels(inputs.id),
        "annotations": {**inputs.pods.annotations},
    }
    if owner is not None:
        metadata["ownerReferences"] = [reference(inputs.root, owner["metadata"]["uid"])]
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "v1",
        "kind": kind,
        "metadata": metadata,
    }


def reference(root_name: str, uid: str) -> Manifest:
    """What an object has that goes with the root of that UID."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": root_name, "uid": uid}
    return {**owner, "controller": True, "blockOwnerDeletion": True}


def _job(
    inputs: ManifestInputs, name: str, component: str, number: int, pod: Manifest, owner: Owner, more: Manifest
) -> Manifest:
    manifest = owned(name, "Job", inputs, owner)
    manifest["metadata"]["labels"] = inputs.pods.labels | names.labels(inputs.id, component, number)
    manifest["spec"] = {"backoffLimit": _NEVER, "completions": 1, "parallelism": 1, "template": pod, **more}
    return manifest


_SPREAD = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
_LOST_NODE = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute",
     "tolerationSeconds": LOST_NODE_SECS}
    for what in ("not-ready", "unreachable")
]  # fmt: skip


def _pod(
    inputs: ManifestInputs,
    component: str,
    number: int,
    extras: Mapping[str, Extras],
    spec: Manifest,
    tasks: Mapping[str, str],
) -> Manifest:
    """The template, with what the configuration of the topology and of its components adds.

    ``extras``: by the component whose they are; ``tasks``: the component of each container that runs a task, none in
    a master's pod.
    """
    labels, annotations = {**inputs.pods.labels}, {**inputs.pods.annotations}
    for extra in extras.values():
        labels |= extra.labels
        annotations |= extra.annotations
    annotations[names.TOPOLOGY_ID] = inputs.id
    selector = {"matchLabels": {names.TOPOLOGY_ID: names.label(inputs.id), names.COMPONENT: component}}
    whole = {
        "enableServiceLinks": False,
        "securityContext": _POD_SECURITY,
        "terminationGracePeriodSeconds": math.ceil(inputs.settings.kubernetes_grace),
        "tolerations": _LOST_NODE,
        "topologySpreadConstraints": [{**_SPREAD, "labelSelector": selector}],
        **spec,
        "containers": _with_metrics_port(spec["containers"], inputs.settings.metrics_port + number),
        "volumes": [
            {"name": "home", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "topology", "configMap": {"name": inputs.root, "items": [_item(DEFINITION)]}},
            *spec["volumes"],
        ],
    }
    mounts = tasks or inputs.settings.remembers
    volumes = _distinct(extras) if mounts else []
    added = pod_spec.merged(inputs.pod_spec(tasks.values()), {"volumes": volumes})
    metadata = {"labels": labels | names.labels(inputs.id, component, number), "annotations": annotations}
    return {"metadata": metadata, "spec": pod_spec.applied(whole, added, tasks, _image(inputs))}


def _with_metrics_port(containers: list[Manifest], port: int) -> list[Manifest]:
    """The metrics manager's, but some networks look for the names of ports among these containers only."""
    first, *others = containers
    return [{**first, "ports": [{"name": pod_spec.METRICS_PORT, "containerPort": port}]}, *others]


def _container(inputs: ManifestInputs, number: int, name: str, needs: Resource, more: Manifest) -> Manifest:
    """A container whose PID 1 supervises one process."""
    return {
        "name": name,
        **_image(inputs),
        "command": processes.supervisor(inputs.id, number, name),
        "resources": _resources(needs, inputs.settings),
        "securityContext": _SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **({} if name == layout.PREPARE else {"livenessProbe": _liveness(inputs, number, name)}),
        **more,
        "env": [*_environment(inputs), *more.get("env", ())],
        "volumeMounts": [
            *more.get("volumeMounts", ()),
            {"name": "tmp", "mountPath": layout.TEMPORARY, "subPath": name},
        ],
    }


def _liveness(inputs: ManifestInputs, number: int, name: str) -> Manifest:
    """Fails when the supervisor stands still, which touches a file each second; never for what its process does."""
    return {
        "exec": {"command": ["sh", "-c", _is_alive(layout.process_folder(inputs.id, number, name))]},
        "initialDelaySeconds": STANDS_STILL_SECS,
        "periodSeconds": 30,
        "timeoutSeconds": 10,
        "failureThreshold": 2,
        "terminationGracePeriodSeconds": 1,
    }


def _is_alive(folder: Path) -> str:
    """For a shell: whether the supervisor of this folder has touched its file lately."""
    beat = shlex.quote(str(folder / LOCK))
    return f"[ $(($(date +%s) - $(stat -c %Y {beat}))) -lt {STANDS_STILL_SECS} ]"


def _image(inputs: ManifestInputs) -> dict[str, str]:
    return {"image": inputs.pods.image, "imagePullPolicy": inputs.pods.image_pull_policy}


def _prepare(inputs: ManifestInputs, number: int, *, content: str = "") -> Manifest:
    """``content``: what the pod is for; a master's has none, but tokens."""
    mounts = [_home(), {"name": "topology", "mountPath": str(layout.ROOT_MOUNT), "readOnly": True}]
    if content:
        mounts.append({"name": "code", "mountPath": str(layout.CODE_MOUNT), "readOnly": True})
    else:
        mounts += [{"name": "access", "mountPath": str(layout.TOKEN_MOUNT), "readOnly": True}, *_keys(inputs)]
    made = _container(inputs, number, layout.PREPARE, Resource(0.05, 256 * MIB, 64 * MIB), {"volumeMounts": mounts})
    argv = ["python", "-P", "-m", "ardea.scheduler.kubernetes.prepare", "--container", str(number)]
    return {**made, "command": [*argv, *(["--content", content] if content else [])]}


def _stream_manager(inputs: ManifestInputs, number: int, needs: Resource) -> Manifest:
    plan = layout.process_folder(inputs.id, number, STREAM_MANAGER) / "manager.plan"
    ready = {"exec": {"command": ["test", "-e", str(plan)]}, "periodSeconds": 5}
    more = {
        "restartPolicy": "Always",
        "readinessProbe": ready,
        **_opening(inputs),
    }
    return _container(inputs, number, STREAM_MANAGER, needs, more)


def _metrics_manager(inputs: ManifestInputs, number: int, needs: Resource) -> Manifest:
    port = inputs.settings.metrics_port + number
    more = {
        "restartPolicy": "Always",
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": port}, "periodSeconds": 5},
        **_opening(inputs),
    }
    return _container(inputs, number, METRICS_MANAGER, needs, more)


def _instance(
    inputs: ManifestInputs, number: int, name: str, needs: Resource, extras: Extras, *, granted: bool
) -> Manifest:
    """User code: it may write into its own folder and into /tmp, and knows no credential of the engine.

    ``granted``: but that for the tasks' own part of the state manager.
    """
    folder = layout.process_folder(inputs.id, number, name)
    own = {"name": "home", "mountPath": str(folder), "subPath": str(folder.relative_to(layout.HOME))}
    given = [{"name": key, "value": value} for key, value in extras.env.items()]
    state = [access.mount(), *access.secrets_mount(inputs)] if granted else []
    opens = access.secrets_env(inputs) if granted else []
    more: Manifest = {
        "env": [{"name": "HOME", "value": layout.TEMPORARY}, *given, *opens],
        "volumeMounts": [{**_home(), "readOnly": True}, own, *map(_mount, extras.volumes), *state],
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", _wait_for_rest(inputs, number, folder)]}}},
    }
    if extras.env_from:
        more["envFrom"] = [_env_from(source) for source in extras.env_from]
    made = _container(inputs, number, name, needs, more)
    return {**made, "command": processes.supervisor(inputs.id, number, name, led=True)}


def _wait_for_rest(inputs: ManifestInputs, number: int, folder: Path) -> str:
    """Lets the stream manager know, and waits until nothing is on its way to the container any more.

    Where the supervisor stands still, it is liveness that ends this container alone: the pod does not leave.  Where
    only the probe took too long, the next supervisor removes what this has said.  One that has just been started may
    remove it, too, in a pod that does leave: so it is said again and again.
    """
    left = layout.process_folder(inputs.id, number, STREAM_MANAGER) / LEFT
    looks = max(1, round(inputs.settings.emptying_secs / _LOOK))
    look = f"touch {shlex.quote(str(folder / LEAVING))}; [ -e {shlex.quote(str(left))} ] && exit; sleep {_LOOK}"
    return f"{_is_alive(folder)} || exit 0; for _ in $(seq {looks}); do {look}; done"


def _resources(needs: Resource, settings: Settings) -> Manifest:
    """A container that takes more memory or disk than it asked for is killed; one that takes more CPU is not slowed."""
    cpu = f"{math.ceil(needs.cpu * 1000)}m"
    fixed = {"memory": f"{needs.ram}", "ephemeral-storage": f"{max(needs.disk, 64 * MIB)}"}
    return {
        "requests": {"cpu": cpu, **fixed},
        "limits": {**fixed, **({"cpu": cpu} if settings.kubernetes_cpu_limits else {})},
    }


def _environment(inputs: ManifestInputs) -> list[Manifest]:
    """Of every container: its pod, its image, and where the topology's state lies."""
    fields = {
        "POD_UID": "metadata.uid",
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_IP": "status.podIP",
    }
    variables = {"ARDEA_IMAGE": inputs.pods.image, "ARDEA_STATE": inputs.definition.state}
    return [
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
        *({"name": name, "value": value} for name, value in variables.items()),
    ]


def _opening(inputs: ManifestInputs) -> Manifest:
    """Of a container whose process opens the state manager, as the topology's own."""
    key = {"name": names.secret(inputs.root), "key": "zookeeper"}
    credential = {"name": CREDENTIAL, "valueFrom": {"secretKeyRef": key}}
    return {
        "env": [credential, *access.secrets_env(inputs)],
        "volumeMounts": [_home(), *_keys(inputs), *access.secrets_mount(inputs)],
    }


def _keeping(inputs: ManifestInputs) -> Manifest:
    """Of a master, which opens the state manager, and asks the API server."""
    opening = _opening(inputs)
    return {**opening, "volumeMounts": [*opening["volumeMounts"], account.mount()]}


def _stored(inputs: ManifestInputs, opening: Manifest) -> Manifest:
    """Of a master, which reaches the store of snapshots as the topology's tasks do, where there is one."""
    if not inputs.settings.remembers:
        return opening
    extras = inputs.extras()
    own = {variable["name"] for variable in opening["env"]}
    given = [{"name": key, "value": value} for key, value in extras.env.items() if key not in own]
    sources = {"envFrom": [_env_from(source) for source in extras.env_from]} if extras.env_from else {}
    mounts = [*opening["volumeMounts"], *map(_mount, extras.volumes)]
    return {"env": [*given, *opening["env"]], "volumeMounts": mounts, **sources}


def _secret_file(inputs: ManifestInputs) -> Manifest:
    return {"secretName": names.secret(inputs.root), "items": [{"key": "token", "path": "token"}]}


def _key_volume(inputs: ManifestInputs, number: int) -> list[Manifest]:
    secret = {"secretName": names.key_secret(inputs.root, number)}
    return [{"name": "key", "secret": secret}] if inputs.definition.keys else []


def _keys(inputs: ManifestInputs) -> list[Manifest]:
    mount = {"name": "key", "mountPath": str(layout.KEY_MOUNT), "readOnly": True}
    return [mount] if inputs.definition.keys else []


def _code_volume(inputs: ManifestInputs) -> Manifest:
    keys = [PODS, *([BUNDLE] if inputs.pods.python else [])]
    version = names.code(inputs.root, inputs.definition.code)
    return {"name": "code", "configMap": {"name": version, "items": [_item(key) for key in keys]}}


def _item(key: str) -> Manifest:
    return {"key": key, "path": key}


def _home() -> Manifest:
    return {"name": "home", "mountPath": str(layout.HOME)}


def _exits(container: str) -> Manifest:
    return {"containerName": container, "operator": "In", "values": [EXIT_PERMANENT]}


def _volume(volume: Mapping[str, Any]) -> Manifest:
    return {key: value for key, value in volume.items() if key not in ("mountPath", "subPath", "readOnly")}


def _mount(volume: Mapping[str, Any]) -> Manifest:
    return {key: value for key, value in volume.items() if key in ("name", "mountPath", "subPath", "readOnly")}


def _distinct(extras: Mapping[str, Extras]) -> list[Manifest]:
    """The volumes of several components, each name once; UserError if two mean different ones by it."""
    made: dict[str, tuple[str, Manifest]] = {}
    for component, extra in extras.items():
        for volume in map(_volume, extra.volumes):
            other, former = made.setdefault(volume["name"], (component, volume))
            if former != volume:
                raise UserError(
                    f"{other} and {component} have tasks in one pod, and different volumes named {volume['name']} "
                    f"({VOLUMES})",
                    hint="give one of them another name, or let the components be packed apart "
                    "(heron.class.packing.algorithm, topology.container.max.instances)",
                )
    return [volume for _, volume in made.values()]


def _env_from(source: str) -> Manifest:
    kind, _, name = source.partition("/")
    return {"secretRef" if kind == "secret" else "configMapRef": {"name": name}}

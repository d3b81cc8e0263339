"""The Jobs of a topology: one for each master, one for each container.  Pure: values in, manifests out."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ardea.config import Settings
from ardea.plan.names import LEAVING, LEFT, MASTER_CONTAINER, METRICS_MANAGER, STREAM_MANAGER, TOPOLOGY_MASTER
from ardea.plan.packing import ContainerPlan
from ardea.plan.resource import MIB, Resource
from ardea.scheduler.kubernetes import access, layout, names, processes
from ardea.scheduler.kubernetes.blueprint import BUNDLE, DEFINITION, PODS, Blueprint, Extras
from ardea.state.address import CREDENTIAL

Manifest = dict[str, Any]
LOST_NODE_SECS = 5
"""How long a pod stays on a node that does not answer; node's own silence before that is the cluster's setting."""
MASTER_NEEDS = Resource(cpu=0.1, ram=256 * MIB, disk=256 * MIB)
EXIT_PERMANENT = 78
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


def jobs(blueprint: Blueprint, owner: Manifest) -> list[Manifest]:
    """All Jobs; ``owner`` is the root object as the cluster knows it."""
    masters = [master_job(blueprint, number, owner) for number in range(1, blueprint.pods.masters + 1)]
    return [*masters, *(container_job(blueprint, plan, owner) for plan in blueprint.containers)]


def master_job(blueprint: Blueprint, number: int, owner: Manifest) -> Manifest:
    """A master's Job, which ends as the topology does: Complete, or Failed."""
    metrics = Resource(0.05, blueprint.settings.metricsmgr_ram, 64 * MIB)
    containers = [
        _prepare(blueprint, MASTER_CONTAINER),
        _metrics_manager(blueprint, MASTER_CONTAINER, metrics),
        _container(
            blueprint, MASTER_CONTAINER, TOPOLOGY_MASTER, MASTER_NEEDS,
            {"env": [_credential(blueprint)], "volumeMounts": [_home(), *_keys(blueprint)]},
        ),
    ]  # fmt: skip
    pod = _pod(
        blueprint,
        names.MASTER,
        MASTER_CONTAINER,
        [blueprint.extras()],
        {
            "restartPolicy": "Never",  # what a podFailurePolicy asks for
            "serviceAccountName": blueprint.pods.master_service_account,
            "automountServiceAccountToken": True,
            "initContainers": containers[:2],
            "containers": containers[2:],
            "volumes": [
                {"name": "access", "secret": _secret_file(blueprint)},
                *_key_volume(blueprint, MASTER_CONTAINER),
            ],
        },
    )
    rules: list[Manifest] = [
        {"action": "FailJob", "onExitCodes": _exits(name)} for name in (layout.PREPARE, TOPOLOGY_MASTER)
    ]
    rules.append({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]})
    name = names.master_job(blueprint.root, number)
    return _job(blueprint, name, names.MASTER, MASTER_CONTAINER, pod, owner, {"podFailurePolicy": {"rules": rules}})


def container_job(blueprint: Blueprint, plan: ContainerPlan, owner: Manifest) -> Manifest:
    """A container's Job: managers as sidecars, each instance a container of its own."""
    number, settings = plan.number, blueprint.settings
    called = names.instance_names(plan.instances)
    extras = {component: blueprint.extras(component) for component in sorted({i.component for i in plan.instances})}
    metrics = Resource(round(plan.overhead.cpu / 4, 3), settings.metricsmgr_ram, plan.overhead.disk // 4)
    manager = Resource(
        round(plan.overhead.cpu - metrics.cpu, 3),
        max(settings.stmgr_ram, plan.overhead.ram - metrics.ram),
        plan.overhead.disk - metrics.disk,
    )
    granted = access.components(blueprint.definition) & extras.keys()
    instances = [
        _instance(blueprint, number, called[i.task], i.resource, extras[i.component], granted=i.component in granted)
        for i in plan.instances
    ]
    pod = _pod(
        blueprint,
        names.WORKER,
        number,
        [*extras.values()],
        {
            "restartPolicy": "OnFailure",
            "serviceAccountName": blueprint.pods.container_service_account,
            "automountServiceAccountToken": False,
            "initContainers": [
                _prepare(blueprint, number, content=blueprint.content(plan)),
                _stream_manager(blueprint, number, manager),
                _metrics_manager(blueprint, number, metrics),
            ],
            "containers": instances,
            "volumes": [
                _code_volume(blueprint),
                *map(_volume, _distinct(extras.values())),
                *_key_volume(blueprint, number),
                *([access.volume(blueprint)] if granted else []),
            ],
        },
    )
    job = _job(blueprint, names.container_job(blueprint.root, number), names.WORKER, number, pod, owner, {})
    job["metadata"]["annotations"][names.CONTENT] = blueprint.content(plan)
    return job


def owned(name: str, kind: str, blueprint: Blueprint, owner: Manifest) -> Manifest:
    """The head of an object that goes with the root."""
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": blueprint.root, "uid": owner["metadata"]["uid"]}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": blueprint.pods.labels | names.labels(blueprint.id),
            "annotations": {**blueprint.pods.annotations},
            "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
        },
    }


def _job(
    blueprint: Blueprint, name: str, component: str, number: int, pod: Manifest, owner: Manifest, more: Manifest
) -> Manifest:
    manifest = owned(name, "Job", blueprint, owner)
    manifest["metadata"]["labels"] = blueprint.pods.labels | names.labels(blueprint.id, component, number)
    manifest["spec"] = {"backoffLimit": _NEVER, "completions": 1, "parallelism": 1, "template": pod, **more}
    return manifest


def _pod(blueprint: Blueprint, component: str, number: int, extras: list[Extras], spec: Manifest) -> Manifest:
    """The template, with what the configuration of the topology and of its components adds."""
    topology = blueprint.settings
    labels, annotations = {**blueprint.pods.labels}, {**blueprint.pods.annotations}
    for extra in extras:
        labels |= extra.labels
        annotations |= extra.annotations
    selector = {"matchLabels": {names.TOPOLOGY_ID: names.label(blueprint.id), names.COMPONENT: component}}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    lost = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": LOST_NODE_SECS}
        for what in ("not-ready", "unreachable")
    ]  # fmt: skip
    whole = {
        "enableServiceLinks": False,
        "securityContext": _POD_SECURITY,
        "terminationGracePeriodSeconds": math.ceil(topology.kubernetes_grace),
        "tolerations": [*lost, *topology.kubernetes_tolerations],
        "topologySpreadConstraints": [{**spread, "labelSelector": selector}],
        **spec,
        "volumes": [
            {"name": "home", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "topology", "configMap": {"name": blueprint.root, "items": [_item(DEFINITION)]}},
            *spec["volumes"],
        ],
    }
    if topology.kubernetes_node_selector:
        whole["nodeSelector"] = dict(topology.kubernetes_node_selector)
    if topology.kubernetes_priority_class:
        whole["priorityClassName"] = topology.kubernetes_priority_class
    metadata = {"labels": labels | names.labels(blueprint.id, component, number), "annotations": annotations}
    return {"metadata": metadata, "spec": whole}


def _container(blueprint: Blueprint, number: int, name: str, needs: Resource, more: Manifest) -> Manifest:
    """A container whose PID 1 supervises one process."""
    return {
        "name": name,
        "image": blueprint.pods.image,
        "imagePullPolicy": blueprint.pods.image_pull_policy,
        "command": processes.supervisor(blueprint.id, number, name),
        "resources": _resources(needs, blueprint.settings),
        "securityContext": _SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **more,
        "env": [*_environment(blueprint), *more.get("env", ())],
        "volumeMounts": [
            *more.get("volumeMounts", ()),
            {"name": "tmp", "mountPath": layout.TEMPORARY, "subPath": name},
        ],
    }


def _prepare(blueprint: Blueprint, number: int, *, content: str = "") -> Manifest:
    """``content``: what the pod is for; a master's has none, but tokens."""
    mounts = [_home(), {"name": "topology", "mountPath": str(layout.ROOT_MOUNT), "readOnly": True}]
    if content:
        mounts.append({"name": "code", "mountPath": str(layout.CODE_MOUNT), "readOnly": True})
    else:
        mounts += [{"name": "access", "mountPath": str(layout.TOKEN_MOUNT), "readOnly": True}, *_keys(blueprint)]
    made = _container(blueprint, number, layout.PREPARE, Resource(0.05, 256 * MIB, 64 * MIB), {"volumeMounts": mounts})
    argv = ["python", "-P", "-m", "ardea.scheduler.kubernetes.prepare", "--container", str(number)]
    return {**made, "command": [*argv, *(["--content", content] if content else [])]}


def _stream_manager(blueprint: Blueprint, number: int, needs: Resource) -> Manifest:
    plan = layout.process_folder(blueprint.id, number, STREAM_MANAGER) / "manager.plan"
    ready = {"exec": {"command": ["test", "-e", str(plan)]}, "periodSeconds": 5}
    more = {
        "restartPolicy": "Always",
        "readinessProbe": ready,
        "env": [_credential(blueprint)],
        "volumeMounts": [_home(), *_keys(blueprint)],
    }
    return _container(blueprint, number, STREAM_MANAGER, needs, more)


def _metrics_manager(blueprint: Blueprint, number: int, needs: Resource) -> Manifest:
    port = blueprint.settings.metrics_port + number
    probe = {"httpGet": {"path": "/healthz", "port": "metrics"}}
    more = {
        "restartPolicy": "Always",
        "ports": [{"name": "metrics", "containerPort": port}],
        "readinessProbe": {**probe, "periodSeconds": 5},
        "livenessProbe": {**probe, "initialDelaySeconds": 30, "periodSeconds": 10, "failureThreshold": 6},
        "env": [_credential(blueprint)],
        "volumeMounts": [_home(), *_keys(blueprint)],
    }
    return _container(blueprint, number, METRICS_MANAGER, needs, more)


def _instance(
    blueprint: Blueprint, number: int, name: str, needs: Resource, extras: Extras, *, granted: bool
) -> Manifest:
    """User code: it may write into its own folder and into /tmp, and knows no credential of the engine.

    ``granted``: but that for the tasks' own part of the state manager.
    """
    folder = layout.process_folder(blueprint.id, number, name)
    own = {"name": "home", "mountPath": str(folder), "subPath": str(folder.relative_to(layout.HOME))}
    given = [{"name": key, "value": value} for key, value in extras.env.items()]
    state = [access.mount()] if granted else []
    more: Manifest = {
        "env": [{"name": "HOME", "value": layout.TEMPORARY}, *given],
        "volumeMounts": [{**_home(), "readOnly": True}, own, *map(_mount, extras.volumes), *state],
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", _wait_for_rest(blueprint, number, folder)]}}},
    }
    if extras.env_from:
        more["envFrom"] = [_env_from(source) for source in extras.env_from]
    made = _container(blueprint, number, name, needs, more)
    return {**made, "command": processes.supervisor(blueprint.id, number, name, led=True)}


def _wait_for_rest(blueprint: Blueprint, number: int, folder: Path) -> str:
    """Lets the stream manager know, and waits until nothing is on its way to the container any more."""
    left = layout.process_folder(blueprint.id, number, STREAM_MANAGER) / LEFT
    looks = max(1, round(blueprint.settings.emptying_secs / _LOOK))
    look = f"[ -e {shlex.quote(str(left))} ] && exit; sleep {_LOOK}"
    return f"touch {shlex.quote(str(folder / LEAVING))}; for _ in $(seq {looks}); do {look}; done"


def _resources(needs: Resource, settings: Settings) -> Manifest:
    """A container that takes more memory or disk than it asked for is killed; one that takes more CPU is not slowed."""
    cpu = f"{math.ceil(needs.cpu * 1000)}m"
    fixed = {"memory": f"{needs.ram}", "ephemeral-storage": f"{max(needs.disk, 64 * MIB)}"}
    return {
        "requests": {"cpu": cpu, **fixed},
        "limits": {**fixed, **({"cpu": cpu} if settings.kubernetes_cpu_limits else {})},
    }


def _environment(blueprint: Blueprint) -> list[Manifest]:
    """Of every container: its pod, its image, and where the topology's state lies."""
    fields = {
        "POD_UID": "metadata.uid",
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_IP": "status.podIP",
    }
    told = {"ARDEA_IMAGE": blueprint.pods.image, "ARDEA_STATE": blueprint.definition.state}
    return [
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
        *({"name": name, "value": value} for name, value in told.items()),
    ]


def _credential(blueprint: Blueprint) -> Manifest:
    key = {"name": names.secret(blueprint.root), "key": "zookeeper", "optional": True}
    return {"name": CREDENTIAL, "valueFrom": {"secretKeyRef": key}}


def _secret_file(blueprint: Blueprint) -> Manifest:
    return {"secretName": names.secret(blueprint.root), "items": [{"key": "token", "path": "token"}]}


def _key_volume(blueprint: Blueprint, number: int) -> list[Manifest]:
    secret = {"secretName": names.key_secret(blueprint.root, number)}
    return [{"name": "key", "secret": secret}] if blueprint.definition.keys else []


def _keys(blueprint: Blueprint) -> list[Manifest]:
    mount = {"name": "key", "mountPath": str(layout.KEY_MOUNT), "readOnly": True}
    return [mount] if blueprint.definition.keys else []


def _code_volume(blueprint: Blueprint) -> Manifest:
    keys = [PODS, *([BUNDLE] if blueprint.pods.python else [])]
    version = names.code(blueprint.root, blueprint.definition.code)
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


def _distinct(extras: Iterable[Extras]) -> list[Mapping[str, Any]]:
    """The volumes of several components, each name once."""
    return list({volume["name"]: volume for extra in extras for volume in extra.volumes}.values())


def _env_from(source: str) -> Manifest:
    kind, _, name = source.partition("/")
    return {"secretRef" if kind == "secret" else "configMapRef": {"name": name}}

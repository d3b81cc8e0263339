"""All that the objects of one topology are made from, as the root object keeps it.  Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

import msgspec

from ardea.config import Settings
from ardea.errors import UserError
from ardea.plan.definition import Definition
from ardea.plan.packing import ContainerPlan
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler.kubernetes import names, pod_spec
from ardea.scheduler.kubernetes.damage import reading
from ardea.state import paths

DEFINITION = "definition"
BUNDLE = "bundle"
PODS = "pods.json"
VOLUMES = "heron.kubernetes.volumes"
PullPolicy = Literal["Always", "IfNotPresent", "Never"]
MAX_BYTES = 900 << 10
"""What a definition, or a bundle, may take, compressed: an object of Kubernetes holds 1 MiB."""


class Console(msgspec.Struct, frozen=True, kw_only=True):
    """The chart's console: its ``account``, and whether it ``kills`` topologies."""

    account: str
    kills: bool = False


class Defaults(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the chart tells submitters (``defaults.json``); options win, and so does a topology's own configuration."""

    image: str = ""
    image_pull_policy: PullPolicy = "IfNotPresent"
    state: str = ""
    state_secret: str = ""
    master_service_account: str = "default"
    container_service_account: str = "default"
    master_replicas: int = 2
    config: dict[str, Any] = {}
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    pod_spec: dict[str, Any] = {}
    console: Console | None = None


class Bundle(msgspec.Struct, frozen=True):
    """The author's files: a compressed archive, and the Python (``3.11``) that they were checked with."""

    data: bytes
    python: str


class Pods(msgspec.Struct, frozen=True, kw_only=True):
    """How the pods of a topology are made, besides what its configuration says.

    ``python``: the minor version that the bundle was made with; empty without one.  ``spec``: the part of a PodSpec
    that the namespace adds to each.  ``state_secret``: the Secret with what ZooKeeper's servers want to see of whoever
    opens the state; empty: nothing.
    """

    image: str
    image_pull_policy: PullPolicy
    master_service_account: str
    container_service_account: str
    masters: int
    labels: dict[str, str]
    annotations: dict[str, str]
    python: str
    spec: dict[str, Any] = {}
    state_secret: str = ""

    def code(self, bundle: Bundle | None) -> str:
        """What the code is called that these pods run: equal files in equal pods are one version."""
        digest = hashlib.blake2b(msgspec.json.encode(self), digest_size=5)
        digest.update(bundle.data if bundle else b"")
        return digest.hexdigest()


class Extras(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration adds to a pod and to the containers of instances."""

    labels: dict[str, str]
    annotations: dict[str, str]
    env: dict[str, str]
    env_from: tuple[str, ...]
    volumes: tuple[Mapping[str, Any], ...]


class ManifestInputs(msgspec.Struct, frozen=True, kw_only=True):
    """A topology for a cluster: what runs (``definition``) and in what pods."""

    definition: Definition
    pods: Pods

    @property
    def id(self) -> str:
        """The topology's."""
        return self.definition.topology

    @property
    def root(self) -> str:
        """The name of the root object."""
        return names.root(paths.name_of(self.id))

    @property
    def settings(self) -> Settings:
        """The topology's configuration."""
        return Settings.of(self.definition.shape.config)

    @property
    def containers(self) -> tuple[ContainerPlan, ...]:
        """As packed; the masters' pods are not among them."""
        return packing_from_bytes(self.definition.packing).containers

    def extras(self, component: str | None = None) -> Extras:
        """What the topology, and then one of its components, adds to the pods.

        Raises:
            UserError: a volume has no name, or that of another one.
        """
        shape = self.definition.shape
        own = [(c.config, c.name) for c in shape.components if c.name == component]
        layers: list[Settings] = []
        volumes: dict[str, Mapping[str, Any]] = {}
        for config, whose in ((shape.config, "the topology"), *own):
            layers.append(Settings.of(config))
            volumes |= _named(layers[-1].kubernetes_volumes, whose)
        return Extras(
            labels=_united(layer.kubernetes_labels for layer in layers),
            annotations=_united(layer.kubernetes_annotations for layer in layers),
            env=_united(layer.kubernetes_env for layer in layers),
            env_from=tuple(dict.fromkeys(source for layer in layers for source in layer.kubernetes_env_from)),
            volumes=tuple(volumes.values()),
        )

    def pod_spec(self, components: Iterable[str] = ()) -> dict[str, Any]:
        """What the namespace, the topology and these components, in the order of their names, add to a pod's PodSpec.

        Raises:
            UserError: it cannot be added, or two components want different things.
        """
        shape = self.definition.shape
        there = {c.name: c.config.get(pod_spec.KEY) or {} for c in shape.components}
        chosen = {name: there[name] for name in sorted(set(components))}
        return pod_spec.layered(self.pods.spec, shape.config.get(pod_spec.KEY) or {}, chosen, there.keys())

    def content(self, plan: ContainerPlan) -> str:
        """What a container's pod is for: tasks of a build.  A pod of another content has to be replaced."""
        tasks = [self.definition.build, *(instance.task for instance in plan.instances)]
        return hashlib.blake2b(msgspec.json.encode(tasks), digest_size=8).hexdigest()

    def data(self) -> dict[str, Any]:
        """The ``data`` and ``binaryData`` of the root object."""
        return {
            "data": {PODS: msgspec.json.encode(self.pods).decode()},
            "binaryData": {DEFINITION: base64.b64encode(self.definition.packed()).decode()},
        }

    @classmethod
    def read(cls, root: dict[str, Any]) -> Self:
        """What :meth:`data` wrote into a root object.

        Raises:
            StateError: it holds something else.
        """
        with reading(root):
            return cls(
                definition=Definition.unpacked(
                    base64.b64decode(root["binaryData"][DEFINITION]), f"the root {root['metadata']['name']}"
                ),
                pods=msgspec.json.decode(root["data"][PODS], type=Pods),
            )


def _named(volumes: Iterable[Mapping[str, Any]], whose: str) -> dict[str, Mapping[str, Any]]:
    made: dict[str, Mapping[str, Any]] = {}
    for number, volume in enumerate(volumes, start=1):
        name = volume.get("name")
        if not isinstance(name, str):
            raise UserError(f"{VOLUMES} of {whose}: volume {number} has no name", hint='give each a "name" of its own')
        if name in made:
            raise UserError(f"{VOLUMES} of {whose}: two volumes are named {name}", hint="give one of them another name")
        made[name] = volume
    return made


def _united(maps: Iterable[Mapping[str, str] | None]) -> dict[str, str]:
    return {key: value for each in maps for key, value in (each or {}).items()}

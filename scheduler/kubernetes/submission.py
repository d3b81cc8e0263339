"""From an author's file to the objects of a topology in a cluster."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from ardea.config import Settings
from ardea.config_check import parse, validate
from ardea.errors import Conflict, NotFound, Unreachable, UserError
from ardea.plan.definition import Begins
from ardea.scheduler import keys
from ardea.scheduler.kubernetes import access, bundle, layout, names, objects, pods
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.manifest_inputs import Bundle, Console, Defaults, ManifestInputs, Pods
from ardea.scheduler.submission import Submission
from ardea.state import paths

MASTERS_KEY = "heron.topology.master.replicas"
METRICS_KEY = "heron.metricsmgr.port"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says; None: what the chart's defaults say.  ``path_in_image``: no bundle is sent."""

    image: str | None = None
    state: str | None = None
    state_secret: str | None = None
    path_in_image: str | None = None
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A topology that is ready to be submitted."""

    submission: Submission
    inputs: ManifestInputs
    bundle: Bundle | None
    keys: Mapping[str, str]
    console: Console | None = None

    def root(self) -> Manifest:
        """The root object."""
        return objects.root(self.inputs, self.submission.record())


def find_defaults(cluster: Objects) -> Defaults:
    """What the chart says in this namespace; nothing, if no chart is installed.

    Raises:
        Conflict: there are two.
        UserError: they cannot be read.
    """
    found = cluster.list("ConfigMap", names.DEFAULTS)
    return defaults_of(found, f"namespace {cluster.namespace}") if found else Defaults()


def defaults_of(manifests: Sequence[Manifest], place: str) -> Defaults:
    """What the chart says in its ConfigMap, which was found in ``place``.

    Raises:
        Conflict: there are two.
        UserError: it cannot be read.
    """
    called = [manifest["metadata"]["name"] for manifest in manifests]
    if len(manifests) > 1:
        raise Conflict(
            f"{place} has several ConfigMaps with defaults: {', '.join(called)}",
            hint="install the chart once in a namespace",
        )
    try:
        return msgspec.json.decode(manifests[0]["data"]["defaults.json"], type=Defaults)
    except (KeyError, ValueError) as error:
        raise UserError(f"ConfigMap {called[0]} holds no defaults.json that can be read: {error}") from error


def prepare(
    target: str,
    overrides: Mapping[str, Any],
    options: Options,
    defaults: Defaults,
    begins: Begins | None = None,
) -> Prepared:
    """Loads, checks and packs; nothing is sent.  A savepoint that it ``begins`` from is looked at by its master.

    Raises:
        NotFound: there is no such file.
        UserError: the file, the topology or the configuration is wrong, or no image or state is known.
    """
    image, state = options.image or defaults.image, options.state or defaults.state
    for what, known, option in (("image", image, "--image"), ("ZooKeeper", state, "--state")):
        if not known:
            raise UserError(
                f"no {what} is known: the chart's defaults name none, and {option} is not given; nothing was submitted",
                hint=f"`helm install ardea ./helm -n NAMESPACE` once, or say {option}",
            )
    made = Submission.of(target, overrides, state)
    texts = {key for key, value in defaults.config.items() if isinstance(value, str)}
    given = defaults.config | parse(f"{key}={defaults.config[key]}" for key in texts)  # `helm --set` makes texts
    lowest = {METRICS_KEY: layout.METRICS_PORT, **validate(given, "the namespace's defaults")}
    missing = {key: value for key, value in lowest.items() if key not in made.plan.config}
    made = Submission.of(target, {**missing, **overrides}, state)
    location, packed = pack(target, options)
    settings = Settings.of(made.plan.config)
    wanted = Pods(
        image=image,
        image_pull_policy=defaults.image_pull_policy,
        master_service_account=defaults.master_service_account,
        container_service_account=defaults.container_service_account,
        masters=settings.masters if MASTERS_KEY in made.plan.config else defaults.master_replicas,
        labels=defaults.labels,
        annotations=defaults.annotations,
        python=packed.python if packed else "",
        spec=defaults.pod_spec,
        state_secret=defaults.state_secret if options.state_secret is None else options.state_secret,
    )
    if begins is not None:
        _check_place(begins)
        made = made.begun_from(begins, seen=False)
    definition = msgspec.structs.replace(
        made.definition,
        location=location,
        state=f"{state.rstrip('/')}/{made.definition.topology}",
        code=wanted.code(packed),
        whole=True,
    )
    definition, secret_keys = keys.issue(definition)
    whole = replace(made, definition=definition, code=None)
    inputs = ManifestInputs(definition=definition, pods=wanted)
    pods.jobs(inputs, None)  # what cannot be added to them is refused before anything is made
    return Prepared(whole, inputs, packed, secret_keys, defaults.console)


def _check_place(begins: Begins) -> None:
    """UserError for a folder that is not the same one everywhere."""
    if "://" not in begins.folder and not begins.folder.startswith("/"):
        raise UserError(
            f"--from {begins.folder} is no place that a pod knows; nothing was submitted",
            hint="give an address such as s3://bucket/folder, or a whole path as the pods have it, of a mounted volume",
        )


def pack(target: str, options: Options) -> tuple[str, Bundle | None]:
    """Where the pods find the topology's file, and what brings it there; None: the image.

    Raises:
        NotFound: ``--include`` names a file that is not there.
        UserError: the files are too large.
    """
    file = Path(target if Path(target).is_file() else target.rpartition(":")[0])
    chosen = target.removeprefix(str(file))  # :Class, if it was given
    if options.path_in_image:
        return f"{options.path_in_image}{chosen}", None
    place = layout.CODE / file.resolve().relative_to(bundle.import_root(file))
    return f"{place}{chosen}", bundle.pack(file, options.include)


def submit(cluster: Objects, prepared: Prepared) -> Manifest:
    """Creates all objects; if one is refused, none is left.  Returns the root as the cluster knows it.

    A topology of this name that has ended makes room.

    Raises:
        Conflict: a topology of this name runs, or somebody else's object has a name that it needs.
        Unreachable: the cluster does not answer; if something may be left, the message says so.
    """
    inputs = prepared.inputs
    wanted = prepared.root()
    try:
        root = _create_root(cluster, inputs, wanted)
    except Conflict:
        _make_room(cluster, inputs)
        root = _create_root(cluster, inputs, wanted)
    try:
        token, password = secrets.token_hex(16), secrets.token_hex(16)
        opens = objects.access_secrets(inputs, token, f"{inputs.id}:{password}", prepared.keys, root)
        code = objects.code(inputs, prepared.bundle, root)
        for manifest in (*opens, code, *objects.key_secrets(inputs, prepared.keys, root)):
            _make(cluster, inputs, manifest)
        for job in pods.jobs(inputs, root):
            cluster.apply(job)
        access.grant(cluster, inputs)  # the last, because it stays, whatever is refused
    except BaseException:
        try:
            cluster.delete("ConfigMap", inputs.root, uid=root["metadata"]["uid"])
        except Unreachable as error:
            raise _left(cluster, inputs, error) from error
        raise
    return root


def _create_root(cluster: Objects, inputs: ManifestInputs, wanted: Manifest) -> Manifest:
    """As the cluster knows it; it may have made the root although its answer has not come."""
    try:
        return cluster.create(wanted)
    except Unreachable as error:
        there = None
        with contextlib.suppress(Unreachable):
            there = cluster.find("ConfigMap", inputs.root)
        if there is None or not names.labels(inputs.id).items() <= (there["metadata"].get("labels") or {}).items():
            raise _left(cluster, inputs, error) from error
        return there


def _left(cluster: Objects, inputs: ManifestInputs, error: Unreachable) -> Unreachable:
    return Unreachable(
        f"{error.message}; something of {inputs.id} may be left",
        hint=f"`ardea kill {paths.name_of(inputs.id)} -n {cluster.namespace}` removes it",
    )


def _make(cluster: Objects, inputs: ManifestInputs, manifest: Manifest) -> None:
    """Makes an object; what a former topology of the name has left, and the cluster is about to remove, becomes it.

    Raises:
        Conflict: it is somebody else's.
    """
    kind, metadata, topology = manifest["kind"], manifest["metadata"], paths.name_of(inputs.id)
    name = metadata["name"]
    try:
        cluster.create(manifest)
    except Conflict:
        there = cluster.find(kind, name)
        if there is None:
            cluster.create(manifest)
            return
        labels = there["metadata"].get("labels") or {}
        if names.TOPOLOGY_ID not in labels or not names.of_name(topology).items() <= labels.items():
            raise Conflict(
                f"namespace {cluster.namespace} has a {kind} {name} which is of no topology named {topology}; "
                "nothing was submitted",
                hint="submit under another --name",
            ) from None
        cluster.patch(kind, name, {**manifest, "metadata": {**metadata, "uid": there["metadata"]["uid"]}})


def _make_room(cluster: Objects, inputs: ManifestInputs) -> None:
    """For the name; what the former topology left goes with its root."""
    former = cluster.find("ConfigMap", inputs.root)
    if former is None:
        return
    if (former["metadata"].get("labels") or {}).get(names.ROLE) != "topology":
        raise Conflict(
            f"namespace {cluster.namespace} has a ConfigMap {inputs.root} which is no topology's; "
            "nothing was submitted",
            hint="submit under another --name",
        )
    status, record = objects.status_of(former), objects.record_of(former)
    if status is None or not status.final:
        raise Conflict(
            f"a topology named {record.name} is running, as {record.id}; nothing was submitted",
            hint=f"`ardea kill {record.name} -n {cluster.namespace}` ends it; or submit under another --name",
        )
    uid = former["metadata"]["uid"]
    cluster.delete("ConfigMap", inputs.root, uid=uid)
    for job in cluster.list("Job", names.of_topology(record.id)):
        cluster.delete("Job", job["metadata"]["name"], uid=job["metadata"]["uid"])
    for kind in ("Secret", "ConfigMap"):
        for manifest in cluster.list(kind, names.of_topology(record.id)):
            cluster.delete(kind, manifest["metadata"]["name"], uid=manifest["metadata"]["uid"])
    if cluster.find("ConfigMap", inputs.root) is not None:
        raise NotFound(f"{record.id} is still going; repeat the command")

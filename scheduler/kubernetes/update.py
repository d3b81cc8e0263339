"""An update of a topology on Kubernetes, from what is asked for to what it leaves behind.

The verb brings what new pods mount, and asks the master; the keeper replaces the Jobs (docs/updating.md).
"""

from __future__ import annotations

import base64
import contextlib
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ardea.errors import ArdeaError, ClusterError, NotFound, Unreachable, UserError
from ardea.plan.change import UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler import keys
from ardea.scheduler.control import ControlPort, Status
from ardea.scheduler.difference import difference
from ardea.scheduler.kubernetes import access, bundle, layout, names, objects, pods
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.manifest_inputs import BUNDLE, Bundle, ManifestInputs, Pods
from ardea.scheduler.kubernetes.provision import Provision
from ardea.scheduler.kubernetes.submission import Options, pack
from ardea.scheduler.kubernetes.topologies import Found
from ardea.scheduler.kubernetes.ways import Way
from ardea.scheduler.next_definition import Change, Version, next_of, plan_of
from ardea.scheduler.schedulers import Say, Update
from ardea.scheduler.update import Refused, Updating
from ardea.transport import KEY_FILE, holder

MASTER_WITHIN = 60.0
"""Seconds that a master has to come up, and its keeper to say in the root what runs."""
LOOK_EVERY = 0.5


@dataclass(frozen=True, slots=True)
class Code:
    """What the pods of containers run.  ``target`` is the topology's file as this process loads it."""

    location: str
    pods: Pods
    bundle: Bundle | None
    target: str

    @property
    def version(self) -> Version:
        """As the definition names it."""
        return Version(location=self.location, code=self.pods.code(self.bundle), complete=True)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be changed: ``present`` is what the ``root`` says runs, ``next`` what is to run, of this ``code``."""

    root: Manifest
    present: ManifestInputs
    next: Definition
    code: Code


class Preparation:
    """Loads, compares and packs."""

    def __init__(
        self,
        cluster: Objects,
        found: Found,
        control: ControlPort,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster, self._found, self._control = cluster, found, control
        self._clock, self._pause = clock, pause
        self._root = str(found.root["metadata"]["name"])

    def wanted(self, change: Change, target: str | None, options: Options) -> Wanted:
        """What an update is to bring about.

        Args:
            change: what is asked for, but for a version.
            target: the new version's file; None: the present one goes on.
            options: the image; how the file gets into it.

        Raises:
            UserError: it cannot be, or the cluster would not take its pods.
            Unreachable: no master says what runs.
        """
        root, present, half_done = self._present()
        with self._code(present, target, options) as code:
            if target is not None or options.image is not None:
                change = replace(change, version=code.version)
            next_ = next_of(
                present.definition, change, lambda config: plan_of(code.target, config), half_done=half_done
            )
        jobs = pods.jobs(ManifestInputs(definition=next_, pods=code.pods), root)
        if next_.build != present.definition.build:
            self._try(jobs)
        return Wanted(root, present, next_, code)

    def _try(self, jobs: list[Manifest]) -> None:
        """The keeper will make them when the topology stands still for the update: too late to hear of a mistake."""
        for job in jobs:
            tried = {**job, "metadata": {**job["metadata"], "name": f"{job['metadata']['name']}-tried"}}
            try:
                self._cluster.apply(tried, dry_run=True)
            except UserError as error:
                raise UserError(f"{error.message}; nothing was changed") from error
            except ClusterError:
                return  # a quota that is full says nothing of these pods

    def _present(self) -> tuple[Manifest, ManifestInputs, bool]:
        """The root, what it says runs as soon as its master says the same, and whether an update is half done."""
        deadline = self._clock() + MASTER_WITHIN
        while True:
            status = self._status()
            root = self._cluster.find("ConfigMap", self._root)
            if root is None:
                raise NotFound(f"{self._found.id} is gone")
            present = ManifestInputs.read(root)
            if status is not None and status.epoch == present.definition.epoch:
                return root, present, status.update is not None and status.update.step in ("switching", "putting back")
            if self._clock() >= deadline:
                raise Unreachable(
                    f"no master of {self._found.id} answers; nothing was changed"
                    if status is None
                    else f"{self._found.id} works by plan {status.epoch}, and its root still says "
                    f"{present.definition.epoch}; nothing was changed",
                    hint=f"`ardea logs {self._found.id} -n {self._cluster.namespace}` shows what its masters say",
                )
            self._pause(LOOK_EVERY)

    def _status(self) -> Status | None:
        with contextlib.suppress(Unreachable):
            return self._control.ask("status")
        return None

    @contextlib.contextmanager
    def _code(self, present: ManifestInputs, target: str | None, options: Options) -> Iterator[Code]:
        """What is to run; the present files are loaded from the cluster."""
        pods = msgspec.structs.replace(present.pods, image=options.image or present.pods.image)
        if target is not None:
            location, packed = pack(target, options)
            if packed and pods.image == present.pods.image and present.pods.python not in ("", packed.python):
                raise _other_python(present, packed.python)
            yield Code(location, msgspec.structs.replace(pods, python=packed.python if packed else ""), packed, target)
            return
        definition = present.definition
        held = self._cluster.find("ConfigMap", names.code(present.root, definition.code))
        if held is None or BUNDLE not in held.get("binaryData", {}):
            raise UserError(
                f"the code of {present.id} is in its image, and its plan is made here; nothing was changed",
                hint=f"give the same file as FILE, with --path-in-image {definition.location.partition(':')[0]}",
            )
        if pods.python != bundle.python_version():
            raise _other_python(present, bundle.python_version())
        packed = Bundle(base64.b64decode(held["binaryData"][BUNDLE]), pods.python)
        with tempfile.TemporaryDirectory(prefix="ardea-") as folder:
            bundle.unpack(packed.data, Path(folder))
            inside = Path(definition.location).relative_to(layout.CODE)
            yield Code(definition.location, pods, packed, str(Path(folder) / inside))


class PodUpdate(Update):
    """One update.  The same again joins, or finishes, what is half done."""

    def __init__(
        self,
        cluster: Objects,
        port: Way,
        wanted: Wanted,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``port`` is closed with it."""
        self._cluster, self._port, self._wanted = cluster, port, wanted
        self._clock, self._pause = clock, pause
        self._root = str(wanted.root["metadata"]["name"])
        self.difference = difference(wanted.present.definition, wanted.next)

    def apply(self, patience: float, say: Say) -> None:
        """See :class:`Update`.

        Raises:
            Conflict: another update brings a key for the same container at this moment; nothing was changed.
        """
        present, id_ = self._wanted.present, secrets.token_hex(8)
        provision = Provision(self._cluster, present.id, id_)
        next_ = self._brought(provision)
        request = UpdateRequest(id_, next_.definition, present.definition.epoch, patience)
        try:
            Updating(
                self._port, request, say, ended=self._ended, silence=MASTER_WITHIN, clock=self._clock, pause=self._pause
            ).update()
        except Refused:
            self._withdraw(provision)
            raise
        in_force = present if next_.definition.same_as(present.definition) else next_
        provision.sweep(in_force.definition.epoch, self._used(next_))

    def close(self) -> None:
        """See :class:`Update`."""
        self._port.close()

    def _withdraw(self, provision: Provision) -> None:
        """But for what the root says is mounted: a master that took this update before another may not know it."""
        with contextlib.suppress(ArdeaError):  # what is left goes with the next update
            root = self._cluster.find("ConfigMap", self._root)
            provision.withdraw(() if root is None else self._used(ManifestInputs.read(root)))

    def _brought(self, provision: Provision) -> ManifestInputs:
        """What runs next; the cluster has what its new pods mount."""
        wanted, code = self._wanted, self._wanted.code
        kept = self._kept(wanted.next)
        definition, fresh = keys.issue(wanted.next, kept)
        next_ = ManifestInputs(definition=definition, pods=code.pods)
        secrets_ = objects.key_secrets(next_, kept | fresh, wanted.root)
        provision.bring([*secrets_, objects.code(next_, code.bundle, wanted.root)])
        try:
            access.grant(self._cluster, next_)
        except BaseException:
            self._withdraw(provision)
            raise
        return next_

    def _ended(self) -> bool:
        try:
            root = self._cluster.find("ConfigMap", self._root)
        except ClusterError:
            return False  # the cluster does not say
        if root is None or root["metadata"]["uid"] != self._wanted.root["metadata"]["uid"]:
            return True
        status = objects.status_of(root)
        return status is not None and status.final

    def _kept(self, next_: Definition) -> dict[str, str]:
        """Keys of an update that was begun before."""
        lacking, found = keys.lacking(next_), {}
        for number in (plan.number for plan in packing_from_bytes(next_.packing).containers):
            if holder(number) not in lacking:
                continue
            if (secret := self._cluster.find("Secret", names.key_secret(self._root, number))) is not None:
                found[holder(number)] = base64.b64decode(secret["data"][KEY_FILE]).decode()
        return found

    def _used(self, now: ManifestInputs) -> frozenset[str]:
        """Code and keys that pods of this plan mount."""
        numbers = (MASTER_CONTAINER, *(plan.number for plan in now.containers))
        keys_ = (names.key_secret(self._root, number) for number in numbers)
        return frozenset((names.code(self._root, now.definition.code), *keys_))


def _other_python(present: ManifestInputs, here: str) -> UserError:
    return UserError(
        f"this is Python {here}, and {present.id} runs with {present.pods.python}; values and digests may differ, so "
        "nothing was changed",
        hint=f"use Python {present.pods.python}, or say --image with an image that has {here}",
    )

"""An update of a topology on Kubernetes, from its request to what it leaves behind.

The verb brings what new pods mount, and asks inside a master's pod; the keeper replaces the Jobs (docs/updating.md).
"""

from __future__ import annotations

import base64
import contextlib
import secrets
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from ardea.errors import ExitCode, NotFound, Unreachable, UserError
from ardea.plan import LogicalPlan
from ardea.plan.change import UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler import keys
from ardea.scheduler.control import Status
from ardea.scheduler.difference import Difference, difference
from ardea.scheduler.kubernetes import access, bundle, layout, names, objects
from ardea.scheduler.kubernetes.blueprint import BUNDLE, Blueprint, Bundle, Pods
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.provision import Provision
from ardea.scheduler.kubernetes.submission import Options, pack
from ardea.scheduler.kubernetes.topologies import Found, master_pods
from ardea.scheduler.update import Change, Version, next_of
from ardea.transport import KEY_FILE, holder

MASTER_WITHIN = 60.0
"""Seconds that a master has to come up, and its keeper to say in the root what runs."""
ATTEMPTS = 5
"""How many connections to masters may break before the verb gives up."""
LOOK_EVERY = 0.5
_KILLED = (128 + signal.SIGKILL, 128 + signal.SIGTERM)
"""What the verb inside ends with if its pod goes."""


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


class Update:
    """One update.  The same again joins, or finishes, what is half done."""

    def __init__(
        self,
        cluster: Objects,
        found: Found,
        status: Callable[[], Status | None],
        ask: Callable[[bytes], int],
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """What a master does for it.

        Args:
            cluster: the topology's namespace.
            found: the topology.
            status: asks the master; None: it does not answer now.
            ask: brings a request to it; returns the exit code of the verb that brought it.
            say: takes a sentence for people.
            clock: seconds, steady.
            pause: waits so many seconds.
        """
        self._cluster, self._found, self._status, self._ask, self._say = cluster, found, status, ask, say
        self._clock, self._pause = clock, pause
        self._root = str(found.root["metadata"]["name"])

    def update(
        self,
        change: Change,
        target: str | None,
        options: Options,
        build: Callable[[str, Mapping[str, Any]], LogicalPlan],
        patience: float,
    ) -> int:
        """Returns the exit code of the verb inside the cluster, which has said what there is to say.

        Args:
            change: what is asked for, but for a version.
            target: the new version's file; None: the present one goes on.
            options: the image; how the file gets into it.
            build: makes the plan of a file with a configuration.
            patience: seconds that new pods have to come up.

        Raises:
            UserError: it cannot be; nothing was changed.
            Conflict: another update brings a key for the same container at this moment; nothing was changed.
            Unreachable: no master answered for a while.
        """
        root, present, half_done = self._present()
        id_ = secrets.token_hex(8)
        provision = Provision(self._cluster, present.id, id_)
        with self._code(present, target, options) as code:
            next_ = _next(present, change, code, target, options, build, half_done=half_done)
            kept = self._kept(next_)
            next_, fresh = keys.issue(next_, kept)
            wanted = Blueprint(definition=next_, pods=code.pods)
            secrets_ = objects.key_secrets(wanted, kept | fresh, root)
            provision.bring([*secrets_, objects.code(wanted, code.bundle, root)])
            access.grant(self._cluster, wanted)
        request = UpdateRequest(id_, next_, present.definition.epoch, patience)
        ended = self._asked(base64.b64encode(msgspec.msgpack.encode(request)) + b"\n")
        if ended == ExitCode.OK:
            in_force = present if next_.same_as(present.definition) else wanted
            provision.sweep(in_force.definition.epoch, self._used(wanted))
        elif ended != ExitCode.UNREACHABLE:
            provision.withdraw()
        return ended

    def compared(
        self,
        change: Change,
        target: str | None,
        options: Options,
        build: Callable[[str, Mapping[str, Any]], LogicalPlan],
    ) -> Difference:
        """What :meth:`update` would change; nothing is."""
        _, present, half_done = self._present()
        with self._code(present, target, options) as code:
            next_ = _next(present, change, code, target, options, build, half_done=half_done)
        return difference(present.definition, next_)

    def _present(self) -> tuple[Manifest, Blueprint, bool]:
        """The root, what it says runs as soon as its master says the same, and whether an update is half done."""
        deadline = self._clock() + MASTER_WITHIN
        while True:
            status = self._status()
            root = self._cluster.find("ConfigMap", self._root)
            if root is None:
                raise NotFound(f"{self._found.id} is gone")
            present = Blueprint.read(root)
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

    @contextlib.contextmanager
    def _code(self, present: Blueprint, target: str | None, options: Options) -> Iterator[Code]:
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

    def _kept(self, next_: Definition) -> dict[str, str]:
        """Keys of an update that was begun before."""
        lacking, found = keys.lacking(next_), {}
        for number in (plan.number for plan in packing_from_bytes(next_.packing).containers):
            if holder(number) not in lacking:
                continue
            if (secret := self._cluster.find("Secret", names.key_secret(self._root, number))) is not None:
                found[holder(number)] = base64.b64decode(secret["data"][KEY_FILE]).decode()
        return found

    def _asked(self, request: bytes) -> int:
        """The request is brought again when a connection breaks: a master's pod may go, and the next one takes it."""
        failure = Unreachable(
            f"the masters' pods of {self._found.id} go while they are asked; the same again finishes what is half done"
        )
        for _ in range(ATTEMPTS):
            try:
                if (ended := self._ask(request)) not in _KILLED:
                    return ended
            except Unreachable as error:
                failure = error
            self._say("waiting for the topology master")
            deadline = self._clock() + MASTER_WITHIN
            while not master_pods(self._cluster, self._found.id) and self._clock() < deadline:
                self._pause(LOOK_EVERY)
        raise failure

    def _used(self, now: Blueprint) -> frozenset[str]:
        """Code and keys that pods of this plan mount."""
        numbers = (MASTER_CONTAINER, *(plan.number for plan in now.containers))
        keys_ = (names.key_secret(self._root, number) for number in numbers)
        return frozenset((names.code(self._root, now.definition.code), *keys_))


def _other_python(present: Blueprint, here: str) -> UserError:
    return UserError(
        f"this is Python {here}, and {present.id} runs with {present.pods.python}; values and digests may differ, so "
        "nothing was changed",
        hint=f"use Python {present.pods.python}, or say --image with an image that has {here}",
    )


def _next(
    present: Blueprint,
    change: Change,
    code: Code,
    target: str | None,
    options: Options,
    build: Callable[[str, Mapping[str, Any]], LogicalPlan],
    *,
    half_done: bool,
) -> Definition:
    if target is not None or options.image is not None:
        change = replace(change, version=code.version)
    return next_of(present.definition, change, lambda config: build(code.target, config), half_done=half_done)

"""The control port of a topology on Kubernetes: asked over TCP, by a pod whose account may read the callers' key."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import NamedTuple

from ardea.errors import ClusterError, NotFound, Unreachable, Unrecognized
from ardea.plan.names import MASTER_CONTAINER
from ardea.protocol.checked import MalformedError
from ardea.protocol.wire_pb2 import Ask
from ardea.scheduler.control import PATIENCE, Status, answered
from ardea.scheduler.kubernetes import names, objects
from ardea.scheduler.kubernetes.asking import MASTER, asked
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.control import ANSWERS_WITHIN, LOOK_EVERY
from ardea.scheduler.kubernetes.topologies import Found
from ardea.transport import CALLERS, Keyring, holder


class Access(NamedTuple):
    """What opens the control port: the ``token``, and the ``keys`` of a caller; None: the topology has no keys."""

    token: str
    keys: Keyring | None


class Direct:
    """A :class:`ardea.scheduler.control.ControlPort` that starts no program.  Belongs to one thread."""

    def __init__(
        self,
        cluster: Objects,
        found: Found,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster, self._found, self._clock, self._pause = cluster, found, clock, pause
        self._address = _address(found.root)
        self._access: Access | None = None

    def ask(self, verb: str, *, patience: float = PATIENCE, body: bytes = b"", **arguments: str) -> Status:
        """See :class:`ControlPort`.

        Raises:
            NotFound: the topology is gone.
            Unreachable: also, this account may not read the callers' Secret, or it does not fit.
        """
        access = self._access = self._access or self._read()
        ask = Ask(verb=verb, token=access.token, arguments=arguments, body=body)
        deadline = self._clock() + patience
        while (left := deadline - self._clock()) > 0:
            if self._address and (status := self._answer(access, ask, min(ANSWERS_WITHIN, left))) is not None:
                return status
            self._pause(LOOK_EVERY)
            self._address = self._look()  # another master may act by now
        raise self._silence(verb, patience)

    def close(self) -> None:
        """Keeps nothing open between two questions."""

    def _answer(self, access: Access, ask: Ask, seconds: float) -> Status | None:
        """None: it has not answered, or what came is no answer."""
        frames = asked(self._address, access.keys, ask, seconds)
        try:
            return answered(frames, self._found.id) if frames else None
        except MalformedError:
            return None

    def _look(self) -> str:
        """Where the acting master's port is; empty: none acts."""
        metadata = self._found.root["metadata"]
        root = self._cluster.find("ConfigMap", str(metadata["name"]))
        if root is None or root["metadata"]["uid"] != metadata["uid"]:
            raise NotFound(f"{self._found.id} is gone")
        return _address(root)

    def _silence(self, verb: str, patience: float) -> Unreachable:
        what = f"the master of {self._found.id} did not answer `{verb}` within {patience:g} s"
        if not self._address:
            return Unreachable(
                f"{what}: none acts",
                hint=f"`ardea describe {self._found.id} -n {self._cluster.namespace}` shows what its masters wait for",
            )
        return Unreachable(
            f"{what} at {self._address}",
            hint="if it answers others, a NetworkPolicy keeps this pod from the ports of masters",
        )

    def _read(self) -> Access:
        """Its Secret: the token, and the key that the topology's masters let in."""
        name = names.callers_secret(str(self._found.root["metadata"]["name"]))
        where = f"the Secret {name} in namespace {self._cluster.namespace}"
        cannot = f"the masters of {self._found.id} cannot be asked"
        try:
            secret = self._cluster.find("Secret", name)
        except (Unreachable, Unrecognized):
            raise
        except ClusterError as error:
            raise Unreachable(
                f"{cannot}: this account may not read {where}",
                hint="name the topology in `console.topologies` of the chart's values, and upgrade the release",
            ) from error
        if secret is None:
            raise Unreachable(
                f"{cannot}: there is not {where}, which submitting makes since version 0.2",
                hint="submit the topology again, or use the command line",
            )
        try:
            return self._opened(secret)
        except (ValueError, KeyError, TypeError) as error:
            raise Unreachable(
                f"{cannot}: what is in {where} does not fit: {error or type(error).__name__}",
                hint="submit the topology again, or use the command line",
            ) from error

    def _opened(self, secret: Manifest) -> Access:
        """ValueError, KeyError or TypeError for what is none of this topology's."""
        data = {
            key: base64.b64decode(value, validate=True).decode() for key, value in (secret.get("data") or {}).items()
        }
        public = self._found.inputs.definition.keys
        if not public:
            return Access(data["token"], None)
        ring = Keyring(data[CALLERS].strip(), {MASTER: public[holder(MASTER_CONTAINER)]})
        if ring.public.decode() != public[CALLERS]:
            raise ValueError("its key is another topology's")
        return Access(data["token"], ring)


def _address(root: Manifest) -> str:
    status = objects.status_of(root)
    return status.master if status is not None else ""

"""Who may connect over TCP: CurveZMQ, a key pair for each container, and a door for these only (docs/security.md).

A process has the secret key of its container, as a file, and the public keys of all, from the definition and the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import zmq

from ardea.errors import ConfigError
from ardea.transport.sockets import Context, make_socket

KEY_FILE = "secret.key"
"""The file in the folder of ``--keys``: 40 characters of Z85, readable by its owner only."""
CALLERS = "callers"
"""Who the command line is, among the names of public keys."""

_DOMAIN = "ardea"
_HANDLER = "inproc://zeromq.zap.01"
_COME_IN, _NOT_NOW = b"200", b"300"
"""300: refused without a word, so that one whose key is not known yet tries again; after 400 ZeroMQ never would."""


def holder(container: int) -> str:
    """The name of a container's public key; 0 is the master's."""
    from ardea.plan.names import container_name  # with it comes the whole plan, that a caller in a pod does not need

    return container_name(container)


def pair() -> tuple[str, str]:
    """A new public key, and its secret one; 40 characters of Z85 each."""
    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()


class Keyring:
    """One process' secret key, and the public keys of its topology by name; more become known with new plans."""

    def __init__(self, secret: str, known: Mapping[str, str]) -> None:
        """ValueError: ``secret`` is no key."""
        self.secret = secret.encode()
        try:
            self.public = zmq.curve_public(self.secret)
        except zmq.ZMQError as error:
            raise ValueError("no secret key") from error
        self._known = dict(known)

    @classmethod
    def read(cls, folder: Path | None, known: Mapping[str, str]) -> Keyring | None:
        """That of a process which was started with ``--keys FOLDER``; None: its topology has no keys.

        Raises:
            ConfigError: the secret key is missing, or not one of this topology's.
        """
        if not known:
            return None
        hint = "submit the topology again, or mount the container's own key"
        if folder is None:
            raise ConfigError("the topology has keys, and this process none: --keys FOLDER is missing", hint=hint)
        path = folder / KEY_FILE
        try:
            ring = cls(path.read_text().strip(), known)
        except (OSError, ValueError) as error:
            raise ConfigError(f"the key {path} cannot be read: {error}", hint=hint) from error
        if ring.public.decode() not in known.values():
            raise ConfigError(f"the key {path} is none of this topology's", hint=hint)
        return ring

    def learn(self, known: Mapping[str, str]) -> None:
        """Public keys by name; containers that are new, or have a new key."""
        self._known.update(known)

    def of(self, name: str) -> bytes:
        """Somebody's public key; ConfigError if there is none."""
        try:
            return self._known[name].encode()
        except KeyError:
            raise ConfigError(f"the topology has no key of {name}", hint="submit the topology again") from None

    def admits(self, public: bytes, *, callers: bool) -> bool:
        """Whether that is a key of the topology's; ``callers``: the command line's counts, too."""
        text = public.decode("ascii", errors="replace")
        return any(text == key for name, key in self._known.items() if callers or name != CALLERS)


class Door:
    """Lets those through to the sockets of one process whose keys the ring knows: the handler of ZeroMQ's ZAP.

    The process' poller answers for it; without that, nobody comes in.
    """

    def __init__(self, ctx: Context, keys: Keyring, *, callers: bool = False) -> None:
        """``callers``: the command line may come, too."""
        self.refused = 0
        self._keys = keys
        self._callers = callers
        self._socket = make_socket(ctx, zmq.REP)
        self._socket.bind(_HANDLER)

    def guard(self, socket: zmq.Socket[bytes]) -> None:
        """Before it is bound."""
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret)
        socket.setsockopt_string(zmq.ZAP_DOMAIN, _DOMAIN)
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)  # without a door nobody passes

    def answer(self) -> None:
        """Those who knock now."""
        while True:
            try:
                version, request, _domain, _address, _identity, mechanism, *credentials = self._socket.recv_multipart(
                    zmq.NOBLOCK
                )
            except zmq.Again:
                return
            known = mechanism == b"CURVE" and self._keys.admits(_z85(credentials[0]), callers=self._callers)
            self.refused += not known
            self._socket.send_multipart([version, request, _COME_IN if known else _NOT_NOW, b"", b"", b""])

    def close(self) -> None:
        """Nobody comes in any more."""
        self._socket.close(0)

    @property
    def pollable(self) -> zmq.Socket[bytes]:
        """For the poller."""
        return self._socket


def introduce(socket: zmq.Socket[bytes], keys: Keyring, name: str) -> None:
    """Before it dials ``name``: with the own key, and only whoever has that name's."""
    socket.setsockopt(zmq.CURVE_SERVERKEY, keys.of(name))
    socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public)
    socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)


def _z85(key: bytes) -> bytes:
    from zmq.utils import z85  # only whoever listens needs it

    return z85.encode(key)

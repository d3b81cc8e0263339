"""Where a ZooKeeper is, ``zookeeper://host:port,host:port/root``, and what its servers want to see of a client."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from ardea.errors import UserError
from ardea.state import paths

SCHEME, TLS_SCHEME = "zookeeper", "zookeeper+tls"
DEFAULT_ROOT = "/ardea"
CREDENTIAL = "ARDEA_ZOOKEEPER_AUTH"
"""The environment variable with ``user:password``: what nodes are written with, and who may read them."""
SECRETS = "ARDEA_ZOOKEEPER_SECRETS"
"""The environment variable with the folder of :class:`Secrets`."""

ADDRESS_FILE, CREDENTIAL_FILE = "address", "credential"

MOST_AT_ONCE = 0xFFFFF - 1024
"""Bytes that ZooKeeper takes in one transaction."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?", re.ASCII)
_PORTS = {SCHEME: 2181, TLS_SCHEME: 2281}


def folder_of(url: str) -> Path | None:
    """The directory that a state's address names, ``~`` as it is; None: it names a ZooKeeper.

    Raises:
        UserError: it names neither.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        if not url:
            raise UserError("the state's address is empty", hint="name a directory: --state DIR")
        return Path(url)
    if scheme[1].lower() in (SCHEME, TLS_SCHEME):
        return None
    if scheme[1].lower() != "file":
        raise UserError(
            f"unknown scheme {scheme[1]!r} in the state's address {url}",
            hint=f"name a directory, as DIR or file:///DIR, or {SCHEME}://host:port/root",
        )
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise UserError(f"{url} names no absolute path", hint="three slashes: file:///var/lib/ardea")
    return Path(unquote(parts.path))


@dataclass(frozen=True, slots=True)
class Secrets:
    """Files of a folder, each of which may be absent; they are read anew for each connection.

    ``ca.crt`` has the certificates that sign those of the servers, ``tls.crt`` and ``tls.key`` are the client's own, as
    in a Secret of type ``kubernetes.io/tls``, and ``sasl`` has ``user:password``.
    """

    folder: Path

    def path(self, name: str) -> str | None:
        """Of a file that is there."""
        file = self.folder / name
        return str(file) if file.exists() else None

    @property
    def sasl(self) -> tuple[str, str] | None:
        """User and password.

        Raises:
            UserError: there is a file, and it cannot be read or has something else.
        """
        file = self.folder / "sasl"
        try:
            user, colon, password = file.read_text().strip().partition(":")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{file} cannot be read: {error}", hint=f"{SECRETS} names its folder") from error
        if not (user and colon and password):
            raise UserError(f"{file} is not user:password", hint="remove it if the servers ask for no SASL")
        return user, password

    def check(self) -> None:
        """Looks at each file as far as that can be done alone.

        Raises:
            UserError: what is missing.
        """
        pair = self.path("tls.crt"), self.path("tls.key")
        if not any((*pair, self.path("ca.crt"), self.sasl)):
            raise UserError(
                f"{self.folder}, the folder in {SECRETS}, has none of ca.crt, tls.crt, tls.key and sasl",
                hint="docs/state.md says what belongs in it; unset the variable if the servers ask for nothing",
            )
        if None in pair and any(pair):
            raise UserError(f"{self.folder} has one of tls.crt and tls.key only", hint="they belong together")


@dataclass(frozen=True, slots=True)
class Address:
    """``hosts`` as ``host:port,host:port``; ``credential`` is ``user:password`` or empty, and never printed."""

    hosts: str
    root: str
    credential: str = field(default="", repr=False)
    tls: bool = False
    secrets: Secrets | None = None

    @classmethod
    def parse(cls, url: str, environment: Mapping[str, str] = os.environ, credential: str = "") -> Self:
        """The address that the URL names; ``credential`` wins over the environment's.

        Where it has none, the port is 2181, or 2281 with TLS, and the root ``/ardea``.

        Raises:
            UserError: what is wrong with the URL, with the credential or with the folder of secrets.
        """
        scheme, _, rest = url.partition("://")
        listed, slash, below = rest.partition("/")
        root = f"/{below}".rstrip("/") if slash else ""
        if "@" in listed:
            raise UserError("a credential does not belong in the state's address", hint=f"set {CREDENTIAL} instead")
        hosts = ",".join(_host(server, url, _PORTS[scheme.lower()]) for server in listed.split(","))
        try:
            paths.split(root or DEFAULT_ROOT)
        except ValueError:
            raise UserError(f"{root!r} in the state's address {url} is no path for nodes", hint=_HINT) from None
        credential = credential or environment.get(CREDENTIAL, "")
        user, colon, password = credential.partition(":")
        if credential and not (user and colon and password):
            raise UserError(f"{CREDENTIAL} is not user:password", hint="unset it if the servers ask for none")
        secrets = Secrets(Path(environment[SECRETS])) if environment.get(SECRETS) else None
        if secrets:
            secrets.check()
        return cls(hosts, root or DEFAULT_ROOT, credential, scheme.lower() == TLS_SCHEME, secrets)


_HINT = f"as in {SCHEME}://zk1:2181,zk2:2181,zk3:2181/ardea, or {TLS_SCHEME}://zk1:2281/ardea"


def _host(server: str, url: str, port: int) -> str:
    match = _HOST.fullmatch(server)
    if match is None or not 0 < int(match[2] or port) < 65536:
        raise UserError(f"{server!r} in the state's address {url} is no host:port", hint=_HINT)
    return f"{match[1]}:{match[2] or port}"


@dataclass(frozen=True, slots=True)
class Access:
    """A state's ``address``, and what opens it: ``user:password``, never printed; empty: the environment's."""

    address: str
    credential: str = field(default="", repr=False)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """From the files ``address`` and ``credential`` of a folder.

        Raises:
            UserError: they cannot be read.
        """
        try:
            return cls(*((folder / name).read_text().strip() for name in (ADDRESS_FILE, CREDENTIAL_FILE)))
        except OSError as error:
            raise UserError(
                f"the credentials for the state manager cannot be read: {error}",
                hint="look at the Secret that is mounted there",
            ) from error

"""Where a ZooKeeper is: ``zookeeper://host:port,host:port/root``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from ardea.errors import UserError
from ardea.state import paths

SCHEME = "zookeeper"
DEFAULT_ROOT = "/ardea"
CREDENTIAL = "ARDEA_ZOOKEEPER_AUTH"
"""The environment variable with ``user:password``: what nodes are written with, and who may read them."""

ADDRESS_FILE, CREDENTIAL_FILE = "address", "credential"

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?", re.ASCII)
_PORT = 2181


@dataclass(frozen=True, slots=True)
class Address:
    """``hosts`` as ``host:port,host:port``; ``credential`` is ``user:password`` or empty, and never printed."""

    hosts: str
    root: str
    credential: str = field(default="", repr=False)

    @classmethod
    def parse(cls, url: str, environment: Mapping[str, str] = os.environ, credential: str = "") -> Self:
        """The address that the URL names; the port is 2181 and the root ``/ardea`` where it has none.

        ``credential`` wins over the environment's.

        Raises:
            UserError: what is wrong with the URL or with the credential.
        """
        listed, slash, rest = url.partition("://")[2].partition("/")
        root = f"/{rest}".rstrip("/") if slash else ""
        hint = "as in zookeeper://zk1:2181,zk2:2181,zk3:2181/ardea"
        if "@" in listed:
            raise UserError("a credential does not belong into the state's address", hint=f"set {CREDENTIAL} instead")
        hosts = []
        for server in listed.split(","):
            match = _HOST.fullmatch(server)
            if match is None or not 0 < int(match[2] or _PORT) < 65536:
                raise UserError(f"{server!r} in the state's address {url} is no host:port", hint=hint)
            hosts.append(f"{match[1]}:{match[2] or _PORT}")
        try:
            paths.split(root or DEFAULT_ROOT)
        except ValueError:
            raise UserError(f"{root!r} in the state's address {url} is no path for nodes", hint=hint) from None
        credential = credential or environment.get(CREDENTIAL, "")
        user, colon, password = credential.partition(":")
        if credential and not (user and colon and password):
            raise UserError(f"{CREDENTIAL} is not user:password", hint="unset it if the servers ask for none")
        return cls(",".join(hosts), root or DEFAULT_ROOT, credential)


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
                f"what opens the state manager cannot be read: {error}", hint="look at the Secret that is mounted there"
            ) from error

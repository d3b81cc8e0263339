"""Key pairs for a topology: made where it is submitted or updated, one for each container (docs/security.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ardea.config import Settings
from ardea.plan.definition import Definition
from ardea.plan.wire import packing_from_bytes
from ardea.transport import CALLERS, KEY_FILE, holder, pair

MASTER_CONTAINER = 0
FOLDER = "keys"
"""Where a process finds its container's secret key, below the container's folder; callers: below the topology's."""


def issue(definition: Definition) -> tuple[Definition, dict[str, str]]:
    """The definition with a public key for whoever lacks one, and the new secret keys, by the same names.

    Public keys of containers that are not packed any more go.  ``heron.streammgr.curve: false`` gives no keys.
    """
    if not Settings.of(definition.shape.config).curve:
        return msgspec.structs.replace(definition, keys={}), {}
    numbers = [MASTER_CONTAINER, *(plan.number for plan in packing_from_bytes(definition.packing).containers)]
    public, secret = {}, {}
    for name in (CALLERS, *map(holder, numbers)):
        if name in definition.keys:
            public[name] = definition.keys[name]
        else:
            public[name], secret[name] = pair()
    return msgspec.structs.replace(definition, keys=public), secret


def write(folder: Path, secrets: Mapping[str, str]) -> None:
    """Puts secret keys where the processes of a topology on this machine look, readable by their owner only."""
    for name, secret in secrets.items():
        place = keys_of(folder if name == CALLERS else folder / name)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(place / KEY_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(f"{secret}\n")


def keys_of(folder: Path) -> Path:
    """What ``--keys`` names for the processes of a container's folder, and callers read below the topology's."""
    return folder / FOLDER

"""Key pairs for a topology: made where it is submitted or updated, one for each container (docs/security.md)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ardea.config import Settings
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER
from ardea.plan.wire import packing_from_bytes
from ardea.transport import CALLERS, KEY_FILE, Keyring, holder, pair

FOLDER = "keys"
"""Where a process finds its container's secret key, below the container's folder; callers: below the topology's."""


def issue(definition: Definition, kept: Mapping[str, str] | None = None) -> tuple[Definition, dict[str, str]]:
    """The definition with a public key for whoever lacks one, and the new secret keys, by the same names.

    Public keys of containers that are not packed any more go.  ``heron.streammgr.curve: false`` gives no keys.

    Args:
        definition: of a topology that is submitted or updated.
        kept: secret keys that were made before, for an update that is repeated: no others are made in their place.
    """
    if not Settings.of(definition.shape.config).curve:
        return msgspec.structs.replace(definition, keys={}), {}
    public, secret = {}, {}
    for name in _holders(definition):
        if name in definition.keys:
            public[name] = definition.keys[name]
        elif kept and name in kept:
            public[name] = Keyring(kept[name], {}).public.decode()
        else:
            public[name], secret[name] = pair()
    return msgspec.structs.replace(definition, keys=public), secret


def lacking(definition: Definition) -> list[str]:
    """Who has no public key in the definition yet."""
    return [name for name in _holders(definition) if name not in definition.keys]


def read(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The secret keys of these that :func:`write` has left there."""
    found = {}
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            found[name] = (keys_of(folder if name == CALLERS else folder / name) / KEY_FILE).read_text().strip()
    return found


def write(folder: Path, secrets: Mapping[str, str]) -> None:
    """Puts secret keys where the processes of a topology on this machine look, readable by their owner only."""
    for name, secret in secrets.items():
        place = keys_of(folder if name == CALLERS else folder / name)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(place / KEY_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(f"{secret}\n")


def _holders(definition: Definition) -> list[str]:
    numbers = [MASTER_CONTAINER, *(plan.number for plan in packing_from_bytes(definition.packing).containers)]
    return [CALLERS, *map(holder, numbers)]


def keys_of(folder: Path) -> Path:
    """What ``--keys`` names for the processes of a container's folder, and callers read below the topology's."""
    return folder / FOLDER

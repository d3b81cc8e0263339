"""Key pairs for a topology: made where it is submitted or updated, one for each container (docs/security.md)."""

from __future__ import annotations

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
    """The secret keys of these that :func:`write` has left there; what is no key is none."""
    found = {name: _secret(_file(folder, name)) for name in names}
    return {name: secret for name, secret in found.items() if secret}


def write(folder: Path, secrets: Mapping[str, str]) -> None:
    """Puts secret keys where the processes of a topology on this machine look, readable by their owner only.

    A key that is there already stays: another verb has made it at this moment, and :func:`read` tells which it is.

    Raises:
        OSError: one cannot be written; the others are whole.
    """
    for name, secret in secrets.items():
        place = _file(folder, name)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            new.touch(mode=0o600)
            new.write_text(f"{secret}\n")
            _put(new, place)
        finally:
            new.unlink(missing_ok=True)


def _put(new: Path, place: Path) -> None:
    try:
        place.hardlink_to(new)
    except FileExistsError:
        if not _secret(place):  # of a write that broke off
            new.replace(place)


def _file(folder: Path, name: str) -> Path:
    return keys_of(folder if name == CALLERS else folder / name) / KEY_FILE


def _secret(place: Path) -> str:
    """What is there, if it is a key."""
    try:
        return Keyring(place.read_text().strip(), {}).secret.decode()
    except (FileNotFoundError, ValueError):
        return ""


def _holders(definition: Definition) -> list[str]:
    numbers = [MASTER_CONTAINER, *(plan.number for plan in packing_from_bytes(definition.packing).containers)]
    return [CALLERS, *map(holder, numbers)]


def keys_of(folder: Path) -> Path:
    """What ``--keys`` names for the processes of a container's folder, and callers read below the topology's."""
    return folder / FOLDER

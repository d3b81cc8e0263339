"""Which snapshot a topology goes on from whose record is lost (docs/snapshots.md)."""

from __future__ import annotations

import re

from ardea.errors import StateError
from ardea.snapshots.manifest import Manifest, decode_manifest, manifest_name
from ardea.snapshots.place import Files

_MANIFEST = re.compile(r"(\d+)\.(\d+)\.manifest")


def newest(files: Files) -> Manifest | None:
    """The list with the highest number; None: there is none.

    A list is written once all tasks have stored their parts, and before its snapshot counts.  So it is as good as one
    that counts: nothing outside knows of anything later.

    Raises:
        StateError: it is damaged, or not all that it names is there.
        OSError: the store cannot be read.
    """
    names = set(files.names())
    lists = [found for name in names if (found := _MANIFEST.fullmatch(name))]
    number = max((int(each[1]) << 32 | int(each[2]) for each in lists), default=0)
    if not number:
        return None
    manifest = decode_manifest(files.read(manifest_name(number)), number)
    if missing := sorted(manifest.names - names):
        raise StateError(f"of the snapshot {manifest_name(number)} {missing[0]} is missing in {files}")
    return manifest

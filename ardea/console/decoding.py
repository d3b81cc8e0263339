"""What has to be done before threads decode."""

from __future__ import annotations

import contextlib

import msgspec


def prepare() -> None:
    """Has msgspec read the fields of every type of document that is loaded.

    It does so when a type is decoded for the first time, and two threads that are the first to decode one take the
    process down: the second finds the fields half read (msgspec 0.22, ``json_decode_struct_map_inner``).
    """
    types = [msgspec.Struct]
    while types:
        kind = types.pop()
        types += kind.__subclasses__()
        if kind is not msgspec.Struct:
            with contextlib.suppress(TypeError):  # one that is never decoded
                msgspec.json.Decoder(kind)

"""``python -m ardea.scheduler.kubernetes.inside FOLDER``: the way from a verb outside to the acting master.

It runs in a master's pod, at the other end of an exec, where the master's port, the token and the callers' key are in
reach; FOLDER is the topology's.  It knows nothing but how to ask, needs little memory and starts
fast: masters have 0.1 CPU and 256 MiB unless somebody gives them more.  It ends with its stdin, or when nobody has
asked for a minute.
"""

from __future__ import annotations

import base64
import json
import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path

from ardea.protocol.wire_pb2 import Ask
from ardea.scheduler.kubernetes.asking import MASTER, asked
from ardea.transport import KEY_FILE, Keyring

READY = b"ready"
"""Its first line."""
IDLE_SECS = 60.0
KEYS = "keys"
"""As :data:`ardea.scheduler.keys.FOLDER`, whose module would bring all plans into memory."""
_CHUNK = 1 << 16


def question(number: int, address: str, key: str, ask: Ask, seconds: float) -> bytes:
    """A line for it.

    Args:
        number: that the answer carries.
        address: the acting master's, ``tcp://HOST:PORT``.
        key: that master's public key; empty: the topology has no keys.
        ask: the verb, without the token.
        seconds: how long it may wait for the answer.
    """
    text = base64.b64encode(ask.SerializeToString()).decode()
    asked = {"number": number, "address": address, "key": key, "ask": text, "seconds": seconds}
    return json.dumps(asked).encode() + b"\n"


def answer(line: bytes) -> tuple[int, list[bytes] | None]:
    """What it says: the question's number, and the frames of the master's answer; None: none has come in time.

    Raises:
        ValueError, KeyError, TypeError: the line is something else.
    """
    answer = json.loads(line)
    frames = answer["frames"]
    return int(answer["number"]), None if frames is None else [base64.b64decode(frame) for frame in frames]


def main() -> int:
    """Answers one question after the other."""
    folder = Path(sys.argv[1])
    token = (folder / "token").read_text().strip()
    key = folder / KEYS / KEY_FILE
    secret = key.read_text().strip() if key.exists() else ""
    _say(READY)
    for line in _lines():
        told = json.loads(line)
        ask = Ask.FromString(base64.b64decode(told["ask"]))
        ask.token = token
        keys = Keyring(secret, {MASTER: told["key"]}) if told["key"] else None
        frames = asked(told["address"], keys, ask, float(told["seconds"]))
        encoded = None if frames is None else [base64.b64encode(frame).decode() for frame in frames]
        _say(json.dumps({"number": told["number"], "frames": encoded}).encode())
    return 0


def _lines() -> Iterator[bytes]:
    rest = b""
    while select.select([0], [], [], IDLE_SECS)[0] and (chunk := os.read(0, _CHUNK)):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

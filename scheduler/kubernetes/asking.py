"""One question to one master, by its address: what the verbs' ways to it on Kubernetes have in common."""

from __future__ import annotations

import contextlib
import os
import secrets
import time

from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.wire_pb2 import ANSWER, ASK, Ask, Header
from ardea.transport import Dialled, Keyring, Poller, context
from ardea.versions import PROTOCOL

MASTER = "master"
"""Whose public key the ring of :func:`asked` has under this name."""


def asked(address: str, keys: Keyring | None, ask: Ask, seconds: float) -> list[bytes] | None:
    """The frames of the answer; None: none has come within ``seconds``.

    Args:
        address: the master's, ``tcp://HOST:PORT``.
        keys: the callers' key, and the master's public one as :data:`MASTER`; None: the topology has no keys.
        ask: the verb, with the token.
        seconds: how long to wait, the connection included.
    """
    deadline = time.monotonic() + seconds
    ctx, poller = context(), Poller()
    identity = b"c%d-%s" % (os.getpid(), secrets.token_hex(4).encode())
    link = Dialled(ctx, identity, address, keys, MASTER)
    poller.watch(link)
    try:
        link.send([Header(kind=ASK, protocol=PROTOCOL).SerializeToString(), ask.SerializeToString()])
        while (left := deadline - time.monotonic()) > 0:
            poller.wait(left)
            for frames in link.receive(16):
                with contextlib.suppress(MalformedError):  # as if it had not come
                    if checked(frames).kind == ANSWER:
                        return list(frames)
        return None
    finally:
        link.close(0)
        poller.close()
        ctx.destroy(linger=0)

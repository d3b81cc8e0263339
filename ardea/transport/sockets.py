"""Where every ZeroMQ socket is made, so that the bounds on what strangers may cost hold for all (docs/security.md)."""

from __future__ import annotations

import os
import sys

import zmq

from ardea.transport.framing import LARGEST_FRAME

LINGER_MS = 1000
RECONNECT_MS, RECONNECT_MAX_MS = 50, 1000
HANDSHAKE_MS = 2000
"""Who is not let in by then hangs up, and tries again: its key may be known by then."""
SEALED_BYTES = 1024
"""More than the table of :mod:`ardea.transport.framing`, or CurveZMQ, adds to a frame."""

Context = zmq.Context[zmq.Socket[bytes]]


def make_socket(ctx: Context, kind: int) -> zmq.Socket[bytes]:
    """A socket that never blocks, and that hangs up on a peer which announces a larger frame than any process sends.

    The bound holds from the first byte, for commands of the handshake, too: a stranger's frame is not even begun.
    Over ipc only processes of the same user are let in.
    """
    socket = ctx.socket(kind)
    for option, value in (
        (zmq.MAXMSGSIZE, LARGEST_FRAME + SEALED_BYTES),
        (zmq.SNDHWM, 0),
        (zmq.RCVHWM, 0),
        (zmq.LINGER, LINGER_MS),
        (zmq.RECONNECT_IVL, RECONNECT_MS),
        (zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS),
        (zmq.HANDSHAKE_IVL, HANDSHAKE_MS),
        (zmq.HEARTBEAT_IVL, 5000),
        (zmq.HEARTBEAT_TIMEOUT, 15000),
    ):
        socket.setsockopt(option, value)
    if sys.platform.startswith("linux"):  # elsewhere the permissions of a folder say who may connect
        socket.setsockopt(zmq.IPC_FILTER_UID, os.geteuid())
    return socket

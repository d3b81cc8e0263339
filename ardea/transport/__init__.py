"""Sockets: the only user of zmq.  Everything above it works with links and messages."""

from ardea.transport.curve import CALLERS, KEY_FILE, Door, Keyring, holder, pair
from ardea.transport.endpoint import LINGER_MS, PROXY, Bound, Dialled, Poller, context, ipc_address, peer_number

__all__ = [
    "CALLERS",
    "KEY_FILE",
    "LINGER_MS",
    "PROXY",
    "Bound",
    "Dialled",
    "Door",
    "Keyring",
    "Poller",
    "context",
    "holder",
    "ipc_address",
    "pair",
    "peer_number",
]

"""Sockets: the only user of zmq.  Everything above it works with links and messages."""

from ardea.transport.callers import Callers, caller, peer_number
from ardea.transport.curve import CALLERS, KEY_FILE, Door, Keyring, holder, pair
from ardea.transport.endpoint import FEW, MANY_SOCKETS, PROXY, Bound, Dialled, Poller, context, ipc_address
from ardea.transport.sockets import LINGER_MS

__all__ = [
    "CALLERS",
    "FEW",
    "KEY_FILE",
    "LINGER_MS",
    "MANY_SOCKETS",
    "PROXY",
    "Bound",
    "Callers",
    "Dialled",
    "Door",
    "Keyring",
    "Poller",
    "caller",
    "context",
    "holder",
    "ipc_address",
    "pair",
    "peer_number",
]

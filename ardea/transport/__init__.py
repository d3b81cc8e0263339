"""Sockets: the only user of zmq.  Everything above it works with links and messages."""

from ardea.transport.endpoint import Bound, Dialled, Poller, context, ipc_address, peer_number

__all__ = ["Bound", "Dialled", "Poller", "context", "ipc_address", "peer_number"]

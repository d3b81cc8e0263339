"""Sockets: the only user of zmq.  Everything above it works with links and messages."""

from ardea.transport.endpoint import PROXY, Bound, Dialled, Poller, context, ipc_address, peer_number

__all__ = ["PROXY", "Bound", "Dialled", "Poller", "context", "ipc_address", "peer_number"]

"""Distributed RPC: a function whose answers a running topology computes (docs/drpc.md)."""

from ardea.drpc.client import DrpcClient, published_path
from ardea.drpc.requests import DrpcError, DrpcErrorType, LocalDrpc, Request, Requests

__all__ = ["DrpcClient", "DrpcError", "DrpcErrorType", "LocalDrpc", "Request", "Requests", "published_path"]

"""How the address of a port is written."""

from __future__ import annotations

TCP = "tcp://"
IPV6 = f"{TCP}["


def tcp_address(host: str, port: int) -> str:
    """A host of IPv6 stands in brackets."""
    return f"{IPV6}{host}]:{port}" if ":" in host else f"{TCP}{host}:{port}"

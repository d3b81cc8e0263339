"""How many files the processes of a container have open, by its tasks and by how many containers there are."""

from __future__ import annotations

A_TASK = 6
"""In a stream manager two connections, of two files each at the most; in a supervisor three pipes."""
A_PEER = 6
"""In a stream manager: two connections that it dials, of two files each, and two of the peer."""
BESIDE = 64


def needed(tasks: int, containers: int) -> int:
    """In the process of a container that has most of them."""
    return A_TASK * tasks + A_PEER * containers + BESIDE

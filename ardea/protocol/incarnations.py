"""Numbers that identify the lives of processes.

An *incarnation* is one u64, ``admission << 32 | life``, so that integers compare as (admission, life) do.
Apart from the ids of trees, whose columns need NumPy, which masters and verbs do without.
"""

from __future__ import annotations

import zlib


def incarnation(admission: int, life: int) -> int:
    """One number for (admission, life); both count from 1."""
    return admission << 32 | life


def applicant(holder: str, life: int) -> int:
    """A manager towards the master, which may not have admitted it: a mark of its holder stands for the admission."""
    return incarnation(zlib.crc32(holder.encode()), life)


def admission_of(number: int) -> int:
    """The admission in an incarnation."""
    return number >> 32


def life_of(number: int) -> int:
    """The life in an incarnation."""
    return number & 0xFFFFFFFF


def describe(number: int) -> str:
    """``admission 2, life 5``, for messages."""
    return f"admission {admission_of(number)}, life {life_of(number)}" if number else "unknown"

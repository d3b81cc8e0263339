"""The lesser and the greater of values that may be NaN: in whatever order they come, they give the same."""

from __future__ import annotations

from typing import Any


def least(a: Any, b: Any) -> Any:
    """Of two; a NaN gives way to anything."""
    return b if b < a or a != a else a


def greatest(a: Any, b: Any) -> Any:
    """Likewise."""
    return b if b > a or a != a else a

"""The lesser and the greater of values that may be NaN: in whatever order they come, they give the same.

A NaN is what does not equal itself; one of type Decimal has no order at all.
"""

from __future__ import annotations

from typing import Any


def least(a: Any, b: Any) -> Any:
    """Of two; a NaN gives way to anything."""
    return b if a != a or (b == b and b < a) else a


def greatest(a: Any, b: Any) -> Any:
    """Likewise."""
    return b if a != a or (b == b and b > a) else a

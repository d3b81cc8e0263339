"""How much work tests do: a part in `make check` and `make test`, more in `make test-all`, and all in `make soak`."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

ALL = "ARDEA_TESTS_ALL"
"""Set in the environment of a run with ``--all``, before its tests are imported."""

SOAK = os.environ.get("ARDEA_SOAK", "") not in ("", "0")
"""Whether tests have their full size."""


def size(small: T, large: T, whole: T | None = None) -> T:
    """``small`` in `make test`, ``large`` in `make soak`; ``whole``: in `make test-all`."""
    if SOAK:
        return large
    return small if whole is None or not os.environ.get(ALL) else whole


def share(count: int) -> int:
    """Of so many examples of hypothesis, those that this run makes: a fifth without ``--all``."""
    return count if os.environ.get(ALL) else max(10, count // 5)

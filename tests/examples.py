"""How many examples hypothesis makes: all of them in `make test-all`, a part in `make check` and `make test`."""

from __future__ import annotations

import os

ALL = "ARDEA_TESTS_ALL"
"""Set in the environment of a run with ``--all``, before its tests are imported."""


def share(count: int) -> int:
    """Of so many examples, those that this run makes."""
    return count if os.environ.get(ALL) else max(10, count * 2 // 5)

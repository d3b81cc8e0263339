"""Values of a tuple in one line of a log or an error, whatever they are."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

WIDTH = 80
"""Characters of one value, at most."""
LENGTH = 400
"""Characters of all together, at most."""


def _made() -> reprlib.Repr:
    made = reprlib.Repr()
    made.maxstring = made.maxother = made.maxlong = WIDTH
    return made


_REPR = _made()


def shortened(values: Sequence[Any]) -> str:
    """``('heron', [1, 2, 3, 4, 5, 6, ...])``; a value's own ``__repr__`` may raise."""
    text = " ".join(f"({', '.join(map(_REPR.repr, values))})".split())
    return text if len(text) <= LENGTH else f"{text[:LENGTH]}..."

"""What a verb writes to."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """A file that is one."""

    def isatty(self) -> bool:
        return True

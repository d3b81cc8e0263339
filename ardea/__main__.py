"""``python -m ardea``: the ``ardea`` command."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current directory, which neither the command ``ardea`` nor any task would search
    from ardea.cli.__main__ import main

    main()

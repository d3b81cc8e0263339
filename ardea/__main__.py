"""``python -m ardea``: the ``ardea`` command."""

from __future__ import annotations

from ardea.cli.__main__ import main

if __name__ == "__main__":
    main()

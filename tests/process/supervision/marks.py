"""A supervised process that first of all leaves a line in a file: its number, and whether it was forked."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ardea import parent_link

if __name__ == "__main__":
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{os.getpid()} {'says_nothing' in sys.modules}\n")
    parent_link.attach()
    sys.exit(parent_link.ended(0))

"""In its first life makes a folder with a module, in the next imports it."""

import importlib
import sys
from pathlib import Path

folder = Path(sys.argv[1])
if not folder.exists():
    folder.mkdir()
    (folder / "late_module.py").write_text("")
    sys.exit(1)
importlib.import_module("late_module")

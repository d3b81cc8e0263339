"""Prints what a pyproject.toml requires, one requirement a line: requirements.py FILE [EXTRA]...

For the Dockerfile, whose layer of dependencies must not depend on the code.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(sys.argv[1]).read_text())["project"]
extras = project["optional-dependencies"]
wanted = [requirement for extra in sys.argv[2:] for requirement in extras[extra]]
sys.stdout.write("".join(f"{requirement}\n" for requirement in [*project["dependencies"], *wanted]))

"""What a pyproject.toml requires, one requirement a line: requirements.py FILE [EXTRA]...

``engine`` is what processes of a topology import: the dependencies without those of the extras `cli` and `drpc`.
For the Dockerfile, whose layer of dependencies must not depend on the code, and for lock.py.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

OWN = "ardea["
ENGINE, BESIDE = "engine", ("cli", "drpc")


def required(project: dict, extra: str) -> list[str]:
    """Of one extra, with those that it names."""
    extras = project["optional-dependencies"]
    if extra == ENGINE:
        beside = {requirement for each in BESIDE for requirement in extras[each]}
        return [requirement for requirement in project["dependencies"] if requirement not in beside]
    found: list[str] = []
    for requirement in extras[extra]:
        if requirement.startswith(OWN):
            named = requirement.removeprefix(OWN).rstrip("]").split(",")
            found += [each for name in named for each in required(project, name)]
        else:
            found.append(requirement)
    return found


if __name__ == "__main__":
    project = tomllib.loads(Path(sys.argv[1]).read_text())["project"]
    wanted = [requirement for extra in sys.argv[2:] for requirement in required(project, extra)]
    sys.stdout.write("".join(f"{requirement}\n" for requirement in dict.fromkeys(wanted)))

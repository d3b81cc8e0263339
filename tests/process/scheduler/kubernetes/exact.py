"""The topology of ``topologies/exact.py``: words counted exactly once, which a function of DRPC tells."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

from tests.process.scheduler.kubernetes.releases import CommandError, kubectl
from tests.process.scheduler.kubernetes.running import TOPOLOGIES, ardea, pods

WORDS = ("the", "moon", "and", "sea")
FILES, LINES = 3, 400
ASK = """
import sys, urllib.request
print(urllib.request.urlopen(f"http://{sys.argv[1]}/drpc/counts", sys.argv[2].encode(), timeout=10).read().decode())
"""


class Exact:
    """Submitted, with a Service that leads to its function."""

    def __init__(self, space: str, folder: Path) -> None:
        """``folder``: for the topology's file and the lines that it reads; each line has some of the words."""
        (folder / "in").mkdir(parents=True)
        for number in range(FILES):
            lines = (" ".join(WORDS[: 1 + (number + line) % len(WORDS)]) for line in range(LINES))
            (folder / "in" / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines))
        self.space, self.folder = space, folder
        file = Path(shutil.copy(TOPOLOGIES / "exact.py", folder))
        ardea("submit", "kubernetes", file, "--include", "in/*.txt", "--wait-secs", "240", space=space)
        kubectl("create", "service", "clusterip", "counts", "--tcp=8080", f"--namespace={space}")
        kubectl("set", "selector", "service", "counts", "drpc.ardea.dev/counts=true", f"--namespace={space}")

    def right(self) -> dict[str, int]:
        """What it has counted once it has read everything."""
        lines = [line for path in self.folder.glob("in/*") for line in path.read_text().splitlines()]
        return dict(Counter(word for line in lines for word in line.split()))

    def ask(self) -> dict[str, int | None]:
        """What the function answers a pod of the masters."""
        asker = pods(self.space, "app.kubernetes.io/component=master")[0]["metadata"]["name"]
        inside = ("exec", asker, f"--namespace={self.space}", "-c", "topology-master", "--", "python", "-P", "-c", ASK)
        try:
            return dict(json.loads(kubectl(*inside, "counts:8080", " ".join(WORDS))))
        except CommandError as error:  # a request that a dying task had
            return {str(error): None}

    def more(self, counted: int) -> int | None:
        """How often the first word has been counted, if that is oftener than it was."""
        now = self.ask().get(WORDS[0]) or 0
        return now if now > counted else None

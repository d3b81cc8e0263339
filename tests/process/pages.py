"""A page of the documentation as a reader follows it: files are written, commands typed, outputs compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.process.waiting import eventually

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"file\s+`(\w+\.py)`")
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page; ``file``: the name that the paragraph before it gives."""

    kind: str
    text: str
    file: str | None


def blocks(page: str, until: str | None = None) -> Iterator[Block]:
    """Those of a page, in order, up to the heading ``until``."""
    text, end = (ROOT / page).read_text(), 0
    if until is not None:
        text, heading, _ = text.partition(f"\n{until}")
        assert heading, f"{page} has no {until}"
    for found in _BLOCK.finditer(text):
        paragraph = text[end : found.start()].rstrip().rpartition("\n\n")[2]
        named = _FILE.findall(paragraph)
        yield Block(found[1], found[2], named[-1] if named else None)
        end = found.end()


class Reader:
    """Follows pages in one folder, which is empty at first.

    Args:
        folder: that folder.
        instead: what the pages name -> what is here in its place: a port, a server, a path.
        patience: seconds that a command may take.
    """

    def __init__(self, folder: Path, instead: Mapping[str, str] | None = None, patience: float = PATIENCE) -> None:
        self.folder = folder
        self._patience = patience
        self._instead = {".venv/bin/": "", **(instead or {})}
        bin_of_python = str(Path(sys.executable).parent)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")},
            "PATH": f"{bin_of_python}:{os.environ['PATH']}",
            "ARDEA_STATE": str(folder / "state"),
            "TERM": "dumb",
        }
        self.typed: list[str] = []

    def follow(self, page: str, until: str | None = None) -> None:
        """The blocks of a page, up to a heading, but for those about a cluster."""
        printed: str | None = None
        for number, block in enumerate(blocks(page, until)):
            text, before, printed = self._here(block.text), printed, None
            if block.kind == "python":
                self._python(block.file or f"block_{number}.py", text, named=block.file is not None)
            elif block.kind == "sh":
                for line in filter(None, (each.partition("  #")[0].strip() for each in text.splitlines())):
                    if not line.startswith("make "):
                        printed = self.type(line)
            elif not block.kind and before is not None:
                self._compare(before, text)

    def _python(self, name: str, text: str, *, named: bool) -> None:
        """A file; tests in it are run, and so is a block that the page gives no name."""
        (self.folder / name).write_text(text)
        if "def test_" in text:
            self.type(f"pytest -q -p no:cacheprovider {name}")
        elif not named:
            self.type(f"python {name}")

    def type(self, line: str) -> str:
        """What the command prints on stdout; it has to end with 0."""
        self.typed.append(line)
        ended = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=self._patience,
        )
        if ended.returncode and line.startswith("curl "):
            return ""  # the server has just been started; it is asked again
        assert ended.returncode == 0, f"{line}: exit {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def _compare(self, printed: str, shown: str) -> None:
        """Lines in any order: tasks print side by side.  A server that has just started is asked again."""
        line = self.typed[-1]
        if line.startswith("curl "):
            eventually(lambda: self.type(line).strip() == shown.strip(), self._patience, line)
            return
        assert sorted(printed.strip().splitlines()) == sorted(shown.strip().splitlines()), line

    def _here(self, text: str) -> str:
        for named, here in self._instead.items():
            text = text.replace(named, here)
        return text

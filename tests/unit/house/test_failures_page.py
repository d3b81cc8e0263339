"""docs/failures.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
REFERENCE = re.compile(r"`(?:(test_\w+\.py)(?:::(test_\w+))?|(test_\w+))`")


def test_every_test_on_the_page_exists():
    files: dict[str, str] = {}
    for file in (ROOT / "tests").rglob("test_*.py"):
        files[file.name] = files.get(file.name, "") + file.read_text()
    everything = "".join(files.values())
    references = REFERENCE.findall((ROOT / "docs" / "failures.md").read_text())
    assert len(references) > 40
    for file, test, lone in references:
        text = files.get(file, "") if file else everything
        assert f"def {test or lone}(" in text if test or lone else text, f"{file} {test or lone} does not exist"

"""What the pages tell people to type."""

from __future__ import annotations

import re

from tests.process.scheduler.kubernetes.releases import ROOT


def blocks(page: str, title: str) -> list[list[str]]:
    """What the blocks under a heading tell people to type."""
    text = (ROOT / page).read_text().split(f"\n## {title}\n", 1)[1]
    text = re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [re.findall(r"^\$ ((?:.*\\\n)*.*)", block, re.MULTILINE) for block in found]

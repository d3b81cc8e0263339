"""The five folders beside ardea/ are imported from ``ardea`` only (decision 67); ruff refuses imports of bare names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("heron_instance", "metrics_manager", "scheduler", "stream_manager", "topology_master")
SOURCES = {".py", ".md", ".sh", ".toml", ".yaml", ".tpl", ""}
OLD_NAMES = {"CHANGELOG.md", "docs/decisions/0001-file-layout.md", "tests/unit/house/test_import_names.py"}
"""These tell of them."""


def submodules() -> set[str]:
    """``scheduler.packing``: what lies directly in the five."""
    entries = (path for folder in FOLDERS for path in (ROOT / folder).iterdir())
    return {f"{p.parent.name}.{p.stem}" for p in entries if p.suffix == ".py" or (p / "__init__.py").exists()}


DOTTED = "|".join(map(re.escape, sorted(submodules())))
BARE = re.compile(rf"""(?<![\w./-])(?:{DOTTED})(?![\w(])|-m["']?,?\s+["']?(?:{"|".join(FOLDERS)})\b""")


def test_ardea_has_a_link_to_each_folder_and_an_editable_install_exposes_ardea_alone():
    links = {path.name: str(path.readlink()) for path in (ROOT / "ardea").iterdir() if path.is_symlink()}
    assert links == {name: f"../{name}" for name in FOLDERS}
    assert {path.name: str(path.readlink()) for path in (ROOT / ".editable").iterdir()} == {"ardea": "../ardea"}


def test_no_text_names_a_module_without_ardea():
    """Entry points, programs, targets of patches, pages: what ruff does not see."""
    folders = ("ardea", *FOLDERS, "tests", "examples", "benchmarks", "docs", "helm", "scripts")
    files = [*ROOT.iterdir(), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    found = []
    for path in files:
        name = str(path.relative_to(ROOT))
        if path.is_file() and path.suffix in SOURCES and name not in OLD_NAMES:
            found += [f"{name}: {bare[0]}" for bare in BARE.finditer(path.read_text(errors="replace"))]
    assert found == []


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ('local = "scheduler.local:Local"', True),
        ('monkeypatch.setattr("scheduler.local_processes.Policy", policy)', True),
        ('["python", "-P", "-m", "stream_manager"]', True),
        ("`python -m heron_instance`", True),
        ('local = "ardea.scheduler.local:Local"', False),
        ('["python", "-P", "-m", "ardea.stream_manager"]', False),
        ("topology_master/master.py, scheduler.release(), tests.unit.topology_master.master", False),
    ],
)
def test_bare_names_are_recognised(text, bare):
    assert bool(BARE.search(text)) == bare

"""Rules that every file of the project keeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("ardea", "topology_master", "stream_manager", "heron_instance", "metrics_manager", "scheduler")
FOLDERS = (*PACKAGES, "tests", "examples", "benchmarks", "docs", "helm", "scripts", ".ci")
PROSE_AND_CODE = {".py", ".md", ".sh", ".toml", ".yaml", ".yml", ".proto", ".json", ".tpl", ""}
LINES_AT_MOST = 500
# Put together here so that this file keeps the rule too.
NOTES_TO_SELF = ("TO" + "DO", "FIX" + "ME")


def files() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file())
    for folder in FOLDERS:
        yield from (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def python_files() -> list[Path]:
    """Hand-written Python: what protoc generates is left out."""
    return [path for path in files() if path.suffix == ".py" and not path.stem.endswith("_pb2")]


def named(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def sleeping_lines(source: str) -> list[int]:
    """Lines that call or import ``time.sleep``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr="sleep"):
                found.append(node.lineno)
            case ast.ImportFrom(module="time", names=names) if any(alias.name == "sleep" for alias in names):
                found.append(node.lineno)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_package_tells_type_checkers_that_it_is_typed(package):
    assert (ROOT / package / "py.typed").is_file()


def test_no_hand_written_file_is_long():
    assert named([p for p in python_files() if len(p.read_text().splitlines()) > LINES_AT_MOST]) == []


def test_every_module_is_named_after_what_it_does():
    assert named([p for p in python_files() if p.stem in {"utils", "util", "helpers", "misc", "common"}]) == []


def test_no_file_holds_notes_to_self():
    texts = [p for p in files() if p.suffix in PROSE_AND_CODE]
    assert named([p for p in texts if any(word in p.read_text(errors="replace") for word in NOTES_TO_SELF)]) == []


def test_no_test_sleeps():
    # A topology may have a slow bolt: that is what is tested, not how the test waits.
    tests = [
        p for p in python_files() if p.is_relative_to(ROOT / "tests") and "topologies" not in (p.stem, p.parent.name)
    ]
    assert [f"{p.relative_to(ROOT)}:{line}" for p in tests for line in sleeping_lines(p.read_text())] == []


@pytest.mark.parametrize("source", ["import time\ntime.sleep(1)", "x = 1\nfrom time import monotonic, sleep"])
def test_sleeping_is_recognised(source):
    assert sleeping_lines(source) == [2]


def simulates(source: str) -> bool:
    """Whether it runs simulated clusters, or asks what is inside of one."""
    modules = {"ardea.testing": {"Cluster", "run"}, "ardea.testing.inside": {"Inside", "overheard"}}
    return any(
        {alias.name for alias in node.names} & modules.get(str(node.module), set())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
    )


def test_simulated_clusters_run_in_a_tree_of_their_own():
    """So a folder says what its tests take; those of real processes may compare with a simulated cluster."""
    unit = [path for path in python_files() if path.is_relative_to(ROOT / "tests" / "unit")]
    assert named([path for path in unit if simulates(path.read_text())]) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from ardea.testing import CollectBolt, run", True),
        ("from ardea.testing.inside import Inside", True),
        ("from ardea.testing import RowsSpout\nfrom subprocess import run", False),
    ],
)
def test_simulations_are_recognised(source, found):
    assert simulates(source) == found

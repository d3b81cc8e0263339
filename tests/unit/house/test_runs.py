"""Each test of real processes is one of `make test`, of `make test-all` or of `make soak`; the page says which."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROCESS = ROOT / "tests" / "process"
PAGE = ROOT / "docs" / "testing.md"
TARGETS = ("test", "test-all", "soak")


def marks(nodes: list[ast.expr]) -> Iterator[str]:
    """``thorough``, ``soak(only=True)`` … of decorators, or of a ``pytestmark``."""
    for node in nodes:
        if isinstance(node, ast.List):
            yield from marks(node.elts)
        elif (text := ast.unparse(node)).startswith("pytest.mark."):
            yield text.removeprefix("pytest.mark.")


def target(found: set[str]) -> str:
    """The quickest command that runs a test with these marks."""
    if "soak(only=True)" in found:
        return "soak"
    return "test-all" if "thorough" in found else "test"


def runs(source: str) -> dict[str, str]:
    """The command, by the name of each test of a file."""
    tree = ast.parse(source)
    common: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            common |= set(marks([node.value]))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {node.name: target(common | set(marks(node.decorator_list))) for node in functions}


FILES = sorted(PROCESS.rglob("test_*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PROCESS)))
def test_the_page_says_which_commands_run_the_tests_of_a_file(path: Path):
    """A file without a row is all of `make test`."""
    name = str(path.relative_to(PROCESS))
    rows = re.findall(rf"^\| `{re.escape(name)}` \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    found = set(runs(path.read_text()).values()) or {"test"}  # a suite that is imported from another file
    assert rows == ([] if found == {"test"} else [", ".join(name for name in TARGETS if name in found)])


def test_the_page_names_no_file_that_is_gone():
    named = set(re.findall(r"^\| `([^`]+\.py)` \|", PAGE.read_text(), re.MULTILINE))
    assert named - {str(path.relative_to(PROCESS)) for path in FILES} == set()


def test_marks_are_read():
    source = """
pytestmark = [pytest.mark.cluster, needs_cluster]

def test_a(): ...

@pytest.mark.thorough
@pytest.mark.parametrize("x", [1])
def test_b(x): ...

@pytest.mark.soak(only=True)
def test_c(): ...
"""
    assert runs(source) == {"test_a": "test", "test_b": "test-all", "test_c": "soak"}
    assert runs("pytestmark = pytest.mark.thorough\ndef test_a(): ...") == {"test_a": "test-all"}

"""Examples, and what the docs show to users, import public names only; tests reach into no simulated cluster."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PUBLIC = {
    "ardea",
    "ardea.drpc",
    "ardea.errors",
    "ardea.joins",
    "ardea.kafka",
    "ardea.postgres",
    "ardea.spark",
    "ardea.testing",
    "ardea.testing.kit",
    "ardea.testing.schedulers",
    "ardea.trident",
    "ardea.windows",
    "ardea.windows.storm",
}
ENGINES_OWN = {
    ("docs/protocol.md", "ardea.protocol.flow"),
    ("docs/updating.md", "ardea.scheduler.follow"),
    ("docs/schedulers.md", "ardea.scheduler.home"),
    ("docs/schedulers.md", "ardea.scheduler.local"),
}
"""Pages for whoever works on the engine, or writes a scheduler."""
PAGES = [*ROOT.glob("docs/*.md"), ROOT / "README.md"]


def imported(source: str) -> set[str]:
    """The modules of ardea that Python code imports, wherever in it."""
    tree = ast.parse(source)
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name for name in names if name.partition(".")[0] == "ardea"}


def shown(page: str) -> Iterator[str]:
    """Its imports; a block may be a fragment that does not parse as a whole."""
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        yield from re.findall(r"^\s*((?:from ardea|import ardea)[^\n#(]*)", block, re.MULTILINE)


def reached_into(source: str) -> set[str]:
    """Private attributes that it takes of a simulated cluster: of whatever it calls so, or opens as one."""
    tree, clusters, found = ast.parse(source), {"cluster"}, set()
    for node in ast.walk(tree):
        match node:
            case ast.withitem(
                context_expr=ast.Call(func=ast.Name(id="Cluster" | "cluster")), optional_vars=ast.Name(name)
            ):
                clusters.add(name)
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(func=ast.Name(id="Cluster" | "cluster"))):
                clusters.add(name)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(name), attr=attr) if name in clusters and attr.startswith("_"):
                found.add(attr)
            case ast.Attribute(attr="_world"):
                found.add("_world")
    return found


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/**/*.py")), ids=lambda path: path.stem)
def test_an_example_imports_public_modules(example):
    assert imported(example.read_text()) <= PUBLIC


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_shows_imports_of_public_modules(page):
    found = {name for line in shown(page.read_text()) for name in imported(line.strip().rstrip(","))}
    where = str(page.relative_to(ROOT))
    assert {name for name in found if name not in PUBLIC and (where, name) not in ENGINES_OWN} == set()


def test_an_internal_module_is_found():
    assert imported("import os\nfrom ardea.plan import x\nimport ardea.cli.run") == {"ardea.plan", "ardea.cli.run"}
    assert list(shown("```python\nfrom ardea.plan import x  # y\n```\nfrom ardea.cli import y")) == [
        "from ardea.plan import x  "
    ]


def test_tests_ask_what_is_inside_a_cluster():
    """:mod:`ardea.testing.inside` tells them."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert {str(path.relative_to(ROOT)): found for path in files if (found := reached_into(path.read_text()))} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("cluster._master().tick()", {"_master"}),
        ("with Cluster(Words) as words, other: words._store", {"_store"}),
        ("words = Cluster(Words)\nwords.advance(1)\nwords._start(1)", {"_start"}),
        ("self.words._world.timeline", {"_world"}),
        ("cluster.time\nprocess._clock\nself._master", set()),
    ],
)
def test_a_look_into_a_cluster_is_found(source, found):
    assert reached_into(source) == found

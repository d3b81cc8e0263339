"""The pages say what the code says: messages, verbs, error codes; links lead somewhere; topologies build."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ardea import Topology
from ardea.protocol.checked import DATA
from ardea.protocol.link import UNSEQUENCED
from ardea.protocol.wire_pb2 import ANSWER, ASK, KIND_UNSET, ORDER_UNSET, SUMMARY, Header, Kind, Order, OrderKind

ROOT = Path(__file__).parents[3]
PROTOCOL = ROOT / "docs" / "protocol.md"
PACKAGES = ("ardea", "topology_master", "stream_manager", "heron_instance", "metrics_manager", "scheduler")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def section(page: Path, title: str) -> str:
    """The text under a heading of level 2, to the next one."""
    return re.split(r"^## ", page.read_text().split(f"\n## {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of each table row that begins with a word in backticks, which it is given without."""
    for line in text.splitlines():
        if line.startswith("| `"):
            first, *others = (cell.strip() for cell in line.strip("|").split("|"))
            yield [first.strip("`"), *others]


def error_codes(source: str) -> set[str]:
    """The literal codes that this source gives to a ProtocolError, a Refusal or an Answer."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="ProtocolError"), args=[ast.Constant(value=str(code)), *_]):
                found.add(code)
            case ast.Call(func=ast.Name(id="Refusal" | "Answer"), keywords=keywords):
                found |= {str(k.value.value) for k in keywords if k.arg == "code" and isinstance(k.value, ast.Constant)}
    return found


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", link)]


def is_dead(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return not target.exists() or (anchor != "" and anchor not in slugs(target))


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def test_every_message_has_its_row_with_number_lane_and_sequence():
    expected = {
        name: [
            str(number),
            "data" if number in DATA else "control",
            "no" if number in UNSEQUENCED | {ASK, ANSWER, SUMMARY} else "yes",
        ]
        for name, number in Kind.items()
        if number != KIND_UNSET
    }
    assert {row[0]: row[1:4] for row in rows(section(PROTOCOL, "Messages")) if len(row) == 7} == expected


def test_every_order_has_its_row_with_its_number_and_every_field_is_described():
    table = [row for row in rows(section(PROTOCOL, "Terms, epochs, orders")) if len(row) == 4]
    assert {row[0]: row[1] for row in table} == {
        name: str(number) for name, number in OrderKind.items() if number != ORDER_UNSET
    }
    fields = [name for row in table for name in re.findall(r"`(\w+)`", row[2])]
    assert sorted(fields) == sorted({*Order.DESCRIPTOR.fields_by_name} - {"kind", "term", "version"})


def test_every_flag_of_a_header_is_described():
    flags = {name for name, field in Header.DESCRIPTOR.fields_by_name.items() if field.type == field.TYPE_BOOL}
    assert flags
    assert flags - set(re.findall(r"`(\w+)`", PROTOCOL.read_text())) == set()


def test_every_error_code_has_its_row_and_no_other_is_documented():
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    used = set().union(*(error_codes(path.read_text()) for path in sources))
    table = [row for row in rows(section(PROTOCOL, "Error codes")) if len(row) == 5]
    assert {row[0] for row in table} == used
    assert {row[3] for row in table} <= {"definite", "indefinite"}


def test_error_codes_are_found():
    source = 'raise ProtocolError("a", "b")\nRefusal(code="c", message="d")\nAnswer(ok=True)\nProtocolError(e, "f")'
    assert error_codes(source) == {"a", "c"}


def test_every_verb_of_the_control_port_has_its_row():
    source = (ROOT / "topology_master" / "verbs.py").read_text()
    assert {row[0] for row in rows(section(PROTOCOL, "Control port"))} == set(
        re.findall(r'ask\.verb [!=]= "(\w+)"', source)
    )


def test_the_worked_example_of_credit_comes_out_as_written():
    (example,) = python_blocks(PROTOCOL)
    exec(example, {"__name__": "example"})


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path):
    assert [link for link in links(page) if is_dead(page, link)] == []


def test_dead_links_are_recognised(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# What is it?\n[a](page.md#what-is-it) [b](#what) [c](no.md)\n```\nx[0](y)\n```\n[d](https://x.org)"
    )
    assert [link for link in links(page) if is_dead(page, link)] == ["#what", "no.md"]


TOPOLOGIES = [
    pytest.param(block, id=f"{name_of(page)}-{number}")
    for page in PAGES
    for number, block in enumerate(python_blocks(page))
    if "(Topology)" in block
]


@pytest.mark.parametrize("block", TOPOLOGIES)
def test_topologies_in_the_pages_build(block: str):
    names: dict[str, Any] = {"__name__": "page"}
    exec(block, names)
    built = [
        value.plan()
        for value in names.values()
        if isinstance(value, type) and issubclass(value, Topology) and value is not Topology
    ]
    assert built != []
    assert all(plan.spouts for plan in built)


def test_decisions_are_numbered_in_order_and_short():
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    assert [p.name for p in pages if not p.read_text().startswith(f"# {int(p.name[:4])}. ")] == []
    assert [p.name for p in pages if len(p.read_text().splitlines()) > 20] == []

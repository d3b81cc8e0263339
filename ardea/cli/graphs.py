"""The plan of a topology as text for programs that draw: Mermaid, which pages of GitHub show, and Graphviz' DOT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Component = Mapping[str, Any]


def mermaid(components: Sequence[Component]) -> str:
    """A flowchart from left to right; a spout is drawn with round ends."""
    lines = ["flowchart LR"]
    ids = _ids(components)
    for component in components:
        label = "<br/>".join(map(_html, _label(component)))
        opened, closed = ('(["', '"])') if component["kind"] == "spout" else ('["', '"]')
        lines.append(f"    {ids[component['component']]}{opened}{label}{closed}")
    for source, reader, text in _edges(components):
        lines.append(f'    {ids[source]} -->|"{_html(text)}"| {ids[reader]}')
    return "".join(f"{line}\n" for line in lines)


def dot(components: Sequence[Component]) -> str:
    """A digraph from left to right; a spout is drawn as an ellipse."""
    lines = ["digraph topology {", "    rankdir=LR"]
    ids = _ids(components)
    for component in components:
        label = "\\n".join(map(_quoted, _label(component)))
        shape = "ellipse" if component["kind"] == "spout" else "box"
        lines.append(f'    {ids[component["component"]]} [shape={shape}, label="{label}"]')
    for source, reader, text in _edges(components):
        lines.append(f'    {ids[source]} -> {ids[reader]} [label="{_quoted(text)}"]')
    return "".join(f"{line}\n" for line in (*lines, "}"))


DRAWN: Mapping[str, Callable[[Sequence[Component]], str]] = {"mermaid": mermaid, "dot": dot}


def _ids(components: Sequence[Component]) -> dict[str, str]:
    """Names hold what neither language takes for one."""
    return {component["component"]: f"n{number}" for number, component in enumerate(components)}


def _label(component: Component) -> list[str]:
    tasks = component["tasks"]
    return [component["component"], f"{tasks} task{'s' * (tasks != 1)}", *component["operations"]]


def _edges(components: Sequence[Component]) -> Iterator[tuple[str, str, str]]:
    """(source, reader, text); the stream is named where it is not the usual one."""
    for component in components:
        for read, grouping in component["inputs"].items():
            source, _, stream = read.rpartition(":")
            yield source, component["component"], grouping if stream == "default" else f"{stream}: {grouping}"


def _html(text: str) -> str:
    for character, escaped in (("#", "#35;"), ("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(character, escaped)
    return text


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')

"""``ardea config``: every configuration key, as a table, as JSON, or as docs/config.md."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.table import Table

from ardea.cli import console
from ardea.config import KEYS
from ardea.config_keys import ALIASES, Key

_SCOPES = {
    "topology": "topology",
    "component": "component",
    "both": "topology, component",
    "system": "installation",
}
_INTRODUCTION = """\
# Configuration keys

`ardea config -o markdown` prints this page.

Keys stand in the topology's `config`, in `spec(config=...)` where the scope names components (a component's value
wins), or on the command line as `--set KEY=VALUE` (which wins over the topology's). Keys that begin with `topology.` or
`heron.` are the engine's: an unknown one is an error that names the nearest. Those that begin with `spark.` go to Spark
as they are, which alone knows them. Any other key is yours, and reaches `initialize(config, context)` as it is. Keys of
the scope `installation` are for administrators: a topology's `config` and `--set` take them too, and the chart's
`topology.config` sets them for a namespace. Sizes are bytes, or texts such as `"256MB"` and `"512MiB"`.
"""


_ADVANCED = """\
## Advanced

Limits and shapes whose defaults suit almost everybody; measure before you change one.
"""


class Format(enum.StrEnum):
    """What ``-o`` takes here."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


@console.reports
def config(
    output: Annotated[Format, typer.Option("--output", "-o", help="The format of stdout.")] = Format.TABLE,
) -> None:
    """Print every configuration key with its type, unit, default and meaning."""
    if output is Format.JSON:
        console.print_json({"keys": [_document(key) for key in KEYS.values()], "aliases": _aliases()})
    elif output is Format.MARKDOWN:
        print(as_markdown(), end="")  # noqa: T201
    else:
        console.out().print(_table())


def as_markdown() -> str:
    """docs/config.md."""
    rows = [*_rows(advanced=False), "", _ADVANCED, *_rows(advanced=True), "", *_alias_rows()]
    return "\n".join([_INTRODUCTION, *rows]) + "\n"


def _rows(*, advanced: bool) -> Iterator[str]:
    yield "| key | type | default | scope | meaning |"
    yield "| --- | --- | --- | --- | --- |"
    for key in (key for key in KEYS.values() if key.advanced is advanced):
        yield f"| `{key.name}` | {_type(key)} | {_default(key)} | {_SCOPES[key.scope]} | {key.sentence} |"


def _alias_rows() -> Iterator[str]:
    yield "| other name | means |"
    yield "| --- | --- |"
    for alias in ALIASES.values():
        factor = "" if alias.factor == 1 else f", times {alias.factor:g}"
        yield f"| `{alias.name}` | `{alias.key}`{factor} |"


def _table() -> Table:
    table = Table("Key", "Type", "Default", "Scope", "Meaning", box=None, pad_edge=False)
    for key in sorted(KEYS.values(), key=lambda key: key.advanced):
        table.add_row(key.name, _type(key), _default(key), _SCOPES[key.scope], key.sentence)
    for alias in ALIASES.values():
        table.add_row(alias.name, "", "", "", f"Another name of {alias.key}.")
    return table


def _type(key: Key) -> str:
    return f"{key.type}, {key.unit}" if key.unit and key.unit not in key.type else key.type


def _default(key: Key) -> str:
    if key.default is None:
        return "unset"
    if key.default == ():
        return "none"
    if key.unit == "bytes" and isinstance(key.default, int) and key.default % (1 << 20) == 0:
        return f"{key.default >> 20} MiB"
    return str(key.default).lower() if isinstance(key.default, bool) else str(key.default)


def _document(key: Key) -> dict[str, Any]:
    return {
        "name": key.name,
        "type": key.type,
        "unit": key.unit or None,
        "default": key.default,
        "scope": key.scope,
        "advanced": key.advanced,
        "sentence": key.sentence,
    }


def _aliases() -> list[dict[str, Any]]:
    return [{"name": alias.name, "key": alias.key, "factor": alias.factor} for alias in ALIASES.values()]

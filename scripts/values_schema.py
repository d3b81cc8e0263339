"""Writes what helm/values.schema.json says of `topology.config`, from the table of configuration keys.

To be run after a key has changed; a test finds a schema that is out of step.  Run it with Ardea on the path:
`PYTHONPATH=.editable python scripts/values_schema.py`.

Beside what a type takes, each value may be a text that means the same, for `helm --set` makes texts of what is neither
a whole number nor true or false, and submitters read them as `ardea --set` does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ardea.config import KEYS
from ardea.config_check import RESERVED
from ardea.config_keys import ALIASES, RELIABILITY_MODES

SCHEMA = Path(__file__).parents[1] / "helm" / "values.schema.json"
FIRST, LAST = '    "settings": {\n', '    "extraEnv": {\n'
"""What is written stands from the one line to before the other."""

Schema = dict[str, Any]

_WHOLE, _MORE = "(0|[1-9][0-9]*)", "([eE][-+]?[0-9]+)?"
_TEXT: Schema = {"type": "string", "minLength": 1}
_COUNT: Schema = {"type": ["integer", "string"], "minimum": 1, "pattern": "^[1-9][0-9]*$"}
_NUMBER: Schema = {"type": ["number", "string"], "minimum": 0, "pattern": f"^{_WHOLE}([.][0-9]+)?{_MORE}$"}
_POSITIVE: Schema = {
    "type": ["number", "string"],
    "exclusiveMinimum": 0,
    "pattern": f"^(0[.]0*[1-9][0-9]*|[1-9][0-9]*([.][0-9]+)?){_MORE}$",
}
_WITH_UNIT = "^ *[0-9]+([.][0-9]+)? *([KMGTkmgt][Ii]?)?[Bb] *$"
_SIZE: Schema = {"type": ["integer", "string"], "minimum": 0, "pattern": f"{_WITH_UNIT}|^{_WHOLE}$"}
_OBJECT: Schema = {"$ref": "#/definitions/kubernetes"}


def _map(values: Schema) -> Schema:
    """Also as one text, which submitters take apart; of a map itself they read no value."""
    return {"type": ["object", "string"], "minLength": 1, "additionalProperties": values}


TYPES: dict[str, Schema] = {
    "bool": {"enum": [True, False, "true", "false"]},
    "text": _TEXT,
    "texts": {"type": ["array", "string"], "minLength": 1, "items": _TEXT},
    "count": _COUNT,
    "integer": {"type": ["integer", "string"], "minimum": 0, "pattern": f"^{_WHOLE}$"},
    "bytes": _SIZE,
    "seconds": _POSITIVE,
    "seconds or never": {"anyOf": [_NUMBER, {"const": "never"}]},
    "delay": _NUMBER,
    "milliseconds": _NUMBER,
    "megabytes": _COUNT,
    "cores": _POSITIVE,
    "padding": _NUMBER,
    "percent": _NUMBER,
    "share": {
        "type": ["number", "string"],
        "minimum": 0,
        "maximum": 1,
        "pattern": "^(0([.][0-9]+)?|1([.]0+)?|[0-9]([.][0-9]+)?[eE]-0*[1-9][0-9]*)$",
    },
    "slots": {
        **_COUNT,
        "type": ["integer", "string", "array"],
        "minItems": 1,
        "items": {"type": "integer", "minimum": 1},
    },
    "mode": {"enum": list(RELIABILITY_MODES)},
    "backend": {"type": "string", "pattern": r"^(memory|rocksdb|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)$"},
    "format": {"enum": ["text", "json"]},
    "sorting": {"enum": ["RAM_FIRST", "CPU_FIRST"]},
    "status": {"enum": ["ACTIVE", "INACTIVE"]},
    "cores by component": _map({"type": "number", "exclusiveMinimum": 0}),
    "bytes by component": _map({**_SIZE, "pattern": _WITH_UNIT}),
    "texts by name": _map({"type": "string"}),
    "object": {"type": ["object", "string"], "minLength": 1},
    "objects": {"type": ["array", "string"], "minLength": 1, "items": _OBJECT},
    "objects by name": _map(_OBJECT),
}
"""What the chart takes for a type of the table."""


def keys() -> dict[str, str]:
    """The type of each key, and of each other name of one, that a whole topology can have."""
    types = {name: key.type for name, key in KEYS.items() if key.scope != "component"}
    types |= {alias.name: types[alias.key] for alias in ALIASES.values() if alias.key in types}
    return dict(sorted(types.items()))


def definitions() -> dict[str, Schema]:
    """Of the settings, and of each type that one of them has."""
    types = keys()
    engines = "|".join(prefix.removesuffix(".") for prefix in RESERVED)
    settings = {
        "description": "Configuration keys (docs/config.md), and a topology's own; scripts/values_schema.py writes it.",
        "type": "object",
        "propertyNames": {
            "if": {"pattern": f"^({engines})[.]"},
            "then": {"enum": list(types)},
            "else": {"pattern": "^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)+$"},
        },
        "properties": {name: {"$ref": f"#/definitions/{_called(kind)}"} for name, kind in types.items()},
    }
    used = sorted(set(types.values()))
    return {"settings": settings} | {_called(kind): TYPES[kind] for kind in used}


def written(schema: str) -> str:
    """The file's text with the definitions of today."""
    before, first, rest = schema.partition(FIRST)
    _, last, after = rest.partition(LAST)
    if not first or not last:
        sys.exit(f"error: {SCHEMA} has no line {FIRST.strip()!r} before a line {LAST.strip()!r}; it is left as it is")
    made = "".join(f"    {json.dumps(name)}: {_lines(each)},\n" for name, each in definitions().items())
    return f"{before}{made}{last}{after}"


def _called(kind: str) -> str:
    return f"config-{kind.replace(' ', '-')}"


def _lines(schema: Schema) -> str:
    """A type is one line; of the settings each key is."""
    if "properties" not in schema:
        return json.dumps(schema)
    keys_ = ",\n".join(f"        {json.dumps(name)}: {json.dumps(each)}" for name, each in schema["properties"].items())
    others = [f"      {json.dumps(name)}: {json.dumps(each)}" for name, each in schema.items() if name != "properties"]
    return "{\n" + ",\n".join([*others, f'      "properties": {{\n{keys_}\n      }}']) + "\n    }"


if __name__ == "__main__":
    SCHEMA.write_text(written(SCHEMA.read_text()))

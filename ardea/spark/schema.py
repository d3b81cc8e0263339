"""The columns that an author declares, in Spark's DDL, checked without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ardea.errors import TopologyError

_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_TIMES = {"timestamp", "timestamp_ntz", "date"}
_SCALARS = _INTEGERS | _TIMES | {"float", "double", "string", "binary", "boolean"}
_DECIMALS = frozenset({"decimal", "dec", "numeric"})
_NESTED = frozenset({"array", "map", "struct"})
_MAX_PRECISION = 38
_MAX_DEPTH = 32
"""Types within types, far below what values (``ardea.protocol.keys.MAX_DEPTH``) and this parser's recursion allow."""
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+)|([<>(),:])|(\S))")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a DataFrame.  ``type`` is DDL, with the names of fields in backticks: ``struct<`a-b`:bigint>``."""

    name: str
    type: str


def quoted(name: str) -> str:
    """As DDL takes any name."""
    return f"`{name.replace('`', '``')}`"


def ddl_of(columns: Iterable[Column]) -> str:
    """What :func:`parse_schema`, and Spark, read as these columns."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)


def type_of(found: Any) -> str:
    """A type of PySpark's as :class:`Column` has it: its ``simpleString`` does not quote the names of fields."""
    match found.typeName():
        case "array":
            return f"array<{type_of(found.elementType)}>"
        case "map":
            return f"map<{type_of(found.keyType)},{type_of(found.valueType)}>"
        case "struct":
            return f"struct<{','.join(f'{quoted(each.name)}:{type_of(each.dataType)}' for each in found.fields)}>"
        case _:
            return str(found.simpleString())


def parse_schema(ddl: str) -> tuple[Column, ...]:
    """The columns of ``"id bigint, price decimal(10,2), tags array<string>"``.

    Raises:
        TopologyError: columns cannot be read, or have types that tuples do not keep; one problem a column.
    """
    if not isinstance(ddl, str):
        raise TopologyError([f"SparkSpout: schema= takes Spark's DDL, a text, not {ddl!r}"])
    columns: list[Column] = []
    problems: list[str] = []
    for written in _split(ddl):
        try:
            columns.append(_Parser(written).column())
        except _WrongError as error:
            problems.append(f"Spark column [{written}]: {error}")
    if not columns and not problems:
        problems.append(f"schema={ddl!r} declares no column")
    if problems:
        raise TopologyError(
            problems, hint='Write schema="name type, ...", and cast what has no such type; docs/spark.md lists them.'
        )
    return tuple(columns)


class _WrongError(Exception):
    """What is wrong with one column."""


def _split(ddl: str) -> Iterator[str]:
    """The texts between commas that are in no brackets and no backticks."""
    depth, quoted, start = 0, False, 0
    for place, char in enumerate(ddl):
        if char == "`":
            quoted = not quoted
        elif not quoted:
            depth += (char in "<(") - (char in ">)")
            if char == "," and depth == 0:
                yield ddl[start:place].strip()
                start = place + 1
    if last := ddl[start:].strip():
        yield last


class _Parser:
    """Reads one column; tokens are (text, whether it may be a name)."""

    def __init__(self, text: str) -> None:
        found = list(_TOKEN.finditer(text))
        if wrong := next((match[4] for match in found if match[4]), None):
            raise _WrongError(f"{wrong!r} has no meaning here")
        self._tokens = [
            (match[1].replace("``", "`"), True) if match[1] else (match[2] or match[3], bool(match[2]))
            for match in found
        ]
        self._place = 0
        self._depth = 0

    def column(self) -> Column:
        name = self._name()
        column = Column(name, self._type())
        self._not_null()
        if self._place < len(self._tokens):
            raise _WrongError(f"{self._tokens[self._place][0]!r} behind its type")
        return column

    def _peek(self) -> str:
        return self._tokens[self._place][0] if self._place < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._place += 1
        return token

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise _WrongError(f"{token!r} is missing before {self._peek() or 'the end'!r}")
        self._place += 1

    def _name(self) -> str:
        if self._place >= len(self._tokens) or not self._tokens[self._place][1]:
            raise _WrongError("a name is missing")
        return self._next()

    def _not_null(self) -> None:
        if self._peek().lower() == "not":
            self._next()
            if self._next().lower() != "null":
                raise _WrongError("NOT is followed by NULL or nothing")

    def _type(self) -> str:
        written = self._next().lower()
        if not written:
            raise _WrongError("its type is missing")
        name = _ALIASES.get(written, written)
        if name in _SCALARS:
            return name
        if name in _DECIMALS:
            return self._decimal()
        if name in _NESTED:
            self._expect("<")
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise _WrongError(f"types are nested more than {_MAX_DEPTH} deep")
            inner = getattr(self, f"_{name}")()
            self._depth -= 1
            self._expect(">")
            return f"{name}<{inner}>"
        raise _WrongError(f"a tuple cannot keep a value of type {written!r}")

    def _decimal(self) -> str:
        precision, scale = 10, 0
        if self._peek() == "(":
            self._next()
            precision = self._number()
            if self._peek() == ",":
                self._next()
                scale = self._number()
            self._expect(")")
        if not 1 <= precision <= _MAX_PRECISION or scale > precision:
            raise _WrongError(f"Spark has no decimal({precision},{scale})")
        return f"decimal({precision},{scale})"

    def _number(self) -> int:
        token = self._next()
        if not token.isdecimal():
            raise _WrongError(f"{token!r} is no number")
        return int(token)

    def _array(self) -> str:
        return self._type()

    def _map(self) -> str:
        key = self._type()
        if key.partition("<")[0] in _NESTED:
            raise _WrongError(f"a dict cannot have keys of type {key}")
        self._expect(",")
        return f"{key},{self._type()}"

    def _struct(self) -> str:
        fields = dict([self._field()])
        while self._peek() == ",":
            self._next()
            name, kind = self._field()
            if name in fields:
                raise _WrongError(f"a dict cannot keep two fields {name!r}")
            fields[name] = kind
        return ",".join(f"{quoted(name)}:{kind}" for name, kind in fields.items())

    def _field(self) -> tuple[str, str]:
        name = self._name()
        if self._peek() == ":":
            self._next()
        kind = self._type()
        self._not_null()
        return name, kind

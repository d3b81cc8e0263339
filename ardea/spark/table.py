"""Rows in a folder that Spark and topologies both read and write: staged files, indexes, and the schema.

FOLDER/schema.ddl               the columns
FOLDER/index.jsonl              what Spark wrote, a line a commit; its files are in FOLDER/run-*
FOLDER/COMPONENT-N/index.jsonl  what a task of a sink wrote, a line a file; its files are in FOLDER/COMPONENT-N/run-*
"""

from __future__ import annotations

import fcntl
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import tenacity

from ardea.errors import UserError
from ardea.spark.index import INDEX, IndexReader, Partition
from ardea.spark.schema import Column, ddl_of, parse_schema

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "schema.ddl"
LOCK = ".lock"
_PATIENTLY = tenacity.Retrying(
    retry=tenacity.retry_if_exception_type(BlockingIOError),
    stop=tenacity.stop_after_attempt(51),
    wait=tenacity.wait_fixed(0.2),
    reraise=True,
)


def write_schema(folder: Path, columns: Sequence[Column], *, overwrite: bool = False) -> None:
    """Makes the folder if need be.

    Raises:
        UserError: it has another schema, and that is not overwritten.
    """
    text = ddl_of(columns)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / SCHEMA
    if not overwrite and file.exists() and (found := read_schema(folder)) != tuple(columns):
        raise UserError(
            f"{folder} has the columns {ddl_of(found)}, not {text}", hint="Write to another folder, or overwrite."
        )
    new = folder / f".{SCHEMA}-{secrets.token_hex(4)}"
    new.write_text(text)
    new.replace(file)


def read_schema(folder: Path) -> tuple[Column, ...]:
    """The columns; UserError if nothing was ever written there."""
    try:
        return parse_schema((folder / SCHEMA).read_text())
    except FileNotFoundError:
        raise UserError(f"{folder} has no {SCHEMA}: nothing was written there") from None


def published(folder: Path) -> dict[str, list[Partition]]:
    """All that is readable: by the path, relative to the folder, of each index's own folder; ``.`` is Spark's."""
    found = {}
    for index in sorted([*folder.glob(INDEX), *folder.glob(f"*/{INDEX}")]):
        reader = IndexReader(index.parent)
        reader.poll()
        found[str(index.parent.relative_to(folder))] = sorted(reader.partitions.values(), key=lambda each: each.number)
    return found


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Waits until no other process writes the folder's index."""
    with (folder / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def hold(folder: Path) -> TextIO:
    """Makes the folder, and keeps other writers from its index until what is returned is closed, or the process ends.

    Raises:
        UserError: another process still has it after 10 s: no former life of this task that is about to end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / LOCK).open("w")
    try:
        for attempt in _PATIENTLY.copy():
            with attempt:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UserError(
            f"another process writes into {folder}; the topology ends",
            hint="Let each topology write into a folder of its own, or name its sink otherwise.",
        ) from None
    return file


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """As Spark maps its types."""
    import pyarrow

    return pyarrow.schema([(column.name, _Types(column.type).read()) for column in columns])


_NAME = re.compile("`((?:[^`]|``)+)`:")
_NAMES = {
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "string": "string",
    "binary": "binary",
    "boolean": "bool",
    "date": "date32",
}


class _Types:
    """Reads a type as :class:`Column` has it."""

    def __init__(self, text: str) -> None:
        self._rest = text

    def _until(self, ends: str) -> str:
        place = next((place for place, char in enumerate(self._rest) if char in ends), len(self._rest))
        head, self._rest = self._rest[:place], self._rest[place:]
        return head

    def _skip(self) -> str:
        char, self._rest = self._rest[0], self._rest[1:]
        return char

    def _name(self) -> str:
        """Of a struct's field, and the colon after it."""
        quoted = _NAME.match(self._rest)
        assert quoted is not None
        self._rest = self._rest[quoted.end() :]
        return quoted[1].replace("``", "`")

    def read(self) -> pa.DataType:
        import pyarrow

        name = self._until("<>(),")
        match name:
            case "decimal":
                self._skip()
                precision, scale = self._until(")").split(",")
                self._skip()
                return pyarrow.decimal128(int(precision), int(scale))
            case "timestamp":
                return pyarrow.timestamp("us", "UTC")
            case "timestamp_ntz":
                return pyarrow.timestamp("us")
            case "array":
                self._skip()
                inner = pyarrow.list_(pyarrow.field("element", self.read()))
                self._skip()
                return inner
            case "map":
                self._skip()
                key = self.read()
                self._skip()
                inner = pyarrow.map_(key, self.read())
                self._skip()
                return inner
            case "struct":
                fields = []
                while self._skip() != ">":
                    fields.append((self._name(), self.read()))
                return pyarrow.struct(fields)
            case _:
                return pyarrow.type_for_alias(_NAMES[name])

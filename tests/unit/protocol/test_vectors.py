"""docs/keys.md is what the code does, and what it must go on doing."""

import datetime
import re
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest
import xxhash

from ardea.protocol import values
from ardea.protocol.keys import ALGORITHM, encode_key, key_hash, partition

PAGE = (Path(__file__).parents[3] / "docs" / "keys.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(.+)` \| `([0-9a-f]*)` \| `([0-9a-f]{16})` \| (\d) \|$", re.MULTILINE)
NAMES = {"Decimal": Decimal, "UUID": UUID} | {
    name: getattr(datetime, name) for name in ("date", "datetime", "time", "timedelta", "timezone")
}
VECTORS = ROW.findall(PAGE)


@pytest.mark.parametrize(("source", "encoded", "hashed", "place"), VECTORS)
def test_vector(source, encoded, hashed, place):
    """Bytes, hash and place of a documented key."""
    key = list(eval(source.removeprefix("*"), NAMES)) if source.startswith("*") else [eval(source, NAMES)]
    assert encode_key(key).hex() == encoded
    assert f"{xxhash.xxh3_64_intdigest(bytes.fromhex(encoded)):016x}" == hashed
    assert key_hash(key) == int(hashed, 16)
    assert partition(key_hash(key), 7) == int(place)


def test_the_table_is_complete():
    """Every tag of the format table has a vector, and no row of the vector table escapes the pattern."""
    spec, table = PAGE.split("## Test vectors")
    spec, _ = spec.split("## Values on the wire")
    assert len(VECTORS) == len([line for line in table.splitlines() if line.startswith("| `")])
    tags = set(re.findall(r"`(.)`", "".join(re.findall(r"^\| (`.`.*?) \|", spec, re.MULTILINE))))
    assert tags == {chr(int(encoded[:2], 16)) for _, encoded, _, _ in VECTORS if encoded}
    assert f"`{ALGORITHM}`" in PAGE


def test_the_table_of_extensions_is_the_code():
    """A number, once given away, stays."""
    listed = dict(re.findall(r"^\| (\d) \| (?:any other )?(\w+)", PAGE, re.MULTILINE))
    assert {int(number): kind for number, kind in listed.items()} == {
        values.INTEGER: "int",
        values.DECIMAL: "Decimal",
        values.LOCAL_DATETIME: "datetime",
        values.DATE: "date",
        values.TIME: "time",
        values.TIMEDELTA: "timedelta",
        values.UUID: "UUID",
        values.PICKLE: "object",
    }

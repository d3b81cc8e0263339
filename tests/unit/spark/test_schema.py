"""Declared columns: what is read, how it is normalised, what is refused, column by column."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import TopologyError
from ardea.spark.schema import Column, parse_schema

ALIASES = {
    "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long", "float": "real",
    "timestamp": "timestamp_ltz",
}  # fmt: skip
SCALARS = [*ALIASES, "double", "string", "binary", "boolean", "timestamp_ntz", "date"]
names = st.from_regex(r"[A-Za-z_]\w{0,5}", fullmatch=True).filter(lambda n: n.lower() not in ("not", "null"))


@st.composite
def types(draw, depth=2):
    """(as an author may write it, as it is kept)"""
    kind = draw(st.sampled_from(["scalar", "decimal", *(["array", "map", "struct"] if depth else [])]))
    if kind == "scalar":
        name = draw(st.sampled_from(SCALARS))
        return draw(st.sampled_from([name, name.upper(), ALIASES.get(name, name)])), name
    if kind == "decimal":
        precision = draw(st.integers(1, 38))
        scale = draw(st.integers(0, precision))
        return f"{draw(st.sampled_from(['decimal', 'DEC', 'numeric']))}( {precision},{scale})", (
            f"decimal({precision},{scale})"
        )
    inner, simple = draw(types(depth - 1))
    if kind == "array":
        return f"array< {inner}>", f"array<{simple}>"
    if kind == "map":
        return f"map<string , {inner}>", f"map<string,{simple}>"
    first, second = draw(st.lists(names, min_size=2, max_size=2, unique=True))
    written = f"struct<{first}:{inner} NOT NULL, `{second}` int>"
    return written, f"struct<`{first}`:{simple},`{second}`:int>"


@given(st.lists(st.tuples(names, types()), min_size=1, max_size=4))
def test_every_type_is_read_in_one_way(columns):
    ddl = " , ".join(f"{name} {written}" for name, (written, _) in columns)
    assert parse_schema(ddl) == tuple(Column(name, simple) for name, (_, simple) in columns)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(TopologyError):
        assert parse_schema(text)


def test_quoted_names_and_not_null():
    columns = parse_schema("`a, b``c` bigint NOT NULL,d decimal")
    assert columns == (Column("a, b`c", "bigint"), Column("d", "decimal(10,0)"))


@pytest.mark.parametrize(
    ("ddl", "problem"),
    [
        ("a interval day to second", "[a interval day to second]: a tuple cannot keep a value of type 'interval'"),
        ("a variant", "of type 'variant'"),
        ("a void", "of type 'void'"),
        ("a char(3)", "of type 'char'"),
        ("a array<interval>", "of type 'interval'"),
        ("a map<struct<x int>,int>", "a dict cannot have keys of type struct<`x`:int>"),
        ("a map<array<int>,int>", "a dict cannot have keys of type array<int>"),
        ("a decimal(39,2)", "Spark has no decimal(39,2)"),
        ("a decimal(3,4)", "Spark has no decimal(3,4)"),
        ("a", "its type is missing"),
        ("a array<int", "'>' is missing before 'the end'"),
        ("a int b", "'b' behind its type"),
        ("a int, , b int", "[]: a name is missing"),
        ("a int!", "'!' has no meaning here"),
        ("", "schema='' declares no column"),
        ("a struct<x int, y int, x string>", "a dict cannot keep two fields 'x'"),
        pytest.param("a " + "array<" * 5000 + "int" + ">" * 5000, "types are nested more than 32 deep", id="deep"),
        (["a int"], "schema= takes Spark's DDL, a text, not ['a int']"),
    ],
)
def test_refused(ddl, problem):
    with pytest.raises(TopologyError) as refusal:
        parse_schema(ddl)
    assert problem in refusal.value.problems[0]


def test_all_wrong_columns_are_told_at_once():
    with pytest.raises(TopologyError) as refusal:
        parse_schema("a variant, good int, b interval")
    assert [text.partition(":")[0] for text in refusal.value.problems] == [
        "Spark column [a variant]", "Spark column [b interval]"
    ]  # fmt: skip

"""What is wrong with a sink into PostgreSQL is said before anything is written."""

from __future__ import annotations

import json
import math
import sys
from datetime import date

import pytest

from ardea.config_check import check
from ardea.errors import ConfigError, TopologyError
from ardea.postgres import PostgresSink, _content
from ardea.testing.sinks import _context


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("", ["a"]), "table is a name, not ''"),
        (("t", "a"), "columns and key= are lists of names"),
        (("t", []), "there is a column"),
        (("t", ["a", 3]), "column 1 is a name, not 3"),
    ],
)
def test_what_is_wrong_is_said_when_it_is_made(arguments, said):
    with pytest.raises(TopologyError, match=said):
        PostgresSink(*arguments)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rejected": "skip"}, "rejected= takes 'fail' or 'dead-letter', not 'skip'"),
        ({"rejected": "dead-letter"}, "rejected='dead-letter' needs dead_letters="),
        ({"rejected": "dead-letter", "dead_letters": "a..b"}, "dead_letters= is a name, not 'a..b'"),
        ({"dead_letters": "letters"}, "is of use with rejected='dead-letter' only"),
        ({"timeout": 0}, "timeout= takes seconds from 0.001 to 2,000,000, not 0"),
        ({"timeout": "60"}, "timeout= takes seconds from 0.001 to 2,000,000, not '60'"),
        ({"timeout": True}, "timeout= takes .*, not True"),
        ({"timeout": math.inf}, "timeout= takes .*, not inf"),
        ({"timeout": math.nan}, "timeout= takes .*, not nan"),
        ({"timeout": 2_000_001}, "timeout= takes .*, not 2000001"),
        ({"timeout": 0.0009}, "timeout= takes .*, not 0.0009"),
    ],
)
def test_wrong_options_are_said_when_it_is_made(options, said):
    with pytest.raises(TopologyError, match=said):
        PostgresSink("t", ["a"], **options)


@pytest.mark.parametrize("timeout", [0.001, 2_000_000])
def test_a_timeout_of_a_millisecond_and_one_of_weeks(timeout):
    assert PostgresSink("t", ["a"], timeout=timeout).spec().name is None


def test_a_key_is_of_columns():
    with pytest.raises(TopologyError, match="key= names 'b', which are no columns"):
        PostgresSink("t", ["a"], key=["b"])


@pytest.mark.parametrize(
    ("row", "content"),
    [
        ((1, b"ab", None, date(2024, 2, 29)), [1, "YWI=", None, "2024-02-29"]),
        (
            ({("a", 1): 2, 3: [{b"k": b"ab"}, ({None: 1.5},)], "s": 0},),
            [{"('a', 1)": 2, "3": [{"b'k'": "YWI="}, [{"null": 1.5}]], "s": 0}],
        ),
    ],
)
def test_a_dead_letter_has_all_that_a_row_can_have(row, content):
    assert json.loads(_content(row)) == content


def begin(config):
    PostgresSink("t", ["a"]).spec(inputs=[]).cls().initialize(config, _context({}))


def test_without_the_client_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg.sql", None)
    with pytest.raises(ConfigError, match="psycopg is not installed") as raised:
        begin({})
    assert raised.value.hint == "pip install 'ardea[postgres]'"


def test_a_connection_string_is_refused():
    with pytest.raises(ConfigError, match=r"postgres\.conninfo is set by Ardea: write its parts"):
        begin({"postgres.conninfo": "postgresql://user:secret@host"})


def test_passwords_stand_elsewhere():
    assert "is a secret" in check({"postgres.password": "heron"}, "here")[1][0]
    assert check({"postgres.password": "env:PGPASSWORD", "postgres.passfile": "/p"}, "here")[1] == []

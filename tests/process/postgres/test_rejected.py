"""Rows that a real server refuses for what they are, and a server that hangs, loses its connections, or keeps locks."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import closing, suppress

import psycopg
import pytest

from ardea import postgres
from ardea.errors import ClusterError
from ardea.postgres import PostgresSink
from ardea.rejections import RETRIES, RejectedError
from ardea.sinks import Mark, keep_rows
from ardea.testing.sinks import _context
from tests.process.waiting import eventually

TABLE = 'CREATE TABLE numbers (number int CHECK (number <> 13), "text" varchar(3), UNIQUE (number))'
GOOD = [(number, f"n{number}") for number in range(12)]
BAD = [
    (13, "n"),
    (4, "n"),
    (100, "long"),
    (101, "\0"),
    (1 << 40, "n"),
    ("many", "n"),
    (102, b"\xff".hex() * 9),
    (["a"], "n"),
]
DEAD = {"rejected": "dead-letter", "dead_letters": "letters"}


@pytest.fixture
def table(database):
    database.ask("DROP TABLE IF EXISTS letters")
    database.ask(TABLE)
    return database


@pytest.fixture
def made(table):
    """Makes sinks as the engine does."""
    sinks = []

    def make(key=(), config=(), **options):
        sink = PostgresSink("numbers", ["number", "text"], key=key, **options).spec(inputs=[]).cls()
        keep_rows(sink, lambda rows: None)
        sink.initialize({**table.config, **dict(config)}, _context({}))
        sinks.append(sink)
        return sink

    yield make
    for sink in sinks:
        sink.disconnect()


def mark(number):
    return Mark("t-1", "out", 0, number)


def written(database):
    return sorted(database.ask("SELECT number, text FROM numbers"))


@pytest.mark.parametrize("key", [(), ("text",)])
@pytest.mark.parametrize("part", [500, 3])
def test_a_refused_row_is_a_dead_letter_and_all_others_are_there(table, made, monkeypatch, key, part):
    monkeypatch.setattr(postgres, "CHUNK", part)
    table.ask("CREATE UNIQUE INDEX ON numbers (text)")
    sink, rows = made(key, **DEAD), [*GOOD[:5], *BAD, *GOOD[5:]]
    for attempt in range(RETRIES):
        with pytest.raises(RejectedError if attempt else psycopg.Error) as raised:
            sink.commit(mark(1), rows)
    assert "table numbers refuses the row (13, 'n'): new row for relation" in str(raised.value)
    assert 'violates check constraint "numbers_number_check"' in str(raised.value)
    assert written(table) == table.ask("SELECT * FROM letters") == []
    sink.commit(mark(1), rows)
    assert written(table) == GOOD
    letters = table.ask("SELECT owner, number, content, error FROM letters")
    assert [content for _, _, content, _ in letters] == [
        '[13, "n"]', '[4, "n"]', '[100, "long"]', '[101, "\\u0000"]', "[1099511627776, \"n\"]", '["many", "n"]',
        f'[102, "{"ff" * 9}"]', '[["a"], "n"]',
    ]  # fmt: skip
    assert {(owner, number) for owner, number, _, _ in letters} == {("t-1/out/0", 1)}
    assert "value too long for type character varying(3)" in letters[2][3]
    made(key, **DEAD).commit(mark(1), rows)
    assert len(table.ask("SELECT * FROM letters")) == len(BAD), "once each"
    assert (sink._written.value, sink._set_aside.value) == (len(GOOD), len(BAD))
    with pytest.raises(psycopg.Error):  # the next interval is tried as often
        sink.commit(mark(2), [(13, "n")])


def test_without_dead_letters_it_waits_until_the_table_takes_the_row(table, made):
    sink, rows = made(), [(1, "n1"), (13, "n13")]
    for _ in range(RETRIES + 3):
        with pytest.raises((psycopg.Error, RejectedError)) as raised:
            sink.commit(mark(1), rows)
    assert isinstance(raised.value, RejectedError)
    assert "dead-letter" in raised.value.hint
    table.ask("ALTER TABLE numbers DROP CONSTRAINT numbers_number_check")
    sink.commit(mark(1), rows)
    assert written(table) == rows


@pytest.mark.parametrize("change", ["DROP TABLE numbers", "ALTER TABLE numbers RENAME text TO word"])
def test_a_wrong_table_makes_no_dead_letters(table, made, change):
    sink = made(**DEAD)
    table.ask(change)
    for _ in range(RETRIES + 2):
        with pytest.raises(psycopg.errors.ProgrammingError):
            sink.commit(mark(1), GOOD)
    assert table.ask("SELECT * FROM letters") == []


def test_a_deferred_constraint_names_no_row_and_keeps_the_interval(table, made):
    table.ask("ALTER TABLE numbers ADD UNIQUE (text) DEFERRABLE INITIALLY DEFERRED")
    sink = made(**DEAD)
    for _ in range(RETRIES + 2):
        with pytest.raises(psycopg.errors.UniqueViolation):
            sink.commit(mark(1), [(1, "n"), (2, "n")])
    assert table.ask("SELECT * FROM letters") == []


def test_a_lost_connection_in_the_middle_loses_and_doubles_nothing(table, made, monkeypatch):
    sink = made()
    sink.commit(mark(1), GOOD[:2])
    monkeypatch.setattr(postgres, "CHUNK", 1)
    process = sink._connection.info.backend_pid

    def breaking():
        yield GOOD[2]
        table.ask(f"SELECT pg_terminate_backend({process})")
        yield GOOD[3]

    with pytest.raises(psycopg.OperationalError):
        sink.commit(mark(2), breaking())
    sink.commit(mark(2), GOOD[2:4])
    assert written(table) == GOOD[:4]


def test_where_the_answer_to_commit_is_lost_the_mark_says_that_the_rows_are_there(table, made, monkeypatch):
    sink, commit = made(), psycopg.Connection.commit
    sink.commit(mark(1), GOOD[:2])

    def lost(connection):
        commit(connection)
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(psycopg.Connection, "commit", lost)
    with pytest.raises(psycopg.OperationalError):
        sink.commit(mark(2), GOOD[2:4])
    monkeypatch.undo()
    sink.commit(mark(2), GOOD[2:4])
    assert written(table) == GOOD[:4]


def test_a_server_that_hangs_costs_a_deadline_and_what_it_wakes_to_is_void(table, made, monkeypatch):
    """Its process is stopped in the middle of a transaction; another one goes on with the interval."""
    monkeypatch.setattr(postgres, "CHUNK", 1)
    monkeypatch.setattr(postgres, "LATER", 1.5)
    sink = made(timeout=1.5)
    sink.commit(mark(1), GOOD[:2])
    stopped = sink._connection.info.backend_pid

    def hanging():
        yield GOOD[2]
        os.kill(stopped, signal.SIGSTOP)
        yield GOOD[3]

    with pytest.raises(ClusterError, match="the server has not answered for 3 s"):
        sink.commit(mark(2), hanging())
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        sink.commit(mark(2), GOOD[2:4])  # the mark is locked by the one that hangs
    os.kill(stopped, signal.SIGCONT)

    def commits():
        with suppress(psycopg.errors.QueryCanceled, ClusterError):
            sink.commit(mark(2), GOOD[2:4])
            return True
        return False

    eventually(commits, what="the interval is written")
    assert written(table) == GOOD[:4]


def test_a_lock_that_somebody_keeps_costs_a_deadline(table, made):
    sink = made(timeout=1.0)
    with closing(psycopg.connect(host="127.0.0.1", port=table.port, user="ardea", dbname="postgres")) as other:
        other.execute("LOCK TABLE numbers")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            sink.commit(mark(1), GOOD)
        other.rollback()
    sink.commit(mark(1), GOOD)
    assert written(table) == GOOD


def test_a_server_that_does_not_let_in_costs_a_deadline(table, made):
    sink = made(config={"postgres.connect_timeout": 2})
    table.freeze()
    try:
        with pytest.raises(psycopg.OperationalError, match="timeout"):
            sink.commit(mark(1), GOOD)
    finally:
        gc.collect()  # what was raised holds half a connection
        table.thaw()
    sink.commit(mark(1), GOOD)
    assert written(table) == GOOD

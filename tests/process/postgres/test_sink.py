"""Rows into a table of a real server: each once and in order, while the sink and the server are killed."""

from __future__ import annotations

import pytest

from ardea.postgres import PostgresSink
from ardea.testing import check_sink, run_bolt

BODY = """
import time

from ardea import Spout, Topology
from ardea.keyed import TaskState
from ardea.postgres import PostgresSink

class Numbers(Spout):
    outputs = ["number", "text"]
    position = TaskState(default=0)

    def initialize(self, config, context):
        self.began, self.first = time.monotonic(), self.position

    def next_tuple(self):
        due = self.first + int((time.monotonic() - self.began) * 2000)
        for place in range(self.position, min(due, {most})):
            self.emit((place, f"n{{place}}"))
            self.position = place + 1
        if self.position >= {most}:
            self.finish()

class Made(Topology):
    numbers = Numbers.spec()
    out = PostgresSink("numbers", ["number", "text"]{more}).spec(inputs=[numbers])
    config = {{
        "topology.reliability.mode": "{mode}",
        "topology.stateful.checkpoint.interval.secs": 0.5,
    }}
"""
MOST = 4000
TABLE = 'CREATE TABLE numbers (id serial, number int, "text" text)'


def body(mode="EFFECTIVELY_ONCE", more=""):
    return BODY.format(most=MOST, mode=mode, more=more)


def written(database):
    return [number for (number,) in database.ask("SELECT number FROM numbers ORDER BY id")]


def test_each_row_is_there_once_whoever_dies(mortal, running):
    """One row is refused: it is a dead letter, once."""
    mortal.ask(TABLE.replace("number int", "number int CHECK (number <> 2000)"))
    dead = ', rejected="dead-letter", dead_letters="letters"'
    with running(body(more=dead), mortal) as topology:
        topology.until(lambda: len(written(mortal)) > 0, "rows are there")
        topology.faults.kill("out-0")
        topology.until(lambda: len(written(mortal)) > 1500, "more rows are there")
        mortal.kill()
        topology.until(lambda: "it tries again" in logs(topology), "the sink says what is wrong")
        mortal.start()
        assert topology.finish().state == "SUCCEEDED"
    assert written(mortal) == [number for number in range(MOST) if number != 2000]
    assert mortal.ask("SELECT content FROM letters") == [('[2000, "n2000"]',)]


@pytest.mark.thorough
def test_at_least_once_all_rows_are_there(database, running):
    database.ask(TABLE)
    with running(body("ATLEAST_ONCE"), database) as topology:
        assert topology.finish().state == "SUCCEEDED"
    assert set(written(database)) == set(range(MOST))
    assert database.ask("SELECT to_regclass('ardea_marks')") == [(None,)]


@pytest.mark.parametrize("key", [(), ("number",)])
def test_the_sink_passes_the_check(database, key):
    database.ask(TABLE + "; CREATE UNIQUE INDEX ON numbers (number)")
    sink = PostgresSink("public.numbers", ["number", "text"], key=key).spec(inputs=[]).cls
    read = lambda: database.ask('SELECT number, "text" FROM numbers ORDER BY id')  # noqa: E731
    check_sink(sink, read, [(number, f"n{number}") for number in range(6)], config=database.config)


def test_with_a_key_a_row_replaces_the_one_that_is_there(database):
    """In one transaction, and in a mode without snapshots."""
    database.ask('CREATE TABLE numbers (number int PRIMARY KEY, "text" text)')
    rows = [{"number": 3, "text": "a"}, {"number": 7, "text": "b"}, {"number": 3, "text": "c"}]
    sink = PostgresSink("numbers", ["number", "text"], key=["number"]).spec(inputs=[])
    run_bolt(sink.cls, rows, config=database.config)
    assert database.ask("SELECT * FROM numbers ORDER BY number") == [(3, "c"), (7, "b")]


def logs(topology):
    return "".join(path.read_text() for path in topology.folder.glob("container-*/logs/out-0.log*"))

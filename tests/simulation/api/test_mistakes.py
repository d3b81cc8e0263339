"""docs/mistakes.md: each mistake of its table is made here, and what is said of it is what the page has."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from ardea.errors import ArdeaError
from ardea.loader import load
from ardea.testing import Cluster

PAGE = Path(__file__).parents[3] / "docs" / "mistakes.md"
HEAD = """\
import time
from ardea import Bolt, ColumnBatch, Grouping, Spout, Stream, Topology, TopologyBuilder


class Words(Spout):
    outputs = ["word"]

    def next_tuple(self):
        for number, word in enumerate(["heron", "fish"]):
            self.emit([word], tup_id=number)
        self.finish()


class Count(Bolt):
    outputs = ["word", "count"]

    def process(self, tup):
        self.emit([tup["word"], 1])

"""
WORKS = """
class T(Topology):
    words = Words.spec()
    count = Count.spec(inputs=[words])
"""
CASES = {
    # the file
    "there is no such file": None,
    "the file does not compile": "x = (",
    "an import fails": "import pandaz",
    "no topology in it": "x = 1",
    "two topologies, and none is named": WORKS + "class U(T): pass",
    # classes
    "`words = Words()`": "class T(Topology):\n    words = Words()\n    count = Count.spec(inputs=[words])",
    "`words = Words`": "class T(Topology):\n    words = Words\n    count = Count.spec(inputs=['words'])",
    '`words = Words("file").spec()`': (
        "class Words(Words):\n    def __init__(self, path='none'): pass\n"
        "class T(Topology):\n    words = Words('file').spec()\n    count = Count.spec(inputs=[words])"
    ),
    "a spout without `next_tuple`": (
        "class Empty(Spout): outputs = ['word']\n"
        "class T(Topology):\n    words = Empty.spec()\n    count = Count.spec(inputs=[words])"
    ),
    "a bolt without `process`": (
        "class Empty(Bolt): pass\nclass T(Topology):\n    words = Words.spec()\n    count = Empty.spec(inputs=[words])"
    ),
    "`process(self)` without the tuple": (
        "class Less(Count):\n    def process(self): pass\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Less.spec(inputs=[words])"
    ),
    "`initialize(self, config)` without the context": (
        "class Less(Count):\n    def initialize(self, config): pass\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Less.spec(inputs=[words])"
    ),
    "`async def process`": (
        "class Later(Count):\n    async def process(self, tup): pass\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Later.spec(inputs=[words])"
    ),
    "`yield` in `process`": (
        "class Yields(Count):\n    def process(self, tup):\n        yield tup\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Yields.spec(inputs=[words])"
    ),
    "`async def commit` of a sink": (
        "from ardea import TwoPhaseSink\n"
        "class Totals(TwoPhaseSink):\n    async def commit(self, mark, rows): pass\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Totals.spec(inputs=[words])"
    ),
    "a `Sink` without `write_batch`": (
        "from ardea import Sink\n"
        "class Totals(Sink): pass\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Totals.spec(inputs=[words])"
    ),
    "`__init__` with an argument": (
        "class Made(Count):\n    def __init__(self, table): pass\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Made.spec(inputs=[words])"
    ),
    "a component that is called `config`": (
        "class T(Topology):\n    words = Words.spec()\n    config = Count.spec(inputs=[words])"
    ),
    # streams and inputs
    "a bolt without inputs": "class T(Topology):\n    words = Words.spec()\n    count = Count.spec()",
    "no spout": "class T(Topology):\n    a = Count.spec(inputs=['b'])\n    b = Count.spec(inputs=['a'])",
    "a spout that nobody reads": WORKS + "    more = Words.spec()",
    "a spout without outputs": (
        "class Silent(Words): outputs = []\n"
        "class T(Topology):\n    words = Silent.spec()\n    count = Count.spec(inputs=[words])"
    ),
    "a misspelt component": "class T(Topology):\n    words = Words.spec()\n    count = Count.spec(inputs=['wrods'])",
    "a misspelt stream": "class T(Topology):\n    words = Words.spec()\n    count = Count.spec(inputs=[words['late']])",
    "a misspelt field of a grouping": (
        "class T(Topology):\n    words = Words.spec()\n    count = Count.spec(inputs={words: Grouping.fields('wrod')})"
    ),
    "`Grouping.fields()` without a field": (
        "class T(Topology):\n    words = Words.spec()\n    count = Count.spec(inputs={words: Grouping.fields()})"
    ),
    "a custom grouping with Storm's `choose_tasks(self, task_id, values)`": (
        "from ardea import CustomStreamGrouping\n"
        "class Chooses(CustomStreamGrouping):\n    def choose_tasks(self, task_id, values): pass\n"
        "class T(Topology):\n    words = Words.spec()\n"
        "    count = Count.spec(inputs={words: Grouping.custom(Chooses)})"
    ),
    "a grouping that is a text": (
        "class T(Topology):\n    words = Words.spec()\n    count = Count.spec(inputs={words: 'fields'})"
    ),
    "`inputs=words`": "class T(Topology):\n    words = Words.spec()\n    count = Count.spec(inputs=words)",
    "a field twice": (
        "class Twice(Words): outputs = ['word', 'word']\n"
        "class T(Topology):\n    words = Twice.spec()\n    count = Count.spec(inputs=[words])"
    ),
    "a cycle": (
        "class T(Topology):\n    words = Words.spec()\n    a = Count.spec(inputs=[words, 'b'])\n"
        "    b = Count.spec(inputs=[a])"
    ),
    "`par=0`": "class T(Topology):\n    words = Words.spec(par=0)\n    count = Count.spec(inputs=[words])",
    "one spec for two components": WORKS + "    again = words",
    # configuration
    "a misspelt key": WORKS + "    config = {'topology.message.timeout.sec': 10}",
    "a key that belongs to the topology, for a component": (
        "class T(Topology):\n    words = Words.spec(config={'topology.stmgrs': 2})\n"
        "    count = Count.spec(inputs=[words])"
    ),
    "a value of another type": WORKS + "    config = {'topology.message.timeout.secs': 'soon'}",
    "a password in the configuration": WORKS + "    config = {'kafka.sasl.password': 'hunter2'}",
    # at work
    '`tup["wrod"]`, a field that the stream does not have': (
        "class Wrong(Count):\n    def process(self, tup):\n        self.emit([tup['wrod'], 1])\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Wrong.spec(inputs=[words])"
    ),
    "`emit(word)` without the list": (
        "class Wrong(Words):\n    def next_tuple(self):\n        for n in range(3): self.emit('heron', tup_id=n)\n"
        "class T(Topology):\n    words = Wrong.spec()\n    count = Count.spec(inputs=[words])"
    ),
    "`emit` of too many values": (
        "class Wrong(Words):\n    def next_tuple(self):\n        for n in range(3): self.emit(['a', n], tup_id=n)\n"
        "class T(Topology):\n    words = Wrong.spec()\n    count = Count.spec(inputs=[words])"
    ),
    "`emit` of an object of your own": (
        "class Word: pass\n"
        "class Wrong(Words):\n    def next_tuple(self):\n        for n in range(3): self.emit([Word()], tup_id=n)\n"
        "class T(Topology):\n    words = Wrong.spec()\n    count = Count.spec(inputs=[words])"
    ),
    "`emit` on a stream that is not declared": (
        "class Wrong(Words):\n    def next_tuple(self):\n        self.emit(['heron'], stream='late')\n"
        "class T(Topology):\n    words = Wrong.spec()\n    count = Count.spec(inputs=[words])"
    ),
    "Storm's `emit(tup, [word])`": (
        "class Wrong(Count):\n    def process(self, tup):\n        self.emit(tup, [tup['word']])\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Wrong.spec(inputs=[words])"
    ),
    "`anchors=tup` without the list": (
        "class Wrong(Count):\n    def process(self, tup):\n        self.emit([tup['word'], 1], anchors=tup)\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Wrong.spec(inputs=[words])"
    ),
    "`ack(tup.id)`": (
        "class Wrong(Count):\n    def process(self, tup):\n        self.ack(tup.id)\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Wrong.spec(inputs=[words])"
    ),
    "`return self.later(tup)`, where `later` is async": (
        "class Wrong(Count):\n    def process(self, tup):\n        return self.later(tup)\n"
        "    async def later(self, tup): pass\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Wrong.spec(inputs=[words])"
    ),
    "`return [word]` instead of `emit`": (
        "class Wrong(Count):\n    def process(self, tup):\n        return [tup['word'], 1]\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Wrong.spec(inputs=[words])"
    ),
    "`emit` in `__init__`": (
        "class Wrong(Count):\n    def __init__(self):\n        self.emit(['heron', 1])\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Wrong.spec(inputs=[words])"
    ),
    "`self.seen = {}` in `__init__`, where `seen` is declared as a state": (
        "from ardea import KeyedState\n"
        "class Wrong(Count):\n    seen = KeyedState(default=0)\n    def __init__(self):\n        self.seen = {}\n"
        "class T(Topology):\n    words = Words.spec()\n"
        "    count = Wrong.spec(inputs={words: Grouping.fields('word')})"
    ),
    "an exception in `process`": (
        "class Wrong(Count):\n    def process(self, tup):\n        raise ValueError('no such table')\n"
        "class T(Topology):\n    words = Words.spec()\n    count = Wrong.spec(inputs=[words])"
    ),
    "`fail` of a spout that does not return True": (
        "class Wrong(Words):\n    def fail(self, tup_id): pass\n"
        "class Bad(Count):\n    def process(self, tup):\n        raise ValueError('no such table')\n"
        "class T(Topology):\n    words = Wrong.spec()\n    count = Bad.spec(inputs=[words])"
    ),
}


def rows():
    """(mistake, message) of each row of the page."""
    for line in PAGE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith(("| mistake", "| ---")):
            mistake, message = line.strip("| ").split(" | ", 1)
            yield mistake, re.sub(r"^`` (.*) ``$|^`(.*)`$", r"\1\2", message)


def said(tmp_path, text):
    """Everything that is said of a file with this text; of a topology that runs, in simulated time, too."""
    file = tmp_path / f"mistake_{abs(hash(text))}.py"
    if text is not None:
        file.write_text(HEAD + textwrap.dedent(text))
    try:
        topology = load(str(file))
        topology.plan()
    except ArdeaError as error:
        return error.message
    told = []
    with Cluster(topology) as cluster:
        while not cluster.over and cluster.time < 1.5:
            cluster.advance(0.0005 if cluster.time < 0.01 else 0.5)  # one that succeeds is over soon
            told += cluster.errors
    return "\n".join((cluster.reason, *dict.fromkeys(told)))


def test_the_page_has_them_all():
    assert [mistake for mistake, _ in rows()] == list(CASES)
    assert len(CASES) >= 40


@pytest.mark.parametrize(("mistake", "message"), list(rows()))
def test_the_page_has_the_message(tmp_path, mistake, message):
    found = said(tmp_path, CASES[mistake]).replace(str(tmp_path), "FOLDER")
    pattern = ".*".join(map(re.escape, message.split("…")))
    assert any(re.fullmatch(pattern, line) for line in found.splitlines()), found

from __future__ import annotations

import pytest

from ardea.scheduler.kubernetes.manifest_inputs import Defaults
from ardea.scheduler.kubernetes.submission import Options, prepare
from tests.unit.scheduler.kubernetes.fake import FakeCluster

FILE = """
from ardea import Bolt, Grouping, Spout, Topology

class Numbers(Spout):
    outputs = ["number"]
    replayable = False
    def next_tuple(self):
        self.finish()

class Adds(Bolt):
    def process(self, tup):
        pass

class Sums(Topology):
    numbers = Numbers.spec(par=2)
    adds_up = Adds.spec(inputs={numbers: Grouping.fields("number")}, par=2, config=%s)
    config = {"topology.stmgrs": 2, **%s}
"""


@pytest.fixture
def cluster():
    return FakeCluster()


@pytest.fixture
def author(tmp_path):
    """Writes the topology's file; returns its path."""

    def write(config=None, component=None):
        folder = tmp_path / "author"
        folder.mkdir(exist_ok=True)
        file = folder / f"sums_{tmp_path.name.replace('-', '_')}.py"
        file.write_text(FILE % (component or {}, config or {}))
        return file

    return write


@pytest.fixture
def prepared(author):
    """What is ready to be submitted."""

    def make(config=None, component=None, *, options=None, **defaults):
        given = {"image": "ardea:test", "state": "zookeeper://zk:2181/ardea", **defaults}
        return prepare(str(author(config, component)), {}, options or Options(), Defaults(**given))

    return make

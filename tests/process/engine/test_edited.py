"""The files of a topology that runs are edited: it goes on with what was submitted, whoever dies."""

from __future__ import annotations

import sys

import pytest

from tests.process.engine.running import Running

FILE = """
from pathlib import Path

from ardea import Bolt, Spout, Topology
from edited_helper import add

class Rows(Spout):
    outputs = ["n"]

    def next_tuple(self):
        if (Path(__file__).parent / "enough").exists():
            self.finish()
        else:
            self.emit([1], tup_id=1)

class Adds(Bolt):
    def initialize(self, config, context):
        self.file = Path(__file__).with_name("seen")

    def process(self, tup):
        with self.file.open("a") as file:
            file.write(f"{add(tup['n'])}\\n")

class Edited(Topology):
    rows = Rows.spec()
    adds = Adds.spec(inputs=[rows])
    config = {"topology.max.spout.pending": 1}
"""


@pytest.fixture
def edited(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "edited.py").write_text(FILE)
    (tmp_path / "edited_helper.py").write_text("def add(n):\n    return n + 1\n")
    with Running(str(tmp_path / "edited.py"), tmp_path) as running:
        yield running
    for name in ("edited", "edited_helper"):
        sys.modules.pop(name, None)


def test_a_process_that_dies_comes_back_with_the_code_that_was_submitted(edited, tmp_path):
    edited.running()
    edited.grows("executed", "adds")
    (tmp_path / "edited.py").write_text("def (")
    (tmp_path / "edited_helper.py").write_text("def add(n):\n    return 'new'\n")
    edited.returned("adds-0", edited.kill("adds-0"))
    edited.grows("executed", "adds", 10)
    (tmp_path / "enough").touch()
    edited.finish()
    assert set((tmp_path / "seen").read_text().splitlines()) == {"2"}

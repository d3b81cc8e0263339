"""Streams that meet have the numbers of their transactions in common, also where a new version brings them together."""

from __future__ import annotations

import itertools

import pytest

from ardea.trident import DirectorySpout, TridentTopology, compiler
from ardea.trident.coordinators import _Record
from ardea.trident.store import MemoryStore, StreamStore

from .parts import run_through


class Shop:
    """``run``: a version whose streams stand in that order; returns the lines of all batches, sorted."""

    def __init__(self, folder, kind):
        self.folder, self.kind, self.numbers = folder, kind, itertools.count()

    def write(self, *names):
        """Two more lines for each; returns them, sorted."""
        lines = []
        for name in names:
            (self.folder / name).mkdir(exist_ok=True)
            lines += [f"{name} {next(self.numbers)}" for _ in range(2)]
            with (self.folder / name / "lines").open("a") as file:
                file.write("\n".join(lines[-2:]) + "\n")
        return sorted(lines)

    def run(self, *names):
        topology, seen = TridentTopology("Shop"), []
        make = getattr(DirectorySpout, self.kind)
        streams = [topology.new_stream(name, make(self.folder / name, lines=1)) for name in names]
        topology.merge(streams).peek(lambda tup: seen.append(tup["line"]))
        assert run_through(topology).state == "SUCCEEDED"
        return sorted(seen)


@pytest.fixture
def memory(monkeypatch):
    """Of all versions, as a state manager's."""
    memory = MemoryStore()
    monkeypatch.setattr(compiler, "MemoryStore", lambda: memory)
    return memory


@pytest.mark.parametrize("kind", ["transactional", "opaque_transactional"])
def test_streams_are_added_and_change_their_order_and_none_begins_anew(tmp_path, memory, kind):
    shop = Shop(tmp_path, kind)
    for names in (["b"], ["a", "b"], ["b", "a"], ["b", "c", "a"], ["a", "b", "c"], ["c", "b", "a"]):
        assert shop.write(*names) == shop.run(*names)


def test_a_coordinator_of_a_version_with_another_first_stream_records_nothing_any_more(tmp_path, memory):
    shop = Shop(tmp_path, "transactional")
    shop.write("a", "b")
    shop.run("b")
    former = _Record(StreamStore(memory, "Shop-simulated", "b"))
    shop.run("a", "b")
    for current in (3, 4):
        with pytest.raises(RuntimeError, match="another coordinator has taken over the stream"):
            former.write(current, 1)

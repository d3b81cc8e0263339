"""What a benchmark says of the state manager: the writes of its own topology, of which nothing stays."""

from __future__ import annotations

from types import SimpleNamespace

from ardea.state import open_state
from ardea.state.manager import Create, Set
from benchmarks.trident import name_of, transactions


def test_writes_are_counted_and_what_was_written_is_removed(tmp_path):
    topology = SimpleNamespace(state=str(tmp_path / "state"), notes=tmp_path / "ardea-benchmark-x" / "notes")
    mine, others = f"/trident/{name_of(topology.notes)}/words", "/trident/other/words/coordinator/0"
    with open_state(topology.state) as state:
        state.transaction([Create(others, b"1")])
        with transactions(topology) as writes:
            assert writes() == 0
            state.transaction([Create(f"{mine}/coordinator/0", b"1")])
            state.transaction([Create(f"{mine}/coordinator/1", b"2")])
            state.transaction([Set(f"{mine}/coordinator/0", b"3", 1)])
            assert writes() == 3
        assert (state.children("/trident"), state.exists(others)) == (("other",), True)

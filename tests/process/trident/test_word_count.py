"""The example on real processes: words of a growing directory, exact whatever is killed, and across runs."""

from __future__ import annotations

import json

import pytest

from ardea.state import FileState
from tests.process.trident.word_count import Run

pytestmark = pytest.mark.cluster

VICTIMS = ["b-2-count-ask-0", "$mastercoord-bg0-0", "spout-counts0-0"]
"""test_under_fire.py kills the others, too."""


def test_exact_while_tasks_are_killed_and_across_runs(tmp_path, deadline, leaks):
    with Run(tmp_path, deadline) as run:
        run.write("first.txt")
        run.exact()
        assert run.ask("License THE xyzzy") == {**{w: run.counted()[w] for w in ("license", "the")}, "xyzzy": None}
        for victim in VICTIMS:
            for name in ("first.txt", f"{victim}.txt"):
                run.write(name)
            run.kill(victim)
            run.write("last.txt")
        run.exact()
        assert run.ask("the") == {"the": run.counted()["the"]}
    with Run(tmp_path, deadline) as run:
        run.write("last.txt")
        run.exact()
    with FileState(tmp_path / "state" / "state") as state:
        folder = "/trident/TridentWordCount/files/coordinator"
        current, lives = max(json.loads(state.get(f"{folder}/{name}").data) for name in state.children(folder))
    assert (lives, current > len(VICTIMS)) == (3, True), "a kill and a second run are remembered"

"""Transactions of Trident in ZooKeeper: exact, whoever is killed, and across runs."""

from __future__ import annotations

import json

import pytest

from tests.process.trident.word_count import Run

pytestmark = [pytest.mark.zookeeper, pytest.mark.cluster]


def test_words_count_once_with_transactions_in_zookeeper(server, root, connect, tmp_path, deadline, leaks):
    with Run(tmp_path, deadline, server.url(root)) as run:
        run.write("first.txt")
        run.exact()
        run.write("second.txt")
        run.kill("$mastercoord-bg0-0")
        run.write("first.txt")
        run.exact()
        assert run.ask("the") == {"the": run.counted()["the"]}
    with Run(tmp_path, deadline, server.url(root)) as run:
        run.write("second.txt")
        run.exact()
    state = connect(server)
    folder = "/trident/TridentWordCount/files/coordinator"
    lives = max(json.loads(state.get(f"{folder}/{name}").data)[1] for name in state.children(folder))
    assert lives == 3, "a kill and a second run are remembered"

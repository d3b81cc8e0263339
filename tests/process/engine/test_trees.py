"""One tree a sentence, however large, whoever anchors and acks."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.machine import patient
from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster


def test_letters_of_sentences_make_one_tree_each(tmp_path):
    with Running("letters.py", tmp_path, {"topology.message.timeout.secs": round(patient(5))}) as topology:
        outcome = topology.finish()
    sentences = topology.module.SENTENCES
    expected = Counter("".join(sentences).replace(" ", ""))
    once = {str(number): 1 for number in range(len(sentences))}

    assert topology.left("sentences") == [{"acked": once, "failed": {}}]
    assert sum(map(Counter, topology.left("counts")), Counter()) == expected

    forgotten = str(sentences.index("forgotten"))
    assert topology.left("sentences_by_hand") == [{"acked": once, "failed": {forgotten: 1}}]
    assert sum(map(Counter, topology.left("counts_by_hand")), Counter()) == expected + Counter("forgotten")
    spout = outcome.components["sentences_by_hand"]
    assert (spout.acked, spout.timed_out, spout.failed, spout.lost) == (len(sentences), 1, 0, 0)

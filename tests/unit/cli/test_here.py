"""What `ardea.run` says of its arguments, before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

import ardea
from ardea.loader import load

WORD_COUNT = Path(__file__).parents[3] / "examples" / "word_count.py"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"config": {"topology.message.timeout.sec": 5}}, "unknown configuration key 'topology.message.timeout.sec'"),
        ({"name": "a b"}, "'a b' is not a valid topology name"),
        ({"logs": "count"}, "logs= takes a list, not the text 'count'"),
        ({"logs": ["cuont"]}, "logs= cuont: WordCount has no such component; it has"),
    ],
)
def test_a_wrong_argument_is_told_as_one_of_the_call(tmp_path, given, said):
    with pytest.raises(ardea.UserError) as caught:
        ardea.run(load(str(WORD_COUNT)), state=tmp_path, **given)
    assert caught.value.message.startswith(f"ardea.run(): {said}")

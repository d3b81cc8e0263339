"""What a verb makes of what it hears from inside a master's pod."""

from __future__ import annotations

import pytest

from ardea.cli import remote
from ardea.errors import Unreachable


@pytest.mark.parametrize(
    ("code", "said", "document"), [(0, b'{"status": null}', {"status": None}), (0, b"", None), (137, b'{"sta', None)]
)
def test_a_master_that_ends_while_it_is_asked_has_not_answered(monkeypatch, code, said, document):
    def answers(cluster, topology, argv, stdout):
        stdout(said)
        return code

    monkeypatch.setattr(remote, "run_at_master", answers)
    assert remote.described_by_master(None, "Words-1") == document


def test_where_no_master_runs_none_answers(monkeypatch):
    def nobody(*_):
        raise Unreachable("no pod of Words-1's masters runs")

    monkeypatch.setattr(remote, "run_at_master", nobody)
    assert remote.described_by_master(None, "Words-1") is None

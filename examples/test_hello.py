"""Tests of a topology: in one process, on simulated time, in a tenth of a second.

cd examples && python -m pytest -c /dev/null test_hello.py
"""

from __future__ import annotations

import pytest
from hello import Greet, Hello, Names

from ardea import Topology
from ardea.testing import Cluster, run, run_bolt


def test_one_bolt(capsys):
    run_bolt(Greet, [{"name": "ann"}])
    assert capsys.readouterr().out == "hello, ann\n"


@pytest.mark.parametrize("containers", [1, 2])
def test_all_of_it(containers):
    result = run(Hello, containers=containers, raise_errors=True)
    assert result.state == "SUCCEEDED"
    assert sorted(result.acked["names"]) == [0, 1, 2]


class Rude(Greet):
    """Refuses one guest the first time."""

    def initialize(self, config, context):
        self.refused = set()

    def process(self, tup):
        if tup["name"] == "bob" and not self.refused:
            self.refused.add("bob")
            raise ValueError("not you")


class Unfriendly(Topology):
    names = Names.spec()
    greet = Rude.spec(inputs=[names])


def test_what_fails_is_emitted_again():
    with Cluster(Unfriendly) as cluster:
        cluster.run_until(lambda: cluster.over)
        (raised,) = cluster.record.exceptions
    assert (raised.values, raised.tup_id) == (("bob",), 1)
    assert sorted(cluster.record.acked["names"]) == [0, 1, 2]

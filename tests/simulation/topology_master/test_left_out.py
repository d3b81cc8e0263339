"""An update is put back before anybody has ended what it left out: such processes go on, each in a new life."""

from __future__ import annotations

import logging

import pytest

from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.topology_master.test_update import SLOW, Numbers, Words, all_arrived, finish


@pytest.fixture
def cluster():
    """Its scheduler looks at the plan five seconds after a change."""
    logging.disable(logging.CRITICAL)
    Numbers.acked = {}
    with Cluster(Words, containers=2, seed=7, cost=SLOW) as made:
        store = Inside(made).store
        follow = store.switched
        store.switched = lambda: made.at(made.time + 5.0, lambda _: follow())
        made.run_until(lambda: len(made.record.received["sink"]) > 50)
        yield made
    logging.disable(logging.NOTSET)


def lives(cluster):
    return {name: cluster.life(name) for name in cluster.names if cluster.life(name) > 1}


def test_a_task(cluster):
    """Its stream manager has forgotten it."""
    request = cluster.update_request(parallelism={"double": 1, "numbers": 3}, patience=0.5)
    assert cluster.updated(request).step == "refused"
    assert lives(cluster) == {"double-1": 2}
    finish(cluster)
    assert all_arrived(cluster)


def test_a_container(cluster):
    """The other stream managers have forgotten its own; all tasks are started again, as the configuration changes."""
    request = cluster.update_request(config={"topology.stmgrs": 1}, patience=0.5)
    assert cluster.updated(request).step == "refused"
    cluster.advance(6.0)
    assert set(cluster.plan.containers) == {1, 2}
    assert cluster.life("manager-1") + cluster.life("manager-2") == 3
    finish(cluster)
    assert all_arrived(cluster)

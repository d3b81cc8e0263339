"""State that lives by the watermark on the real engine: time is that of the rows, whoever dies (docs/time.md)."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, KeyedState, Topology
from ardea.errors import TopologyError
from ardea.testing import Cluster
from tests.simulation.watermarks.timed import Stamped

TTL, BEHIND, SLACK = 20.0, 8.0, 8.0
"""Seconds of rows' time; how far the watermark is behind the newest row; until a value's time begins, and an eighth."""


class Recent(Bolt):
    """Which rows there were lately."""

    rows = KeyedState(ttl=TTL, time="event")

    def process(self, tup):
        self.rows[tup["spout"], tup["place"]] = tup["at"]


class Remembers(Topology):
    rows = Stamped.spec(par=2)
    recent = Recent.spec(par=2, inputs={rows: Grouping.fields("spout", "place")})


def remembered(cluster):
    """The watermark of the tasks, and what they have."""
    tasks = [cluster.task(f"recent-{place}", Recent) for place in (0, 1)]
    return min(task.watermark or 0.0 for task in tasks), {key: at for task in tasks for key, at in task.rows.items()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("mode", "killed"),
    [
        ("ATLEAST_ONCE", None),
        ("EFFECTIVELY_ONCE", None),
        ("EFFECTIVELY_ONCE", "recent-0"),
        ("EFFECTIVELY_ONCE", "rows-1"),
    ],
)
def test_rows_are_forgotten_when_the_watermark_says_so_and_not_before(mode, killed):
    config = {"topology.reliability.mode": mode, "topology.stateful.checkpoint.interval.secs": 0.5}
    faults = [(2.5, lambda cluster: cluster.kill(killed))] if killed else []
    with Cluster(Remembers, containers=2, seed=3, cost={"rows": 0.06}, config=config, faults=faults) as cluster:
        cluster.advance(4.0)
        cluster.run_until(lambda: remembered(cluster)[0] > 35.0)
        watermark, kept = remembered(cluster)
        since = watermark - TTL + BEHIND
        known = {row.values[:2] for row in cluster.record.received["recent"] if row.values[2] >= since}
        assert known <= kept.keys(), "rows are gone too soon"
        assert min(kept.values()) > watermark - TTL - SLACK, "rows are kept for too long"
        assert cluster.time < TTL, "by the machine's clock none would be gone"


def test_where_no_row_has_a_time_it_is_refused(monkeypatch):
    monkeypatch.setattr(Stamped, "timestamps", None)
    with pytest.raises(TopologyError, match=r"\[recent\]: rows goes by event time, and no spout that it reads"):
        Remembers.plan({})

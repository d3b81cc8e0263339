"""Storm's windowed bolts on the real engine, on simulated time (WindowedBoltExecutorTest)."""

from __future__ import annotations

import math

import pytest

from ardea import Bolt, FailedException, Grouping, Stream, Timestamps, Topology
from ardea.errors import TopologyError
from ardea.testing import RowsSpout, run
from ardea.windows.storm import Count, Duration, WindowedBolt


class Words(RowsSpout):
    timestamps = Timestamps("at", lateness=5)


def executed(rows, **attributes):
    """What a bolt with such windows has emitted: the numbers in each, on all streams, and the run."""

    class Numbers(WindowedBolt):
        outputs = ["numbers"]

        def execute(self, window):
            self.emit([[tup["n"] for tup in window.tuples]])

    bolt = type("Made", (Numbers,), attributes)
    source = type("Source", (Words, RowsSpout.of(["n", "at"], rows)), {}).spec()

    class Made(Topology):
        rows = source
        windows = bolt.spec(inputs=[source])
        kept = Kept.spec(inputs={"windows": Grouping.GLOBAL})

    result = run(Made, config={"topology.executor.batch.rows": 1}, cost={"rows": 0.2})
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    assert len(result.acked["rows"]) == len(rows), "a tuple is held for ever"
    return [numbers for (numbers,) in result.tuples("windows")], result


class Kept(Bolt):
    def process(self, tup):
        pass


STAMPED = [(1, 603.0), (2, 605.0), (3, 607.0), (4, 618.0), (5, 626.0), (6, 636.0)]


def test_a_bolt_by_event_time():
    found, _ = executed(STAMPED, window_length=Duration(20), sliding_interval=Duration(10), timestamp_field="at")
    assert found[:3] == [[1, 2, 3], [1, 2, 3, 4], [4, 5]]
    assert found[3:] == [[5, 6], [6]]


def test_late_tuples_go_where_the_author_says():
    late = Stream(["n", "at"], "behind")
    rows = [(11, -1e305), *STAMPED, (7, 600.0), (8, None), (9, math.inf), (12, 1e305), (10, 640.0)]
    found, result = executed(
        rows,
        window_length=Duration(20),
        sliding_interval=Duration(10),
        timestamp_field="at",
        late_tuple_stream="behind",
        outputs=["numbers", late],
    )
    assert result.tuples("windows", "behind") == [(11, -1e305), (7, 600.0), (8, None), (9, math.inf), (12, 1e305)]
    assert not {7, 8, 9, 11, 12} & {number for numbers in found for number in numbers}


def test_a_tuple_at_the_watermark_is_late_if_its_window_has_passed():
    rows = [(1, 603.0), *[(2, 615.0)] * 9, (3, 610.0), (4, 611.0), (5, 625.0)]
    found, result = executed(
        rows,
        window_length=Duration(10),
        sliding_interval=Duration(10),
        timestamp_field="at",
        late_tuple_stream="behind",
        outputs=["numbers", Stream(["n", "at"], "behind")],
    )
    assert (found, result.tuples("windows", "behind")) == ([[1], [*[2] * 9, 4], [5]], [(3, 610.0)])


def test_a_bolt_by_number_sees_the_rest_at_the_end():
    found, _ = executed([(n, 1.0) for n in range(7)], window_length=Count(3), sliding_interval=Count(3))
    assert found == [[0, 1, 2], [3, 4, 5], [6]]


def test_a_bolt_by_the_clock():
    found, _ = executed([(n, 1.0) for n in range(10)], window_length=Duration(1), sliding_interval=Duration(1))
    assert sorted(number for numbers in found for number in numbers) == [*range(10)]
    assert len(found) > 1


@pytest.mark.parametrize("error", [RuntimeError, FailedException])
@pytest.mark.parametrize(
    "attributes",
    [
        {"window_length": Count(3), "sliding_interval": Count(3)},
        {"window_length": Duration(1), "sliding_interval": Duration(1), "timestamp_field": "at"},
    ],
)
def test_what_execute_raises_loses_no_tuple(attributes, error):
    """Two windows end at one watermark, and the first one raises: all tuples come again, and some may be late then."""
    lives, seen, late = [], set(), Stream(["n", "at"], "behind")

    class Raises(WindowedBolt):
        def initialize(self, config, context):
            lives.append(self)

        def execute(self, window):
            if len(lives) == 1:
                raise error("not now")
            seen.update(tup["n"] for tup in window.tuples)

    stream = {"outputs": [late], "late_tuple_stream": "behind"} if "timestamp_field" in attributes else {}
    rows = [(1, 1.0), (2, 2.0), *((number, 30.0) for number in range(3, 10))]
    source = type("Source", (Words, RowsSpout.of(["n", "at"], rows)), {}).spec()

    class Made(Topology):
        rows = source
        windows = type("Made", (Raises,), attributes | stream).spec(inputs=[source])
        kept = Kept.spec(inputs=[windows["behind"]] if stream else [source])

    result = run(Made, config={"topology.executor.batch.rows": 1}, cost={"rows": 0.2})
    assert (result.state, len(lives), result.failed["rows"]) == ("SUCCEEDED", 2, [])
    came_late = {number for number, _ in result.tuples("windows", "behind")} if stream else set()
    assert seen | came_late == set(range(1, 10))


@pytest.mark.parametrize(
    ("attributes", "config", "message"),
    [
        (
            {"window_length": Duration(20)},
            {"topology.message.timeout.secs": 10},
            "longer than topology.message.timeout",
        ),
        ({"window_length": Count(5000)}, {"topology.max.spout.pending": 100}, "more than topology.max.spout.pending"),
        (
            {"window_length": Count(5)},
            {"topology.reliability.mode": "EFFECTIVELY_ONCE"},
            "it keeps tuples, which are no state",
        ),
        ({}, {}, "says no window_length"),
        ({"window_length": Count(5), "timestamp_field": "when"}, {}, "by the field 'when'"),
    ],
)
def test_what_no_topology_can_keep_is_refused_when_it_is_built(attributes, config, message):
    class Made(Topology):
        rows = type("Source", (Words, RowsSpout.of(["n", "at"], [])), {}).spec()
        windows = type("Made", (WindowedBolt,), attributes).spec(inputs=[rows])

    with pytest.raises(TopologyError, match=message):
        Made.plan(config)

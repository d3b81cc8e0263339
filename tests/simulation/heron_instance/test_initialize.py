"""What ``initialize`` makes of a component counts from then on."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from ardea import Bolt, FailedException, TaskHook, Topology
from ardea.testing import Cluster, RowsSpout, run

ROWS = [[n] for n in range(20)]


class Fails(Bolt):
    def process(self, tup):
        raise FailedException


@pytest.mark.parametrize("hooks", [(), (TaskHook,)])
@pytest.mark.parametrize("way", ["process", "process_batch"])
@pytest.mark.parametrize("anchor", [True, False])
def test_a_bolt_says_there_whether_it_anchors(anchor, way, hooks):
    """Both ways, whatever its class says: what it emits fails where it goes to."""

    class Passes(Bolt):
        outputs = ["n"]
        auto_anchor = not anchor

        def initialize(self, config, context):
            self.auto_anchor = anchor
            for hook in hooks:
                context.add_task_hook(hook())

        def each(self, tup):
            self.emit([tup[0]])

        def all(self, rows):
            for tup in rows:
                self.emit([tup[0]])

    setattr(Passes, way, Passes.each if way == "process" else Passes.all)

    class Watched(Topology):
        rows = RowsSpout.of(["n"], ROWS).spec()
        passes = Passes.spec(inputs=[rows])
        fails = Fails.spec(inputs=[passes])

    with Cluster(Watched) as cluster:
        cluster.advance(3)
        assert sorted(cluster.record.acked["rows"]) == ([] if anchor else list(range(20)))
        assert bool(cluster.record.failed["rows"]) == anchor


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
def test_hooks_are_added_before_it_is_over(mode):
    class Late(RowsSpout.of(["n"], ROWS)):
        def activate(self):
            self.context.add_task_hook(TaskHook())

        def initialize(self, config, context):
            super().initialize(config, context)
            self.context = context
            context.add_task_hook(TaskHook())

    class Hooked(Topology):
        config = MappingProxyType({"topology.reliability.mode": mode})
        rows = Late.spec()
        fails = Fails.spec(inputs=[rows])

    result = run(Hooked)
    assert result.state == "FAILED"
    assert "add_task_hook() was called too late: the component runs" in result.reason

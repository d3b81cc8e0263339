"""Which rows a bolt ahead of windows puts together: those that are on time for their reader, too."""

from __future__ import annotations

from ardea.protocol.wire_pb2 import WATERMARK, Header
from tests.unit.heron_instance.bench import Bench
from tests.unit.windows.test_late_columns import Ahead


def rows_of(bench):
    """(Stamp, whether it stands for several) of each row that two rows become."""
    bench.output.messages.clear()
    bench.arrives([("a", 5.0), ("a", 6.0)])
    bench.turn()
    bench.executor.runner.emitted.send()
    return [(at, part is not None) for _, at, part in bench.left()]


def test_none_without_a_watermark_as_its_readers_may_have_one():
    """A task has none in a new life, nor where an update has added it."""
    bench = Bench(Ahead, "parts", "times")
    assert rows_of(bench) == [(5.0, False), (6.0, False)]
    bench.executor.handle((Header(kind=WATERMARK, source=bench.spout, watermark=4.0), []))
    assert rows_of(bench) == [(6.0, True)]
    bench.executor.handle((Header(kind=WATERMARK, source=bench.spout, watermark=5.5), []))
    assert rows_of(bench) == [(5.0, False), (6.0, False)]

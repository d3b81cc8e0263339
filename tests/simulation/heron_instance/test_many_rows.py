"""``emit_many`` is a loop of emits: the same messages leave, whatever is emitted, how and to whom.

Only where an iterator emits itself may messages end elsewhere.
"""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ardea.protocol.wire_pb2 import INIT, ROWS
from tests.sizes import share

from .many_steps import (
    GROUPINGS,
    BatchScript,
    BoltScript,
    ColumnScript,
    Holds,
    Log,
    SpoutScript,
    bench,
    of,
    outcome,
)

WORDS = "abc"
WRONG: list[Any] = [(1,), (1, "a", 2), ({1}, "a"), "ab", 5, ["x", {2}], ({1}, {2})]

good = st.tuples(st.integers(0, 9), st.sampled_from(WORDS)).flatmap(lambda row: st.sampled_from([row, list(row)]))
STEP = {
    "kind": st.sampled_from(["list", "tuple", "generator", "generator", "zip", "items"]),
    "stream": st.sampled_from(["default", "default", "other", "direct", "unknown"]),
    "rows": st.lists(good, max_size=12),
    "event": st.sampled_from(["raises", "emits", "long", ""]),
    "at": st.integers(0, 8),
    "anchors": st.sampled_from(["none", "none", "empty", "first", "last", "all"]),
    "ids": st.sampled_from(["none", "list", "range", "count", "generator"]),
    "direct": st.sampled_from([True, False, None]),
    "needs": st.booleans(),
}


@st.composite
def a_step(draw):
    step = draw(st.fixed_dictionaries(STEP))
    if step["kind"] not in ("zip", "items") and draw(st.integers(0, 3)) == 0:
        step["rows"].insert(draw(st.integers(0, len(step["rows"]))), draw(st.sampled_from(WRONG)))
    return step


SOME = [(n, WORDS[n % 3]) for n in range(8)]


@settings(max_examples=share(100), deadline=None)
@example(
    script=BoltScript,
    steps=[of(rows=SOME, needs=True)] * 2,
    groupings=["shuffle"] * 3,
    single=True,
    hooked=False,
    rows=2,
    ackers=1,
)
@example(
    script=BoltScript,
    steps=[of(rows=[(1,)]), of(rows=[]), of(rows=[(1,)])],
    groupings=["all"] * 3,
    single=True,
    hooked=False,
    rows=1,
    ackers=0,
)
@example(
    script=BoltScript,
    steps=[of(kind="tuple", rows=SOME[:1], needs=True), of(kind="generator", rows=SOME, event="long", at=1)],
    groupings=["shuffle"] * 3,
    single=True,
    hooked=False,
    rows=1000,
    ackers=1,
)
@example(
    script=Holds,
    steps=[of(rows=SOME, anchors="all")],
    groupings=["all"] * 3,
    single=False,
    hooked=False,
    rows=2,
    ackers=1,
)
@example(
    script=SpoutScript,
    steps=[of(rows=SOME, ids="range")],
    groupings=["all"] * 3,
    single=True,
    hooked=False,
    rows=2,
    ackers=1,
)
@given(
    script=st.sampled_from([BoltScript, BoltScript, Holds, BatchScript, ColumnScript, SpoutScript, SpoutScript]),
    steps=st.lists(a_step(), min_size=1, max_size=5),
    groupings=st.tuples(*[st.sampled_from(sorted(GROUPINGS))] * 3),
    single=st.booleans(),
    hooked=st.sampled_from([False, False, False, True]),
    rows=st.sampled_from([1, 2, 1000]),
    ackers=st.integers(0, 1),
)
def test_the_same_leaves_as_of_a_loop(script, steps, groupings, single, hooked, rows, ackers):
    if any(step["event"] == "emits" for step in steps):
        rows = 1000
    if any(step["needs"] and any(row in WRONG for row in step["rows"]) for step in steps):
        groupings = ["fields"] * 3  # others go on from the task that a wrong row would have been for
    config = {"topology.executor.batch.rows": rows, "topology.acker.executors": ackers}
    exact = not any(step["needs"] for step in steps)
    options = {"exact": exact, "single": single, "hooked": hooked, **config}
    with Log() as log:
        loop, many = (outcome(script, steps, groupings, log, many=many, **options) for many in (False, True))
    assert many == loop


@given(
    script=st.sampled_from([BoltScript, Holds, BatchScript, SpoutScript]),
    places=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=5),
    rows=st.integers(1, 3),
)
@settings(max_examples=share(30), deadline=None)
def test_an_iterator_that_emits_itself_moves_the_ends_of_messages_only(script, places, rows):
    steps = [of(kind="generator", rows=[(n, "a") for n in range(12)][:count], event="emits", at=at)
             for count, at in places]  # fmt: skip
    config = {"topology.executor.batch.rows": rows, "topology.acker.executors": 1}
    loop, many = (left_in(bench(script, steps, ["global"] * 3, many=m, single=True, **config)) for m in (False, True))
    assert [row for rows in many for row in rows] == [row for rows in loop for row in rows]
    assert max(map(len, many), default=0) <= 8 * rows


def left_in(made):
    """The rows of each message to the first of the tasks, in order."""
    if made.spout is not None:
        made.arrives([(1,), (2,)])
    for _ in range(3):
        made.turn()
        made.now += 1.0
    sent = [m for m in made.output.messages if m.header.kind in (ROWS, INIT)]
    return [made.codec.decode(m.frames[0]) for m in sent if m.header.target == sent[0].header.target and m.frames[0]]

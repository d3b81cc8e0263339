"""What snapshots hold of time, as the version has written it that began with it: each later one goes on from there."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from ardea import Bolt, Grouping, KeyedState, ListState, Spout, Timers, Timestamps, Topology
from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.states import States
from ardea.heron_instance.watermarks import BoltTime, SpoutTime
from ardea.metrics import Identity, Registry
from ardea.snapshots.key_groups import Keys

FIXTURES = Path(__file__).parents[1] / "snapshots" / "fixtures" / "format-2"
SPOUT, BOLT, NEITHER = (FIXTURES / f"{name}-with-time.base" for name in ("spout", "bolt", "new"))


class Rows(Spout):
    outputs = ("key", "at")
    timestamps = Timestamps("at", lateness=2.0, idle_after=60.0)
    positions = ListState(share="all")
    _has_partitions = True

    def next_tuple(self):
        pass


class Plain(Rows):
    """It reads the files of all tasks."""

    _has_partitions = False


class Recent(Bolt):
    rows = KeyedState(ttl="1 h", time="event")
    timers = Timers(time="event")

    def process(self, tup):
        pass

    def on_timer(self, name, key, at):
        pass


class Timed(Topology):
    rows = Rows.spec()
    recent = Recent.spec(inputs={rows: Grouping.fields("key")})


def task(component, index=0, tasks=1):
    """States and time of a task of that class, without a file."""
    plan = Timed.plan({})
    name, number = ("rows", 1) if isinstance(component, Rows) else ("recent", 2)
    places = {1: SimpleNamespace(component="rows"), 2: SimpleNamespace(component="recent")}
    registry = Registry(Identity("timed", 1, f"{name}-0", name, number, 1))
    env = SimpleNamespace(
        context=SimpleNamespace(now=lambda: 1_795_838_400.0),
        instruments=Instruments(registry),
        clock=lambda: 0.0,
        plan=SimpleNamespace(logical=plan, tasks=places, upstream=lambda name: [1] if name == "recent" else []),
        task=SimpleNamespace(component=name, task=number),
        component=component,
    )
    states = States(component, Keys(name, index, tasks, 720, 1))
    states.time = SpoutTime(env, component) if isinstance(component, Rows) else BoltTime(env)
    return states


def restored(component, file):
    states = task(component)
    states.load(file.read_bytes(), file.name)
    states.loaded(1)
    return states


def test_a_spout_goes_on_with_the_watermark_that_it_told_and_the_newest_stamp_of_each_partition():
    spout = Rows()
    source = restored(spout, SPOUT).time.source
    assert spout.positions == [["t[0]", 5], ["t[1]", 3]]
    assert (spout.watermark, source.told, source.watermark) == (998.5, 998.5, 998.5)
    source.waited(1000.0)
    assert not source.idle, "which partitions it has is not known yet"
    source.add("t[1]")
    source.add("t[0]")
    source.known()
    assert source.watermark == 1003.0, "the slower partition was there"
    source.emits("t[0]", [1020.0])
    assert source.watermark == 1010.25


def test_a_bolt_goes_on_with_its_watermark_and_what_goes_by_it():
    bolt = Recent()
    states = restored(bolt, BOLT)
    assert (bolt.watermark, states.time.watermark) == (1003.0, 1003.0)
    assert (set(bolt.rows), bolt.rows["bob"]) == ({"ann", "bob"}, 2)
    assert (states.timers.next, bolt.timers.get("ann", "end")) == (1060.0, 1060.0)
    bolt.watermark = 1003.0 + 3600.0
    for _ in range(2):
        states.freeze()
        states.stored()
        while not states.settle():
            pass
    assert set(bolt.rows) == set()


@pytest.mark.parametrize("component", [Rows, Recent])
def test_before_the_first_watermark_there_is_none(component):
    made = component()
    states = restored(made, NEITHER)
    assert made.watermark is None
    assert states.time.watermark == -math.inf


@pytest.mark.parametrize(("after", "watermarks"), [(2, [1000.0, 100.0]), (1, [100.0]), (3, [100.0, 100.0, 100.0])])
def test_a_spout_without_partitions_goes_on_from_its_own_rows_or_from_the_slowest_task(after, watermarks):
    """Each task reads the files of all."""
    files, found = [], []
    for index, stamp in enumerate([1002.0, 102.0]):
        states = task(Plain(), index, 2)
        states.time.source.emits("", [stamp])
        states.freeze()
        files.append(b"".join(states.pieces(full=True)))
    for index in range(after):
        states = task(Plain(), index, after)
        for former, content in enumerate(files):
            states.load(content, "f", former, own=former == index)
        states.loaded(2)
        found.append(states.time.source.watermark)
    assert found == watermarks

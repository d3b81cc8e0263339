"""The workloads as user code sees them, on a clock of the test's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.heron_instance.states import States
from benchmarks.topologies import (
    FOLDER,
    LIST,
    PACED_BURST,
    RATE,
    WARMUP,
    Count,
    Line,
    Paced,
    Split,
    SplitAtOnce,
    build,
    word_list,
)


class Collector:
    """Keeps what was emitted."""

    def __init__(self):
        self.emitted: list[tuple] = []

    def emit(self, values, *rest):
        self.emitted.append((values, *rest))

    def emit_many(self, rows, *rest, **options):
        self.emitted += [(values, *rest) for values in rows]


class Context(SimpleNamespace):
    def component_tasks(self, _component):
        return self.tasks


def started(cls, folder: Path, *, tasks: tuple[int, ...] = (1,), rate: float = 100.0, warmup: float = 0.0):
    component = cls()
    component._collector = Collector()
    States(component)
    context = Context(this_component_id="words", this_task_id=1, tasks=tasks)
    component.initialize({FOLDER: str(folder), RATE: rate, WARMUP: warmup}, context)
    return component


def set_time(spout: Paced, seconds: float) -> None:
    spout.clock = lambda: spout.began + seconds


def lines_of(folder: Path) -> list[Line]:
    return [msgspec.json.decode(line, type=Line) for line in (folder / "words-1.jsonl").read_bytes().splitlines()]


def test_the_words_are_the_same_in_every_process():
    words = word_list()
    assert words == word_list()
    assert len(words) == LIST
    assert {len(word) for word in words} == {6}


@pytest.fixture
def paced(tmp_path):
    spouts = []

    def make(**options):
        spouts.append(started(Paced, tmp_path, **options))
        return spouts[-1]

    yield make
    for spout in spouts:
        spout.close()


@given(steps=st.lists(st.floats(0.0, 2.0), max_size=20), rate=st.floats(0.0, 300.0))
def test_a_paced_spout_emits_exactly_what_is_due(tmp_path_factory, steps, rate):
    spout = started(Paced, tmp_path_factory.mktemp("paced"), rate=rate)
    try:
        passed = 0.0
        for step in steps:
            passed += step
            set_time(spout, passed)
            due = int((spout.clock() - spout.began) * rate)
            spout.next_tuple()
            assert len(spout._collector.emitted) == due
    finally:
        spout.close()


def test_several_tasks_share_the_rate(paced):
    spout = paced(rate=100.0, tasks=(1, 2, 3, 4))
    set_time(spout, 2.0)
    spout.next_tuple()
    assert len(spout._collector.emitted) == 50


def test_a_late_spout_catches_up_in_bursts(paced):
    spout = paced(rate=PACED_BURST)
    set_time(spout, 2.5)
    emitted = []
    for _ in range(4):
        spout.next_tuple()
        emitted.append(len(spout._collector.emitted))
    assert emitted == [PACED_BURST, 2 * PACED_BURST, 2.5 * PACED_BURST, 2.5 * PACED_BURST]


def test_latencies_are_counted_from_the_emit_once_warm(tmp_path):
    spout = started(Paced, tmp_path, warmup=1.0)
    set_time(spout, 3.0025)
    for emitted_at in (0.999, 1.0, 3.0, 3.0):
        spout.ack(spout.began + emitted_at)
    spout.close()
    last = lines_of(tmp_path)[-1]
    assert (last.over, last.tuples) == (True, 4)
    assert sum(last.latencies.values()) == 3
    assert max(last.latencies.values()) == 2


def test_a_counting_bolt_writes_what_it_counted(tmp_path):
    bolt = started(Count, tmp_path)
    for word in ("a", "b", "a"):
        bolt.process(SimpleNamespace(values=(word,)))
    bolt.close()
    assert bolt.counts == {"a": 2, "b": 1}
    assert [(line.tuples, line.over) for line in lines_of(tmp_path)] == [(3, True)]


@pytest.mark.parametrize("kind", [Split, SplitAtOnce])
def test_a_sentence_is_split_into_its_words(kind):
    bolt = kind()
    bolt._collector = Collector()
    bolt.process(SimpleNamespace(values=("one two",)))
    assert [values for values, *_ in bolt._collector.emitted] == [("one",), ("two",)]


def test_batch_and_pending_are_in_words_whatever_a_tuple_holds():
    """As the sketch that ``--baseline`` runs has it: a sentence is ten words, its words are counted one by one."""
    words = build("words", 1, 2, 1000, 20_000, {}).plan()
    sentences = build("sentences", 1, 2, 1000, 20_000, {}).plan()
    keys = ("topology.executor.batch.rows", "topology.max.spout.pending")
    assert [words.config[key] for key in keys] == [1000, 20_000]
    assert [sentences.config[key] for key in keys] == [100, 2000]
    assert sentences["count"].config["topology.executor.batch.rows"] == 1000


@pytest.mark.parametrize(
    ("workload", "components"),
    [
        ("words", {"words": 2, "count": 6}),
        ("paced", {"words": 2, "count": 6}),
        ("sentences", {"sentences": 2, "split": 2, "count": 6}),
    ],
)
def test_a_workload_has_the_tasks_that_were_asked_for(workload, components):
    plan = build(workload, 2, 6, 1000, 20_000, {}).plan()
    assert {component.name: component.tasks for component in plan} == components

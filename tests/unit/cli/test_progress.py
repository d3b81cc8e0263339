"""The progress line: what it says, and where it goes."""

from __future__ import annotations

import io
from itertools import count, repeat
from types import SimpleNamespace

import pytest
from rich.console import Console

from ardea.cli import debug
from ardea.cli.progress import Display, Rates, Silence, batches, seconds
from ardea.cli.watching import Watch
from ardea.errors import Unreachable
from ardea.metrics import SECONDS, Totals
from ardea.plan.resource import Resource
from ardea.scheduler import capacity
from ardea.scheduler.control import Status, TaskStatus, unfinished, waiting_for
from ardea.scheduler.run import Stage
from ardea.supervision.records import Exit
from tests.unit.cli.terminal import Terminal


def totals(acked: int, pending: int = 0, failed: int = 0) -> Totals:
    return Totals(acked=acked, pending=pending, failed=failed)


def test_rates_are_those_of_the_spouts():
    rates = Rates({"lines"})
    rates.observe(0.0, {"lines": totals(0), "count": totals(10**6)})
    rates.observe(2.0, {"lines": totals(20_000, 7, 3), "count": totals(10**7)})
    assert rates.line(2.0) == "lines 10,000/s · acked 20,000 · failed 3 · pending 7"


def test_tuples_that_timed_out_are_told_among_those_that_failed():
    rates = Rates({"lines"})
    rates.observe(0.0, {"lines": Totals(failed=3, timed_out=1200, lost=1)})
    assert "failed 1,204 (1,200 timed out) · " in rates.line(0.0)


def test_eighty_columns_show_what_failed():
    screen = Terminal()
    display = Display(Console(file=screen, width=80, _environ={"TERM": "xterm"}), "WordCount")
    rates = Rates({"lines"})
    buckets = [1000 if bound == 1.0 else 0 for bound in SECONDS]
    for second in (0, 5):
        lines = Totals(acked=203_411 * second, pending=20_000, failed=1204, complete_latency=(*buckets, 0, 1.0))
        rates.observe(float(second), {"lines": lines})
    display.show("RUNNING", 3600.0, rates.line(5.0))
    assert "lines 203,411/s · acked 1,017,055 · failed 1,204 · " in screen.getvalue()


def test_the_latency_is_that_of_lately():
    """A hundred took 20 to 50 ms; of the thousand before, which took a second, nothing is left."""
    rates = Rates({"lines"})

    def seen(slow: int, fast: int) -> dict[str, Totals]:
        buckets = [fast if bound == 0.05 else slow if bound == 1.0 else 0 for bound in SECONDS]
        return {"lines": Totals(acked=slow + fast, complete_latency=(*buckets, 0, 1.0))}

    rates.observe(0.0, seen(1000, 0))
    rates.observe(2.0, seen(1000, 100))
    assert "p50 35 ms p99 50 ms" in rates.line(2.0)


def test_jobs_that_run_elsewhere_are_behind_it():
    rates = Rates({"lines"})
    idle = {"lines": totals(0), "lines_driver": Totals()}
    rates.observe(0.0, idle)
    assert rates.line(0.0).endswith("pending 0")
    rates.observe(0.1, {**idle, "lines_driver": Totals(job_tasks=1200, job_tasks_done=34)})
    assert rates.line(0.1).endswith("pending 0 · lines_driver 34/1,200 tasks")


def test_who_works_in_batches_says_which_was_the_last():
    of_stream = Totals(batch=1234.0, batches_open=2.0)
    assert batches({"lines": Totals(), "lines_driver": of_stream, "$mastercoord-g": Totals(batch=0.0)}) == [
        "$mastercoord-g batch 0 committed",
        "lines_driver 1,234 micro-batches, 2 not acked",
    ]
    committed = Totals(batch=17.0, batch_latency_ms=120.0)
    assert batches({"$mastercoord-g": committed}) == ["$mastercoord-g batch 17 committed, 120 ms each"]


def test_rates_forget_what_is_long_ago():
    rates = Rates({"lines"})
    for second in range(20):
        rates.observe(float(second), {"lines": totals(second * 1000 if second < 10 else 10_000 + second)})
    assert rates.line(19.0).startswith("lines 1/s")


def test_a_rate_falls_while_there_is_no_news():
    rates = Rates({"lines"})
    rates.observe(0.0, {"lines": totals(0)})
    rates.observe(1.0, {"lines": totals(1000)})
    rates.observe(4.0, {"lines": totals(1000)})
    assert rates.line(10.0).startswith("lines 100/s")


def test_a_new_master_that_hears_of_the_tasks_by_and_by_has_no_part_in_a_rate():
    """No rate is negative, and no total counts as what happened lately."""
    rates = Rates({"lines", "words"})
    buckets = [500 if bound == 0.05 else 0 for bound in SECONDS]

    def spout(tasks: int) -> Totals:
        return Totals(tasks=tasks, acked=250_000 * tasks, complete_latency=(*(tasks * n for n in buckets), 0, 1.0))

    both = {"lines": spout(2), "words": spout(1)}
    for second, told in enumerate((both, {}, {"lines": spout(1)}, {"lines": spout(2)}, both)):
        rates.observe(float(second), told)
        assert rates.line(float(second)).startswith("lines 0/s · words 0/s · acked ")
    rates.observe(6.0, {**both, "lines": Totals(tasks=2, acked=500_010)})
    assert rates.line(6.0).startswith("lines 5/s · words 0/s · acked 750,010")


def test_without_news_there_is_no_line():
    assert Rates({"lines"}).line(1.0) == ""


@pytest.mark.parametrize(
    ("value", "text"), [(8.5e-7, "0.8 µs"), (0.00085, "850 µs"), (0.0031, "3.1 ms"), (0.0312, "31 ms"), (2.0, "2.0 s")]
)
def test_seconds_as_people_read_them(value, text):
    assert seconds(value) == text


def test_a_terminal_gets_one_line_that_is_cleared():
    screen = Terminal()
    display = Display(Console(file=screen, width=30, _environ={"TERM": "xterm"}), "WordCount")
    display.show("RUNNING", 1.0, "x" * 100)
    display.clear()
    assert "\n" not in screen.getvalue()
    assert "…" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[2K")


@pytest.mark.parametrize("environ", [{}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "1"}])
def test_without_a_terminal_there_is_a_line_each_ten_seconds(environ):
    """In CI colours are wanted all the same."""
    screen = io.StringIO()
    display = Display(Console(file=screen, width=80, _environ=environ), "WordCount")
    for tenth in range(250):
        display.show("RUNNING", tenth / 10, "acked 3")
    assert screen.getvalue() == "WordCount RUNNING 10 s acked 3\nWordCount RUNNING 20 s acked 3\n"


def test_what_a_topology_waits_for():
    status = Status("w-1", "RUNNING", "", 1, 1, [2], ["a-0"], 0, [], None, {}, {}, [])
    assert waiting_for(None) == "waiting for the topology master"
    assert waiting_for(status) == "waiting for container 2"
    several = Status("w-1", "RUNNING", "", 1, 1, [], ["a-0", "b-0", "c-0", "d-0", "e-0"], 0, [], None, {}, {}, [])
    assert waiting_for(several) == "waiting for a-0, b-0, c-0, d-0 ..."
    assert waiting_for(Status("w-1", "RUNNING", "", 1, 1, [], [], 0, [], None, {}, {}, [])) == ""


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ({}, ""),
        ({"a-0": "RESTING"}, ""),
        ({"a-0": "REOPENED", "b-0": "ACTIVE"}, "a-0 waits for finish() again"),
        (dict.fromkeys(("a-0", "a-1"), "REOPENED"), "a-0, a-1 wait for finish() again"),
    ],
)
def test_spouts_that_keep_a_topology_from_its_end(states, said):
    tasks = {name: TaskStatus(state, 1, 0, Resource(1.0, 1)) for name, state in states.items()}
    assert unfinished(Status("w-1", "RUNNING", "", 1, 1, [], [], 0, [], None, tasks, {}, [])) == said
    assert unfinished(None) == ""


@pytest.mark.parametrize(("state", "came_up"), [("RUNNING", True), ("SUCCEEDED", True), ("FAILED", False)])
def test_a_task_that_reports_why_it_cannot_go_on_has_not_come_up(state, came_up):
    """A submit would say that it runs."""
    assert Status("w-1", state, "", 1, 1, [], [], 0, [], None, {}, {}, []).complete is came_up


@pytest.fixture
def watched(tmp_path) -> SimpleNamespace:
    """A run of the topology ``Sum``."""
    plan = SimpleNamespace(name="Sum", spouts=[SimpleNamespace(name="words")], config={})
    submission = SimpleNamespace(plan=plan, packing=SimpleNamespace(instances=[]))
    return SimpleNamespace(
        submission=submission,
        status=None,
        seconds=20.0,
        stage=Stage.RUNNING,
        folder=tmp_path,
        topology="Sum-1",
        ends={},
    )


def test_each_kind_of_death_is_told_once(watched, capsys):
    """But not of who is told to stop, be it because another one cannot go on."""
    watch = Watch(watched, [], Console(file=io.StringIO(), width=300))
    for pid in (7, 8, 9):
        reason = f"exit 75 (count-0: ValueError: no at words.py:3 (pid {pid}))"
        watched.ends.setdefault("count-0", []).append(Exit("count-0", 1, pid, 75, None, reason, float(pid)))
        watch.stepped()
    watched.ends["words-0"] = [Exit("words-0", 1, 1, None, "SIGKILL", "killed by SIGKILL", 10.0)]
    watch.stepped()
    watched.ends["add-0"] = [Exit("add-0", 1, 1, 78, None, "exit 78 (add-0: no url)", 11.0, again=False)]
    watched.ends["add-1"] = [Exit("add-1", 1, 1, 75, None, "exit 75", 11.0, again=False)]
    watch.stepped()
    watched.stage = Stage.TERMINATED
    watched.ends["words-1"] = [Exit("words-1", 1, 1, 75, None, "exit 75", 11.0)]
    watch.stepped()
    assert capsys.readouterr().err.splitlines() == [
        "warning: count-0 died: ValueError: no at words.py:3 (pid 7); it is started again",
        "warning: words-0 died: killed by SIGKILL; it is started again",
    ]


def test_a_full_disk_is_said_in_place_of_the_rates(watched, monkeypatch):
    out = io.StringIO()
    watch = Watch(watched, [], Console(file=out, width=300))
    monkeypatch.setattr(capacity, "no_room", lambda folder: f"the disk of {folder} is full")
    watch.stepped()
    assert f"the disk of {watched.folder} is full" in out.getvalue()


@pytest.mark.parametrize("component", ["metrics", "stream", "topology", "container"])
def test_logs_of_a_component_are_those_of_its_tasks(watched, capsys, component):
    """And not of a manager or a container's supervisor whose name begins as the component's does."""
    tasks = {f"{component}-0", f"{component}-12"}
    of_container = ("metrics-manager", "stream-manager", "topology-master", *tasks)
    for name in ("logs/container-1", *(f"container-1/logs/{name}" for name in of_container)):
        path = watched.folder / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.stem}\n")
    Watch(watched, [component], Console(file=io.StringIO())).stepped()
    assert {*capsys.readouterr().out.split()} == tasks


@pytest.mark.parametrize(("acked", "times"), [(0, 1), (1, 0)])
def test_time_outs_without_any_ack_are_explained_once(watched, capsys, acked, times):
    watched.submission.plan.config = {"topology.message.timeout.secs": 5}
    watch = Watch(watched, [], Console(file=io.StringIO()))
    for number in range(3):
        words = Totals(acked=acked, timed_out=10 * number)
        watched.status = Status("w-1", "RUNNING", "", 1, 1, [], [], 0, [], None, {}, {"words": words}, [])
        watch.stepped()
    said = capsys.readouterr().err
    assert said.count("warning: 10 tuples of words timed out after 5 s: nobody acked or failed them.") == times
    assert said.count("timed out") == times


def says(watch, *, state="RUNNING", task="ACTIVE", executed=0, **words):
    """At a moment at which the spout has done that, and a bolt has processed so many rows."""
    components = {"words": Totals(**words), "add": Totals(executed=executed)}
    tasks = {"words-0": TaskStatus(task, 1, 0, Resource())}
    watch.run.status = Status("w-1", state, "", 1, 1, [], [], 0, [], None, tasks, components, [])
    watch.stepped()


@pytest.mark.parametrize(
    ("config", "words", "times"),
    [
        ({}, {"emitted": 10}, 1),
        ({}, {"emitted": 10, "acked": 1}, 0),
        ({}, {"emitted": 10, "pending": 1}, 0),
        ({}, {"emitted": 10, "timed_out": 1}, 0),
        ({}, {}, 0),
        ({"topology.reliability.mode": "ATMOST_ONCE"}, {"emitted": 10}, 0),
    ],
)
def test_rows_that_are_not_tracked_are_told_of_once(watched, capsys, config, words, times):
    watched.submission.plan.config, watched.seconds = config, 4.0
    watch = Watch(watched, [], Console(file=io.StringIO()))
    says(watch, **words)
    assert "note" not in capsys.readouterr().err, "too soon to say"
    watched.seconds = 6.0
    for _ in range(2):
        says(watch, **words)
    assert capsys.readouterr().err.count("note: words emits without tup_id: its rows are not tracked") == times


def test_a_spout_that_has_nothing_more_and_does_not_say_so(watched, capsys):
    watch = Watch(watched, [], Console(file=io.StringIO()))
    told = []
    for second, emitted in ((20.0, 0), (60.0, 0), (61.0, 5), (90.9, 5), (91.0, 5), (200.0, 5), (300.0, 6), (400.0, 6)):
        watched.seconds = second
        says(watch, emitted=emitted, acked=1)
        if "no spout has emitted anything for 30 s, and none has called finish()" in capsys.readouterr().err:
            told.append(second)
    assert told == [91.0]


@pytest.mark.parametrize(
    ("busy", "idle"),
    [
        ({"pending": 1}, {"pending": 0}),
        ({"state": "PAUSED"}, {"state": "RUNNING"}),
        ({"task": "DONE"}, {}),
    ],
)
def test_a_spout_whose_rows_are_still_worked_off_is_not_told_to_finish(watched, capsys, busy, idle):
    watch = Watch(watched, [], Console(file=io.StringIO()))
    for second in range(0, 100, 10):
        watched.seconds = float(second)
        says(watch, emitted=5, **busy)
    assert capsys.readouterr().err.count("none has called finish()") == 0
    for second in range(100, 140, 10):
        watched.seconds = float(second)
        says(watch, emitted=5, **idle)
    assert capsys.readouterr().err.count("none has called finish()") == 1


@pytest.mark.parametrize("what", ["acked", "executed"])
def test_rows_that_are_processed_are_no_silence(watched, capsys, what):
    watch = Watch(watched, [], Console(file=io.StringIO()))
    for second in range(0, 100, 10):
        watched.seconds = float(second)
        says(watch, emitted=5, **{what: second})
    assert "none has called finish()" not in capsys.readouterr().err


def test_silence_is_told_once_after_five_seconds(capsys):
    silence = Silence("words", 100.0)
    for now in (104.9, 105.0, 200.0):
        silence.look(now, heard=False)
        assert ("words has emitted nothing for 5 s" in capsys.readouterr().err) == (now == 105.0)


def test_who_has_emitted_is_not_called_silent(capsys):
    silence = Silence("words", 100.0)
    silence.look(104.9, heard=True)
    silence.look(200.0, heard=False)
    assert capsys.readouterr().err == ""


def test_debug_tells_of_silence(monkeypatch, capsys):
    def ask(*_: object, **__: object) -> None:
        if next(asked) == 3:
            raise Unreachable("it is over")

    asked, seconds = count(), count()
    found, control = SimpleNamespace(runs=lambda: False), SimpleNamespace(ask=ask)
    monkeypatch.setattr(debug, "time", SimpleNamespace(monotonic=lambda: next(seconds) / 2))
    assert list(debug._emitted(found, control, "words", repeat(None))) == []
    assert capsys.readouterr().err.count("words has emitted nothing for 5 s") == 1

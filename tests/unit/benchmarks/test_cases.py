"""What each workload of the command runs, how the baseline is called and read, what is printed."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from benchmarks import cases
from benchmarks.baseline import check_comparable, command_of, parse_rate, rounds_against
from benchmarks.report import Report, print_json, print_tables, title
from benchmarks.results import BenchmarkError, Case, Result, Use

CASE = Case(workload="words", pending=20_000, batch=1000, drain_ms=10.0, seconds=5.0)


def result(case: Case, rate: float = 1000.0, cores: float = 0.5) -> Result:
    return Result(
        case=case,
        words_per_second=rate,
        p50_ms=1.0,
        p99_ms=None,
        latency_from="histogram",
        cpu_per_million=2.0,
        idle_cores=None,
        net_cpu_per_million=None,
        cores_busy=cores,
        other_cores=0.0,
        acked_words=5,
        counted_words=5,
        use={"count": Use(1, 50.0, 51.0, 52.0, 10.0, 20.0)},
    )


def test_all_holds_every_case_that_the_documentation_promises():
    every = list(cases.every(CASE))
    assert len(set(map(title, every))) == len(every)
    for workload in ("words", "sentences"):
        for mode in ("atleast", "atmost"):
            for counters in (1, 2):
                assert replace(CASE, workload=workload, mode=mode, counters=counters) in every
    assert {case.containers for case in every if (case.spouts, case.counters) == (2, 6)} == {1, 2, 4, 8}
    assert {case.spouts for case in every if case.spouts == case.containers} == {1, 2, 4}
    assert {case.rate for case in every if case.workload == "paced"} == {0.0, 100.0, 10_000.0}


def test_the_offered_load_goes_through_the_same_topology_over_2_and_over_8_containers():
    over_2, over_8 = cases.offered(CASE)
    assert (over_2.rate, over_2.spouts, over_2.counters, over_2.containers) == (100_000.0, 2, 6, 2)
    assert over_8 == replace(over_2, containers=8)


def test_a_case_is_compared_with_the_same_topology_doing_nothing():
    ran = []

    def run(case: Case, idle_cores: float | None) -> Result:
        ran.append((case, idle_cores))
        return result(case, cores=0.25)

    held = cases.paced(CASE, 500.0)
    assert [each.case for each in cases.beyond_idle(held, run)] == [replace(held, rate=0.0), held]
    assert ran == [(replace(held, rate=0.0), None), (held, 0.25)]


def test_the_sweep_turns_one_knob_at_a_time_and_marks_each_default_once():
    ran = []

    def run(case: Case) -> Result:
        ran.append(case)
        return result(case)

    rows = cases.sweep(CASE, run)
    assert [row.value for row in rows if row.default] == [20_000, 10.0]
    assert all(case.pending == CASE.pending or case.drain_ms == CASE.drain_ms for case in ran)
    assert {case.pending for case in ran} == {10, 100, 1000, 10_000, 20_000, 100_000}
    assert (min(case.drain_ms for case in ran), max(case.drain_ms for case in ran)) == (1.0, 100.0)
    assert all((case.workload, case.rate) == ("words", None) for case in ran)


def test_the_baseline_gets_the_same_window_batch_and_pending():
    command = command_of(Path("sketch.py"), replace(CASE, workload="sentences", counters=2))
    assert command == [
        sys.executable, "sketch.py", "sentences",
        "--seconds", "5", "--batch", "1000", "--pending", "20000", "--bolts", "2",
    ]  # fmt: skip
    assert command_of(Path("sketch.py"), replace(CASE, mode="atmost"))[-1] == "--no-ack"


@pytest.mark.parametrize(
    ("output", "rate"),
    [
        ("2,345,678 words/s acked\n", 2_345_678),
        ("starting\n1,000 words/s counted\n500 words/s counted\n", 1500),
    ],
)
def test_the_baselines_rate_is_what_it_printed(output, rate):
    assert parse_rate(output) == rate


@pytest.mark.parametrize("output", ["", "0 words/s acked", "Traceback: boom"])
def test_a_baseline_without_a_rate_fails_the_run(output):
    with pytest.raises(BenchmarkError, match="printed no"):
        parse_rate(output)


@pytest.mark.parametrize("change", [{"rate": 10.0}, {"workload": "paced"}, {"spouts": 2}, {"containers": 2}])
def test_what_the_baseline_cannot_run_is_refused(change):
    with pytest.raises(BenchmarkError, match="--baseline goes with"):
        check_comparable(replace(CASE, **change))


def test_rounds_alternate_with_the_baseline(tmp_path):
    order = tmp_path / "order"
    order.touch()
    sketch = tmp_path / "sketch.py"
    sketch.write_text(f"open({str(order)!r}, 'a').write('b')\nprint('2,000 words/s acked')\n")

    def run(case: Case) -> Result:
        order.write_text(order.read_text() + "o")
        return result(case, rate=1500.0)

    comparison, results = rounds_against(sketch, CASE, 2, run)
    assert order.read_text() == "obob"
    assert [each.ratio for each in comparison.rounds] == [0.75, 0.75]
    assert len(results) == 2


def test_a_baseline_that_fails_is_named_with_its_last_words(tmp_path):
    sketch = tmp_path / "sketch.py"
    sketch.write_text("import sys\nsys.exit('no pyzmq')\n")
    with pytest.raises(BenchmarkError, match=r"ended with 1: no pyzmq .*sketch\.py"):
        rounds_against(sketch, CASE, 1, result)


@pytest.fixture
def report(tmp_path):
    sketch = tmp_path / "sketch.py"
    sketch.write_text("print('2,000 words/s acked')\n")
    comparison, results = rounds_against(sketch, CASE, 1, result)
    return Report(
        command="make bench ARGS=words",
        machine={"cores": "2"},
        results=results,
        comparisons=[comparison],
        sweep=cases.sweep(CASE, result),
    )


def test_the_tables_hold_what_was_measured(report):
    text = io.StringIO()
    print_tables(report, Console(file=text, width=160))
    printed = text.getvalue()
    for part in ("make bench ARGS=words", "1,000", "52.0", "20,000 (default)", "0.500", "100.0% of the best rate"):
        assert part in printed
    assert "pending 20,000, largest batch 1,000" in printed


def test_the_json_document_decodes_to_the_report(report, capsys):
    print_json(report)
    assert msgspec.json.decode(capsys.readouterr().out, type=Report) == report

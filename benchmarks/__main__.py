"""``python -m benchmarks``: what ``make bench`` runs."""

from __future__ import annotations

import cProfile
import enum
import pstats
import shlex
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer
from rich.console import Console

from benchmarks import cases, kafka, pairs, pressure, recovery, windows
from benchmarks import state as state_cases
from benchmarks.baseline import rounds_against
from benchmarks.measure import run
from benchmarks.report import Report, machine, print_json, print_tables, title
from benchmarks.results import BenchmarkError, Case, Comparison, Result, SweepRow

ResultT = TypeVar("ResultT")

WIDTH = 160  # of tables that go into a file
PROFILED = 30
"""Functions that a profile shows."""


class What(enum.StrEnum):
    WORDS = "words"
    SENTENCES = "sentences"
    IDLE = "idle"
    START = "start"
    SWEEP = "sweep"
    TRIDENT = "trident"
    KAFKA = "kafka"
    COLUMNS = "columns"
    SPARK = "spark"
    PRESSURE = "pressure"
    SLOW_SPOUT = "slow-spout"
    STATE = "state"
    WINDOWS = "windows"
    LARGE_STATE = "large-state"
    STATE_COLUMNS = "state-columns"
    STATE_RECOVERY = "state-recovery"
    SCALE = "scale"
    SCALE_PROCESSES = "scale-processes"
    ALL = "all"


class Mode(enum.StrEnum):
    ATLEAST = "atleast"
    ATMOST = "atmost"
    EFFECTIVELY = "effectively"


class Output(enum.StrEnum):
    TABLE = "table"
    JSON = "json"


def main(
    what: Annotated[What, typer.Argument(help="What to measure; all takes several minutes.")] = What.ALL,
    containers: Annotated[str, typer.Option(metavar="N", help="Of scale and scale-processes several: 8,16,32.")] = "1",
    tasks: Annotated[int, typer.Option(min=2, help="Tasks a container, of scale and scale-processes.")] = 4,
    spouts: Annotated[int, typer.Option(min=1, help="Tasks of the spout.")] = 1,
    counters: Annotated[int, typer.Option(min=1, help="Tasks of the counting bolt.")] = 1,
    seconds: Annotated[float, typer.Option(min=1, help="Length of the measuring window.")] = 5.0,
    warmup: Annotated[float, typer.Option(min=0, help="Seconds before the window.")] = 2.0,
    mode: Annotated[Mode, typer.Option(help="At least, at most or effectively once.")] = Mode.ATLEAST,
    rate: Annotated[float | None, typer.Option(min=1, help="Words a second that the spouts are held to.")] = None,
    pending: Annotated[int, typer.Option(min=10, help="Open words a spout task.")] = cases.PENDING.default,
    batch: Annotated[int, typer.Option(min=10, help="The largest batch, in words.")] = cases.BATCH.default,
    baseline: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="A program to alternate with.")
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="Rounds against the baseline, of start, spark, kafka, pressure, state.")
    ] = 3,
    bulk: Annotated[bool, typer.Option("--bulk", help="Of sentences: split by emit_many.")] = False,
    rows: Annotated[int, typer.Option(min=1, help="Rows of columns and spark.")] = 10_000_000,
    mib: Annotated[int, typer.Option(min=1, help="MiB of state, of state-recovery.")] = 1024,
    state: Annotated[
        str | None, typer.Option(help="State manager of trident, as zookeeper://HOST:PORT/PATH; by default files.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="A commit to alternate with, in --rounds pairs, whatever is measured.")
    ] = None,
    profile: Annotated[bool, typer.Option("--profile", help="Of scale: where managers and master spend it.")] = False,
    output: Annotated[Output, typer.Option("-o", "--output")] = Output.TABLE,
) -> None:
    """Measures the engine on this machine; run nothing else meanwhile.  docs/benchmarks.md explains the numbers."""
    if against is not None:
        _against(against, rounds, output)
        return
    counts = _counts(containers)
    if len(counts) > 1 and what not in (What.SCALE, What.SCALE_PROCESSES):
        raise typer.BadParameter(f"{what} takes one number of containers, not {containers}")
    if what is What.SCALE:
        _scale(counts, tasks, output, profile=profile)
        return
    if what is What.SCALE_PROCESSES:
        _scale_processes(counts, tasks, seconds, output)
        return
    if what is What.COLUMNS:
        _columns(rows, spouts, output)
        return
    if what is What.SPARK:
        _spark(rows, rounds, output)
        return
    if what is What.START:
        _start(counts[0], rounds, output)
        return
    if what is What.SLOW_SPOUT:
        _slow_spout(seconds, output)
        return
    if what is What.LARGE_STATE:
        _print(lambda: state_cases.large(seconds, rounds), state_cases.says_large, output)
        return
    if what is What.STATE_RECOVERY:
        _print(lambda: recovery.rounds(mib, rounds), recovery.says, output)
        return
    if what is What.STATE_COLUMNS:
        _state_columns(rows, spouts, rounds, output)
        return
    case = Case(
        workload="sentences" if what is What.SENTENCES else "words",
        mode=mode.value,
        containers=counts[0],
        spouts=spouts,
        counters=counters,
        rate=rate,
        bulk=bulk,
        pending=pending,
        batch=batch,
        drain_ms=cases.DRAIN.default,
        seconds=seconds,
        warmup=warmup,
    )
    if what is What.WINDOWS:
        _print(lambda: windows.rounds(case, rounds, _run), windows.says, output)
        return
    if what is What.STATE:
        _print(lambda: state_cases.modes(case, rounds, _run), state_cases.says_modes, output)
        return
    if what is What.TRIDENT:
        _trident(case, state, baseline, output)
        return
    try:
        results, comparisons, sweep = _measure(what, case, baseline, rounds)
    except BenchmarkError as error:
        typer.echo(f"benchmark: {error.message}\n{error.hint or ''}", err=True)
        raise typer.Exit(error.exit_code) from None
    report = Report(
        command=f"make bench ARGS={shlex.quote(shlex.join(sys.argv[1:]))}",
        machine=machine(),
        results=results,
        comparisons=comparisons,
        sweep=sweep,
    )
    if output is Output.JSON:
        print_json(report)
    else:
        print_tables(report, Console(width=None if sys.stdout.isatty() else WIDTH))


def _against(commit: str, count: int, output: Output) -> None:
    """The benchmark of this command line, without what says that it is compared."""
    arguments, rest = [], iter(sys.argv[1:])
    for argument in rest:
        option, _, value = argument.partition("=")
        if option not in ("--against", "--rounds", "-o", "--output"):
            arguments.append(argument)
        elif not value:
            next(rest)

    def line(each: pairs.Compared) -> str:
        return (
            f"{each.figure}: median ratio {each.median:.3f} ({each.low:.3f} to {each.high:.3f}),"
            f" medians {statistics.median(each.ours):,.6g} and {statistics.median(each.theirs):,.6g} of {count}"
        )

    _print(lambda: pairs.rounds(pairs.checkout(commit), arguments, count), line, output)


def _trident(case: Case, state: str | None, baseline: Path | None, output: Output) -> None:
    from benchmarks.trident import TridentResult, all_cases

    def line(each: TridentResult) -> str:
        return (
            f"batches of {each.words_in_batch:,} words ({each.distinct:,} distinct), {each.pending} at once:"
            f" {each.words_per_second:,.0f} words/s, {each.batches_per_second:,.0f} batches/s"
            f"{_cpu(each.cpu_per_million, 'words')}, {each.cores_busy:.2f} cores,"
            f" {each.state_writes:.2f} writes a batch to the state manager ({each.state})"
            f"{behind(each)}"
        )

    def behind(each: TridentResult) -> str:
        if each.baseline is None:
            return ""
        return f"; the baseline {each.baseline:,.0f} words/s, ratio {each.words_per_second / each.baseline:.2g}"

    _print(lambda: all_cases(case, state, baseline), line, output)


def _columns(rows: int, spouts: int, output: Output) -> None:
    from benchmarks.columns import ColumnsResult, both

    def line(each: ColumnsResult) -> str:
        return (
            f"{each.rows:,} rows through bolts for {each.kind}, {each.spouts} spout tasks:"
            f" {each.rows_per_second:,.0f} rows/s acked, {each.seconds:.2f} s{_cpu(each.cpu_per_million, 'rows')}"
        )

    _print(lambda: both(rows, spouts), line, output)


def _state_columns(rows: int, spouts: int, count: int, output: Output) -> None:
    from benchmarks.state_columns import in_turn, says

    _print(lambda: in_turn(rows, spouts, count), says, output)


def _spark(rows: int, count: int, output: Output) -> None:
    from benchmarks.spark import SparkResult, rounds

    def line(each: SparkResult) -> str:
        return (
            f"{each.rows:,} rows of a DataFrame: through the topology {each.ours:.1f} s,"
            f" by Spark alone into Parquet {each.parquet:.1f} s, ratio {each.ratio:.2f}"
        )

    _print(lambda: rounds(rows, count), line, output)


def _start(containers: int, count: int, output: Output) -> None:
    from benchmarks.start import StartResult, rounds

    def line(each: StartResult) -> str:
        of = "1 container" if each.containers == 1 else f"{each.containers} containers"
        return f"`ardea run`: the last of {each.tasks} tasks in {of} began after {each.seconds:.2f} s"

    _print(lambda: rounds(containers, count), line, output)


def _counts(containers: str) -> list[int]:
    try:
        counts = [int(count) for count in containers.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise typer.BadParameter(f"--containers takes numbers from 1, with commas between them, not {containers!r}")
    return counts


def _scale(containers: Sequence[int], tasks: int, output: Output, *, profile: bool) -> None:
    from benchmarks.scale import ScaleResult, sizes

    profiler = cProfile.Profile() if profile else None

    def line(each: ScaleResult) -> str:
        slopes = (each.slope_manager, each.slope_master)
        grown = "" if None in slopes else "; slopes at rest {:.2f} and {:.2f}".format(*slopes)
        costs = "".join(
            f"\n  {name}: a manager {cost.manager_ms:.2f} ms, the master {cost.master_ms:.2f} ms,"
            f" {cost.messages:,.0f} messages, {cost.kilobytes:,.0f} kB"
            for name, cost in each.costs.items()
        )
        return (
            f"{each.containers} containers of {each.tasks} tasks: start {each.start_cpu:.1f} CPU s in all{grown}{costs}"
        )

    _print(lambda: sizes(containers, tasks, profiler), line, output)
    if profiler is not None:
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(PROFILED)


def _scale_processes(containers: Sequence[int], tasks: int, seconds: float, output: Output) -> None:
    from benchmarks.scale_processes import ProcessesResult, sizes

    def line(each: ProcessesResult) -> str:
        kinds = "".join(
            f"\n  {kind.count} {name}: {kind.percent:.2f} % of a core, {kind.megabytes:.1f} MB each"
            for name, kind in each.kinds.items()
        )
        return (
            f"{each.containers} containers of {each.tasks} tasks: start {each.start:.1f} s;"
            f" at rest {each.percent:.1f} % of a core in all, over {each.seconds:.0f} s{kinds}"
        )

    _print(lambda: sizes(containers, tasks, seconds), line, output)


def _slow_spout(seconds: float, output: Output) -> None:
    from benchmarks.slow_spout import SlowResult, measured

    def line(each: SlowResult) -> str:
        return f"{each.says}: {each.rows:,} rows arrived after p50 {each.p50_ms:.1f} ms, p99 {each.p99_ms:.1f} ms"

    _print(lambda: measured(seconds), line, output)


def _cpu(per_million: float | None, what: str) -> str:
    return "" if per_million is None else f", {per_million:.2f} CPU s a million {what}"


def _print(measured: Callable[[], Sequence[ResultT]], line: Callable[[ResultT], str], output: Output) -> None:
    try:
        results = measured()
    except BenchmarkError as error:
        typer.echo(f"benchmark: {error.message}\n{error.hint or ''}", err=True)
        raise typer.Exit(error.exit_code) from None
    if output is Output.JSON:
        typer.echo(msgspec.json.encode(results))
        return
    for each in results:
        typer.echo(line(each))


def _measure(
    what: What, case: Case, baseline: Path | None, rounds: int
) -> tuple[list[Result], list[Comparison], list[SweepRow]]:
    if baseline is not None and what in (What.SWEEP, What.IDLE, What.KAFKA, What.PRESSURE):
        raise BenchmarkError(f"{what} has no baseline", hint="--baseline goes with words, sentences and all.")
    if what is What.KAFKA:
        return [], kafka.rounds(case, rounds), []
    if what is What.PRESSURE:
        return [], [pressure.rounds(case, rounds, _run)], []
    if what is What.SWEEP:
        return [], [], cases.sweep(case, _run)
    if what is What.IDLE:
        return [_run(each) for each in cases.idle(case)], [], []
    if what is What.ALL:
        return *_everything(case, baseline, rounds), []
    if baseline is not None:
        comparison, results = rounds_against(baseline, case, rounds, _run)
        return results, [comparison], []
    if case.rate is None:
        return [_run(case)], [], []
    if what is What.SENTENCES:
        raise BenchmarkError("--rate holds the spout of words; sentences are sent as fast as they go")
    return cases.beyond_idle(cases.paced(case, case.rate), _run), [], []


def _everything(case: Case, baseline: Path | None, rounds: int) -> tuple[list[Result], list[Comparison]]:
    results = [_run(each) for each in cases.every(case)]
    for each in cases.offered(case):
        results += cases.beyond_idle(each, _run)
    comparisons: list[Comparison] = []
    if baseline is not None:
        for each in cases.compared(case):
            comparison, ours = rounds_against(baseline, each, rounds, _run)
            comparisons.append(comparison)
            results += ours
    return results, comparisons


def _run(case: Case, idle_cores: float | None = None) -> Result:
    typer.echo(f"{title(case)} ...", err=True)
    return run(case, idle_cores)


if __name__ == "__main__":
    typer.run(main)

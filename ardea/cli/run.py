"""``ardea run``: a topology on this machine, until it finishes or you press Ctrl-C."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import msgspec
import typer

from ardea.cli import console, reload, submission, ui
from ardea.cli.console import Output, OutputOption, StateOption, finite
from ardea.cli.watching import Watch
from ardea.documents.figures import of_totals
from ardea.errors import ClusterError, ExitCode, UsageError, UserError
from ardea.scheduler.home import Home
from ardea.scheduler.hopeless_run import PATIENCE
from ardea.scheduler.local import MetricsPort
from ardea.scheduler.local_processes import LocalProcesses
from ardea.scheduler.run import LocalRun, Outcome
from ardea.scheduler.submission import Submission
from ardea.state.records import RunState

TIMEOUTS = "topology.enable.message.timeouts"
EXIT_CODES = {
    RunState.SUCCEEDED: ExitCode.OK,
    RunState.FAILED: ExitCode.FAILED,
    RunState.KILLED: ExitCode.INTERRUPTED,
}


@console.reports
def run(
    target: submission.Target,
    containers: submission.Containers = None,
    name: submission.Name = None,
    settings: submission.Settings = None,
    folder: submission.From = None,
    drop_state: submission.DropState = False,
    logs: Annotated[
        list[str] | None,
        typer.Option(metavar="COMPONENT", help="Print on stdout what this component prints; repeatable."),
    ] = None,
    dry_run: submission.DryRun = False,
    output: OutputOption = Output.TABLE,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the topology in the state after its end.")] = False,
    metrics_port: MetricsPort = None,
    give_up: Annotated[
        float,
        typer.Option(
            min=0,
            callback=finite,
            help="End as FAILED after so many seconds in which tuples fail and none is acked; 0: never.",
        ),
    ] = PATIENCE,
    again: Annotated[
        bool, typer.Option("--reload", help="Start again whenever a Python file beside the topology's changes.")
    ] = False,
    attach: Annotated[
        str | None,
        typer.Option(
            metavar="COMPONENT[:INDEX]", help="Let this task wait for a debugger, and stop at its breakpoints."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="The port that --attach listens on, on this machine.")
    ] = 5678,
    with_console: Annotated[
        bool, typer.Option("--ui", help="Show it in a browser: prints the link of a console that ends with the run.")
    ] = False,
    state: StateOption = console.STATE,
) -> None:
    """Run a topology on this machine, until it finishes or you press Ctrl-C.

    Ctrl-C (or SIGTERM) lets open tuples finish; a second one ends the processes at once.
    """
    if logs and output is Output.JSON:
        raise UsageError("--logs writes text and -o json a document to stdout; choose one of them")
    if again and (dry_run or output is Output.JSON):
        raise UsageError("--reload runs until Ctrl-C, and goes neither with --dry-run nor with -o json")
    if with_console and dry_run:
        raise UsageError("--ui shows what runs, and --dry-run starts nothing; choose one of them")
    begins = submission.begins_of(folder, drop_state=drop_state)
    home = Home(state)
    given = submission.overrides(settings, name=name, containers=containers, metrics_port=metrics_port)
    if attach is not None:
        given, give_up = {TIMEOUTS: False, **given}, 0.0  # what a debugger holds up is nobody's fault

    def load() -> Submission:
        made = submission.load(target, home, given)
        check_components(logs or [], made)
        if begins is None:
            return made
        made = made.begun_from(begins, seen=True)
        console.say(f"{made.definition.topology} {made.begins_from}")
        return made

    def watch_of(made: Submission, link: Callable[[str], str] | None = None) -> Watch:
        attached = {} if attach is None else {task_of(attach, made): port}
        scheduler = partial(LocalProcesses, attach=attached)
        watch = Watch(LocalRun(made, home, give_up=give_up, keep=keep, scheduler=scheduler), logs or [], console.err())
        watch.notes += [f"{task} waits for a debugger at 127.0.0.1:{at}" for task, at in attached.items()]
        if link is not None:
            watch.notes.append(f"open {link(made.plan.name)} to see it; the console ends with the run")
        return watch

    if dry_run:
        submission.show_plan(load(), output)
        return
    with ui.beside(state) if with_console else contextlib.nullcontext() as shown:
        made = partial(watch_of, link=None if shown is None else shown.link)
        watch, outcome = reload.run_anew(target, load, made) if again else _once(made(load()))
    if output is Output.JSON:
        console.print_json(_document(watch.run, outcome))
    if watch.lost is not None:
        raise ClusterError(f"{watch.lost.message}; {watch.run.topology} was stopped for it, and ended {outcome.state}")
    raise typer.Exit(EXIT_CODES[outcome.state])


def _once(watch: Watch) -> tuple[Watch, Outcome]:
    return watch, watch.run_to_end()


def task_of(selection: str, made: Submission) -> str:
    """The task that ``COMPONENT`` (its first) or ``COMPONENT:INDEX`` names; UserError if there is none."""
    component, _, index = selection.partition(":")
    check_components([component], made, "--attach")
    task = f"{component}-{index or 0}"
    names = [instance.name for instance in made.packing.instances if instance.component == component]
    if task not in names:
        raise UserError(
            f"--attach {selection}: {component} has the tasks {component}:0 to {component}:{len(names) - 1}"
        )
    return task


def check_components(names: list[str], made: Submission, option: str = "--logs") -> None:
    """UserError for a name that is none of the topology's components."""
    known = [component.name for component in made.plan]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UserError(
                f"{option} {name}: {made.plan.name} has no such component; it has {', '.join(known)}",
                hint=f"did you mean {near[0]!r}?" if near else None,
            )


def _document(run: LocalRun, outcome: Outcome) -> dict[str, Any]:
    """What ``-o json`` prints at the end.  Keys are only ever added."""
    return {
        "id": run.topology,
        "topology": run.submission.plan.name,
        "state": outcome.state.value,
        "reason": outcome.reason,
        "seconds": round(outcome.seconds, 3),
        "components": {name: msgspec.to_builtins(of_totals(totals)) for name, totals in outcome.components.items()},
        "errors": list(outcome.errors),
        "folder": str(run.folder),
    }

"""``ardea submit local``: a topology that outlives the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer

from ardea.cli import console, kubernetes, submission
from ardea.cli.console import Output, OutputOption, StateOption
from ardea.errors import ArdeaError, ClusterError, ExitCode, TimedOut
from ardea.state.records import RunState
from scheduler.daemon import Launch, News
from scheduler.home import Home
from scheduler.submission import Submission

START_SECS = 60.0

app = typer.Typer(help="Start a topology that outlives this command.", no_args_is_help=True)


class Refused(ArdeaError):  # noqa: N818 -- as its siblings in ardea.errors
    """The daemon could not start the topology; the exit code is that of its error."""

    def __init__(self, news: News) -> None:
        super().__init__(news.text, hint=news.hint)
        self.exit_code = ExitCode(news.code)


@console.reports
def local(
    target: submission.Target,
    containers: submission.Containers = None,
    name: submission.Name = None,
    settings: submission.Settings = None,
    dry_run: submission.DryRun = False,
    output: OutputOption = Output.TABLE,
    metrics_port: submission.MetricsPort = None,
    wait_secs: Annotated[
        float, typer.Option("--wait-secs", min=0, help="How long to wait until it runs; it goes on starting after.")
    ] = START_SECS,
    state: StateOption = console.STATE,
) -> None:
    """Start a topology on this machine; return when it runs."""
    home = Home(state)
    made = submission.load(target, home, name=name, containers=containers, settings=settings, metrics_port=metrics_port)
    if dry_run:
        submission.show_plan(made, output)
        return
    topology_id, folder = made.definition.topology, home.folder(made.definition.topology)
    try:
        final = await_running(made, home, wait_secs)
    except KeyboardInterrupt:
        console.say(f"interrupted; {topology_id} goes on starting: `ardea kill {topology_id}` ends it")
        raise
    if output is Output.JSON:
        state_now = final or RunState.RUNNING
        console.print_json(
            {"id": topology_id, "topology": made.plan.name, "state": state_now.value, "folder": str(folder)}
        )
    done = f"has {final} already" if final else "runs"
    console.say(f"{topology_id} {done}; `ardea describe {made.plan.name}` shows it, its logs are in {folder}")


def await_running(
    made: Submission, home: Home, patience: float, *, clock: Callable[[], float] = time.monotonic
) -> RunState | None:
    """Starts the daemon; returns None when the topology runs, or SUCCEEDED if it did all its work meanwhile.

    Raises:
        Refused: nothing was started.
        ClusterError: it ended otherwise before it ran.
        TimedOut: it does not run ``patience`` seconds after.
    """
    topology_id = made.definition.topology
    deadline = clock() + patience
    missing = "its daemon"
    with Launch(made, home, clock=clock) as launch:
        while (news := launch.news(deadline)) is not None:
            if news.kind == "running":
                return None
            if news.kind == "refused":
                raise Refused(news)
            if news.kind == "over":
                if news.text == RunState.SUCCEEDED:
                    return RunState.SUCCEEDED
                raise ClusterError(f"{topology_id} {news.text} before it ran: {news.reason}", hint=news.hint)
            missing = news.text or missing
    raise TimedOut(
        f"{topology_id} does not run after {patience:g} s: it waits for {missing}; it goes on starting",
        hint=f"`ardea describe {topology_id}` shows how far it is, `ardea kill {topology_id}` ends it",
    )


app.command("local")(local)
app.command("kubernetes")(kubernetes.kubernetes)

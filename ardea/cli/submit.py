"""``ardea submit NAME``: a topology that outlives the terminal, by whatever scheduler is installed under NAME."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from ardea.cli import console, submission
from ardea.cli.console import Output, OutputOption, finite
from ardea.cli.progress import Display
from ardea.cli.yaml import as_yaml
from ardea.errors import ArdeaError, ExitCode
from ardea.scheduler import registry
from ardea.scheduler.schedulers import Deployment, Preview, Scheduler, Verdict
from ardea.state.records import RunState

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be started; start nothing.")]
Deactivated = Annotated[
    bool, typer.Option("--deploy-deactivated", help="Start paused: nothing is initialised before `ardea activate`.")
]
Wait = Annotated[
    bool | None,
    typer.Option("--wait/--no-wait", help="Return when it has ended; when it is accepted.  Default: when it runs."),
]
WaitSecs = Annotated[
    float | None,
    typer.Option(
        "--wait-secs", min=0, callback=finite, help="How long to wait; the topology goes on.  With --wait: for ever."
    ),
]


class Schedulers(TyperGroup):
    """A verb for each scheduler that is installed; only the one that is asked for is loaded."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Their names."""
        return registry.installed()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """The verb of one; if there is none, or it cannot be used, one that says so."""
        try:
            verb = _verb(registry.load(cmd_name))
            settings: dict[str, Any] = {}
        except ArdeaError as error:
            verb = _refusing(error)
            settings = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(cmd_name, context_settings=settings)(verb)
        return typer.main.get_command(app)


app = typer.Typer(cls=Schedulers, help="Start a topology that outlives this command.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Without it typer would make no group of an app that has no commands of its own."""


def submit(
    kind: type[Scheduler],
    own: dict[str, Any],
    target: submission.Target,
    containers: submission.Containers = None,
    name: submission.Name = None,
    settings: submission.Settings = None,
    folder: submission.From = None,
    drop_state: submission.DropState = False,
    deactivated: Deactivated = False,
    dry_run: DryRun = False,
    wait: Wait = None,
    wait_secs: WaitSecs = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Starts a topology by the scheduler ``kind``, which ``own`` are the options of."""
    overrides = submission.overrides(settings, name=name, containers=containers)
    if deactivated:
        overrides["topology.initial.status"] = "INACTIVE"
    begins = submission.begins_of(folder, drop_state=drop_state)
    with kind(**own) as scheduler:
        if dry_run:
            with submission.authors_prints():
                preview = scheduler.preview(target, overrides, begins)
            if begins is not None:
                console.say(f"it {preview.submission.begins_from}")
            _show(preview, output)
            return
        with submission.authors_prints():
            deployment = scheduler.prepare(target, overrides, begins)
        with deployment:
            if begins is not None:
                console.say(f"{deployment.id} {deployment.submission.begins_from}")
            with console.interruptible(f"{deployment.id} may have been started: {_end(deployment)}"):
                deployment.submit(console.say)
            console.say(f"{deployment.id} is submitted to {deployment.place}")
            verdict = None
            if wait is not False:
                patience = kind.start_secs if wait_secs is None and not wait else wait_secs
                verdict = _awaited(deployment, patience, ended=bool(wait))
            _conclude(deployment, verdict, output)


def _awaited(deployment: Deployment, patience: float | None, *, ended: bool) -> Verdict:
    name, began = deployment.submission.plan.name, time.monotonic()
    display = Display(console.err(), name)

    def show(state: str, line: str) -> None:
        display.show(state, time.monotonic() - began, line)

    with console.interruptible(f"{deployment.id} goes on: {_end(deployment)}"):
        try:
            return deployment.wait(patience, ended=ended, show=show)
        finally:
            display.clear()


def _end(deployment: Deployment) -> str:
    return f"`ardea kill {deployment.id}{deployment.options}` ends it"


def _conclude(deployment: Deployment, verdict: Verdict | None, output: Output) -> None:
    """The document, the last sentence, and the exit code."""
    topology, reason = deployment.id, verdict.reason if verdict else ""
    state = verdict.state.value if verdict else "SUBMITTED"
    if output is Output.JSON:
        document = {"id": topology, "topology": deployment.submission.plan.name, "state": state, "reason": reason}
        console.print_json({**document, **deployment.where})
    if verdict is not None and verdict.state is RunState.FAILED:
        console.say(f"{topology} FAILED: {reason}", "error", "bold red")
        if verdict.hint:
            console.say(verdict.hint, "hint", "bold")
        raise typer.Exit(ExitCode.FAILED)
    if verdict is not None and verdict.state is RunState.KILLED:
        console.say(f"{topology} was killed{f': {reason}' if reason else ''}")
        raise typer.Exit(ExitCode.INTERRUPTED)
    said = {"SUCCEEDED": "has SUCCEEDED", "SUBMITTED": "starts"}.get(state, "runs")
    console.say(f"{topology} {said}; `ardea describe {topology}{deployment.options}` shows it")


def _show(preview: Preview, output: Output) -> None:
    """What a dry run prints; JSON has no comments."""
    if not preview.manifests:
        submission.show_plan(preview.submission, output)
    elif output is Output.JSON:
        console.print_json({"apiVersion": "v1", "kind": "List", "items": preview.manifests})
        for text in filter(None, (preview.before, preview.after)):
            console.say(text)
    else:
        print(as_yaml(preview.manifests, preview.before, preview.after), end="")  # noqa: T201


def _verb(kind: type[Scheduler]) -> Callable[..., None]:
    """:func:`submit` with the parameters of the scheduler's constructor among its own."""
    hints = get_type_hints(submit, include_extras=True)
    common = [p.replace(annotation=hints[p.name]) for p in list(inspect.signature(submit).parameters.values())[2:]]
    hints = get_type_hints(kind.__init__, include_extras=True)
    own = [
        p.replace(annotation=hints.get(p.name, Any), kind=inspect.Parameter.KEYWORD_ONLY)
        for p in inspect.signature(kind).parameters.values()
    ]

    def verb(**given: Any) -> None:
        submit(kind, {p.name: given.pop(p.name) for p in own}, **given)

    verb.__doc__ = inspect.getdoc(kind)
    verb.__signature__ = inspect.Signature([*common, *own])  # type: ignore[attr-defined]
    verb.__annotations__ = {p.name: p.annotation for p in (*common, *own)}
    return console.reports(verb)


def _refusing(error: ArdeaError) -> Callable[..., None]:
    def verb() -> None:
        raise typer.Exit(console.report(error))

    verb.__doc__ = f"Cannot be used: {error.message}"
    return verb

"""``ardea submit kubernetes``: a topology as Jobs of a cluster."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from ardea.cli import console, submission
from ardea.cli.console import Output, OutputOption
from ardea.cli.places import Context, Kubeconfig, Namespace
from ardea.cli.progress import Display
from ardea.errors import ExitCode, UserError
from scheduler.kubernetes.client import Cluster
from scheduler.kubernetes.submission import Options, find_defaults, prepare, submit
from scheduler.kubernetes.waiting import Progress, Waiter
from scheduler.kubernetes.yaml import as_yaml

START_SECS = 120.0


@console.reports
def kubernetes(
    target: submission.Target,
    containers: submission.Containers = None,
    name: submission.Name = None,
    settings: submission.Settings = None,
    image: Annotated[str | None, typer.Option(help="The image of all pods; default: the namespace's.")] = None,
    path_in_image: Annotated[
        str | None, typer.Option("--path-in-image", metavar="PATH", help="The file is there; no code is sent.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", metavar="PATTERN", help="More files to send, such as 'data/*.csv'.")
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="URL", help="zookeeper://host:port/root; default: the namespace's.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the manifests; submit nothing.")] = False,
    wait: Annotated[
        bool | None,
        typer.Option("--wait/--no-wait", help="Until it has ended; until it is accepted.  Default: until it runs."),
    ] = None,
    wait_secs: Annotated[
        float | None, typer.Option("--wait-secs", min=0, help="How long; default: 120, with --wait for ever.")
    ] = None,
    output: OutputOption = Output.TABLE,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Start a topology on Kubernetes; return when it runs."""
    if path_in_image is not None and include:
        raise UserError("--include sends files, and with --path-in-image nothing is sent")
    cluster = Cluster.connect(namespace, context, kubeconfig)
    options = Options(image=image, state=state, path_in_image=path_in_image, include=tuple(include or ()))
    overrides = submission.overrides(settings, name=name, containers=containers)
    with submission.authors_prints():
        made = prepare(target, overrides, options, find_defaults(cluster))
    if dry_run:
        _print_manifests(made.manifests(), output)
        return
    topology = made.blueprint.id
    root = submit(cluster, made)
    console.say(f"{topology} is submitted to namespace {cluster.namespace}")
    display, began = Display(console.err(), made.submission.plan.name), time.monotonic()

    def show(seen: Progress) -> None:
        display.show(seen.status.state if seen.status else "STARTING", time.monotonic() - began, seen.line)

    state_now, reason = "SUBMITTED", ""
    if wait is not False:
        try:
            patience = START_SECS if wait_secs is None and not wait else wait_secs
            status = Waiter(cluster, root, show).wait(patience, ended=bool(wait))
        except KeyboardInterrupt:
            display.clear()
            console.say(f"interrupted; {topology} goes on: `ardea kill {topology} -n {cluster.namespace}` ends it")
            raise
        finally:
            display.clear()
        state_now, reason = status.state, status.reason
    if output is Output.JSON:
        document = {"id": topology, "topology": made.submission.plan.name, "state": state_now, "reason": reason}
        console.print_json(document | {"namespace": cluster.namespace, "root": made.blueprint.root})
    _conclude(topology, cluster.namespace, state_now, reason)


def _conclude(topology: str, namespace: str, state: str, reason: str) -> None:
    """The last sentence, and the exit code."""
    if state == "FAILED":
        console.say(f"{topology} FAILED: {reason}", "error", "bold red")
        console.say(f"`ardea logs {topology} -n {namespace}` shows what its processes said", "hint", "bold")
        raise typer.Exit(ExitCode.FAILED)
    if state == "KILLED":
        console.say(f"{topology} was killed: {reason}")
        raise typer.Exit(ExitCode.INTERRUPTED)
    said = {"SUCCEEDED": "has SUCCEEDED", "SUBMITTED": "starts"}.get(state, "runs")
    console.say(f"{topology} {said}; `ardea describe {topology} -n {namespace}` shows it")


def _print_manifests(manifests: list[dict[str, Any]], output: Output) -> None:
    if output is Output.JSON:
        console.print_json({"apiVersion": "v1", "kind": "List", "items": manifests})
    else:
        print(as_yaml(manifests), end="")  # noqa: T201

"""``ardea update`` for a topology on Kubernetes: the verb here, and what it runs of itself inside a master's pod."""

from __future__ import annotations

import base64
import sys

import msgspec
import typer

from ardea.cli import change, console
from ardea.cli.remote import described_by_master, status_in
from ardea.cli.running import same_version
from ardea.errors import ExitCode, UsageError
from ardea.plan.change import UpdateRequest
from ardea.scheduler.control import Status
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.submission import Options
from ardea.scheduler.kubernetes.topologies import find_running, run_at_master
from ardea.scheduler.kubernetes.update import Update

UP_WITHIN = 120.0


def update(
    cluster: Cluster,
    name: str,
    file: str | None,
    parallelism: list[str] | None,
    settings: list[str] | None,
    moving: bool,
    image: str | None,
    path_in_image: str | None,
    include: list[str] | None,
    wait_secs: float | None,
    dry_run: bool,
    output: console.Output,
    request: bool,
) -> None:
    """See ``ardea update``."""
    if request:
        raise UsageError("--request is for the masters' own pods")
    if file is None and (path_in_image or include):
        raise UsageError("--path-in-image and --include are about a FILE, which is not given; nothing was changed")
    if path_in_image is not None and include:
        raise UsageError("--include sends files, and with --path-in-image nothing is sent")
    options = Options(image=image, path_in_image=path_in_image, include=tuple(include or ()))
    found = find_running(cluster, name)
    same_version(found.topology, "update")

    def status() -> Status | None:
        return status_in(described_by_master(cluster, found.id), found.id)

    def ask(said: bytes) -> int:
        return run_at_master(cluster, found.id, ["ardea", "update", found.id, "--request"], stdin=said)

    work = Update(cluster, found, status, ask, console.say)
    wanted = change.asked(parallelism, settings, moving=moving)
    if dry_run:
        change.show(work.compared(wanted, file, options, change.build), output)
        return
    code = work.update(wanted, file, options, change.build, UP_WITHIN if wait_secs is None else wait_secs)
    if code != ExitCode.OK:
        raise typer.Exit(code)
    console.say(f"{found.id} works by the new plan; `ardea describe {name} -n {cluster.namespace}` shows it")


def read_request() -> UpdateRequest:
    """What :func:`update` has sent into the pod."""
    return msgspec.msgpack.decode(base64.b64decode(sys.stdin.buffer.readline()), type=UpdateRequest)

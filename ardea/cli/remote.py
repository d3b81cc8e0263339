"""The verbs for topologies on Kubernetes: what needs the master runs inside its pod, as the same verb."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import msgspec
import typer

from ardea.cli import console
from ardea.cli.console import Output
from ardea.cli.progress import Silence
from ardea.cli.running import same_version
from ardea.errors import ClusterError, ExitCode, NotFound, Unreachable, UserError
from ardea.plan.names import MASTER_CONTAINER, container_name
from ardea.scheduler.control import Status
from ardea.scheduler.kubernetes import layout, names
from ardea.scheduler.kubernetes.client import Cluster, Manifest
from ardea.scheduler.kubernetes.kill import Killing
from ardea.scheduler.kubernetes.restart import Restart
from ardea.scheduler.kubernetes.topologies import Found, find, find_running, pods_of, run_at_master

SAMPLE_SECS = 15
DUMP_WITHIN = 5.0
_SIGNAL_CHILDREN = """
import json, os, signal, sys
for process in json.load(open(sys.argv[1]))["processes"].values():
    if process["pid"]:
        os.kill(process["pid"], signal.SIGUSR1)
"""


@dataclass(frozen=True, slots=True)
class Source:
    """One log: ``label`` is what a person calls it; ``number`` that of the container that the pod is."""

    label: str
    number: int
    pod: str
    container: str


def top(cluster: Cluster, name: str, once: bool, interval: float, output: Output) -> None:
    """See ``ardea top``."""
    live = sys.stdout.isatty() and not once and output is Output.TABLE
    size = shutil.get_terminal_size()
    screen = ["env", f"COLUMNS={size.columns}", f"LINES={size.lines}", f"TERM={os.environ.get('TERM', 'dumb')}"]
    options = ["--interval", str(interval), "-o", output.value, *([] if live else ["--once"])]
    found = find_running(cluster, name)
    try:
        code = run_at_master(
            cluster, found.id, [*(screen if live else ()), "ardea", "top", found.id, *options], tty=live
        )
    except KeyboardInterrupt:
        return  # the way to leave it
    _end_with(code)


def activate(cluster: Cluster, name: str) -> None:
    """See ``ardea activate``."""
    _order(cluster, name, "activate")


def deactivate(cluster: Cluster, name: str) -> None:
    """See ``ardea deactivate``."""
    _order(cluster, name, "deactivate")


def kill(cluster: Cluster, name: str, wait_secs: float) -> None:
    """See ``ardea kill``."""
    found = find(cluster, name)
    Killing(cluster, found, console.say).kill(wait_secs)
    console.say(f"{found.id} is gone")


def restart(cluster: Cluster, name: str, container: int | None, wait_secs: float) -> None:
    """See ``ardea restart``."""
    found = find_running(cluster, name)
    same_version(found.topology, "restart")

    def status() -> Status | None:
        return status_in(described_by_master(cluster, found.id), found.id)

    work = Restart(cluster, found, status)
    chosen = work.containers() if container is None else [container]
    work.restart(chosen, wait_secs)
    console.say(f"{found.id}: restarted container{'s' if len(chosen) > 1 else ''} {', '.join(map(str, chosen))}")


def logs(cluster: Cluster, name: str, selection: str | None, follow: bool) -> None:
    """See ``ardea logs``."""
    sources = _chosen(cluster, find(cluster, name), selection)
    several = len(sources) > 1
    if not follow:
        for source in sources:
            for line in _log_of(cluster, source):
                _print_line(source.label, line, several=several)
        return
    lines: SimpleQueue[tuple[str, bytes] | None] = SimpleQueue()

    def tail(source: Source) -> None:
        for line in _log_of(cluster, source, follow=True):
            lines.put((source.label, line))
        lines.put(None)

    for source in sources:
        threading.Thread(target=tail, args=[source], daemon=True).start()
    open_ends = len(sources)
    try:
        while open_ends:
            if (item := lines.get()) is None:
                open_ends -= 1
            else:
                _print_line(*item, several=several)
    except KeyboardInterrupt:
        return  # the way to leave it


def debug(cluster: Cluster, name: str, target: str, lines: int, stack: bool, shell: bool, order: bool) -> None:
    """See ``ardea debug``."""
    found = find_running(cluster, name)
    sources = _chosen(cluster, found, _selection(target))
    if order:
        _order_sample(cluster, found, target)
    elif stack:
        for source in sources:
            _dump(cluster, found.id, source)
    elif shell:
        if len(sources) > 1:
            raise UserError(f"{target} has {len(sources)} tasks", hint=f"say which: {sources[0].label}")
        _open_shell(cluster, sources[0])
    else:
        _sample(cluster, found, target, sources, lines)


def described_by_master(cluster: Cluster, topology_id: str) -> dict[str, Any] | None:
    """What ``ardea describe -o json`` says inside a master's pod; None: no master's pod answers."""
    said = bytearray()
    try:
        code = run_at_master(cluster, topology_id, ["ardea", "describe", topology_id, "-o", "json"], said.extend)
    except Unreachable:
        return None
    if code != ExitCode.OK or not said:  # a container that ends takes along what runs in it, and may call it a success
        return None
    document: dict[str, Any] = json.loads(said)
    return document


def status_in(document: dict[str, Any] | None, topology_id: str) -> Status | None:
    """What the master said in there.

    Raises:
        ClusterError: it runs another version of Ardea.
    """
    if document is None or document["status"] is None:
        return None
    try:
        return msgspec.convert(document["status"], Status)
    except msgspec.ValidationError as error:
        raise ClusterError(
            f"the masters of {topology_id} run another version of Ardea, whose answer cannot be read here: {error}",
            hint="use the version of the image, or -o json inside the pod: kubectl exec POD -c topology-master -- "
            f"ardea describe {topology_id}",
        ) from error


def _order(cluster: Cluster, name: str, verb: str) -> None:
    found = find_running(cluster, name)
    _end_with(run_at_master(cluster, found.id, ["ardea", verb, found.id]))


def _end_with(code: int) -> None:
    if code != ExitCode.OK:
        raise typer.Exit(code)


# --- logs ---------------------------------------------------------------------------------------------------------


def _selection(target: str) -> str:
    """``count-1`` and ``count:1`` mean the same."""
    component, dash, index = target.rpartition("-")
    return f"{component}:{index}" if dash and index.isdigit() else target


def _chosen(cluster: Cluster, found: Found, selection: str | None) -> list[Source]:
    """The logs that are asked for."""
    every = list(_sources(found, pods_of(cluster, found.id)))
    if selection is None:
        return every
    component, colon, index = selection.partition(":")
    wanted = {f"{component}-{index}"} if colon else {component}
    chosen = [source for source in every if wanted & {source.label, source.container}]
    if not colon:
        chosen += [s for s in every if re.fullmatch(re.escape(component) + r"-\d+", s.label)]
    if not chosen:
        known = sorted({source.label.rpartition("/")[2] for source in every})
        raise NotFound(
            f"{found.id} has no log of {selection}; it has {', '.join(known) or 'no pods yet'}",
            hint="COMPONENT, COMPONENT:INDEX (from 0), or one of the processes named",
        )
    return chosen


def _sources(found: Found, pods: list[Manifest]) -> Iterator[Source]:
    tasks = {
        (plan.number, called): next(i.name for i in plan.instances if i.task == task)
        for plan in found.blueprint.containers
        for task, called in names.instance_names(plan.instances).items()
    }
    for pod in pods:
        number, name = int(pod["metadata"]["labels"][names.CONTAINER]), str(pod["metadata"]["name"])
        for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
            called = container["name"]
            if called != layout.PREPARE:
                place = name if number == MASTER_CONTAINER else container_name(number)
                yield Source(tasks.get((number, called), f"{place}/{called}"), number, name, called)


def _log_of(cluster: Cluster, source: Source, *, follow: bool = False) -> Iterator[bytes]:
    """A container that has not begun has no log."""
    try:
        yield from cluster.logs(source.pod, source.container, follow=follow)
    except (NotFound, UserError):
        return


def _print_line(label: str, line: bytes, *, several: bool) -> None:
    text = line.decode(errors="replace")
    print(console.shown(f"{label}: {text}" if several else text), flush=True)  # noqa: T201


# --- debugging ----------------------------------------------------------------------------------------------------


def _sample(cluster: Cluster, found: Found, target: str, sources: list[Source], most: int) -> None:
    """What the tasks emit, from the marks in their logs, as long as the order is renewed."""
    lines: SimpleQueue[str] = SimpleQueue()

    def tail(source: Source) -> None:
        for line in _log_of(cluster, source, follow=True):
            _, mark, said = line.decode(errors="replace").partition(f" INFO {source.label}.emits: ")
            if mark:
                lines.put(f"{source.label} {said}")

    for source in sources:
        threading.Thread(target=tail, args=[source], daemon=True).start()
    printed, renew_at = 0, 0.0
    silence = Silence(target, time.monotonic())
    try:
        while True:
            if time.monotonic() >= renew_at:
                renew_at = time.monotonic() + SAMPLE_SECS / 3
                _order_sample(cluster, found, target)
            while not lines.empty():
                print(console.shown(lines.get()), flush=True)  # noqa: T201
                printed += 1
                if printed == most:
                    return
            silence.look(time.monotonic(), heard=printed > 0)
            time.sleep(0.2)
    except KeyboardInterrupt:
        return  # the way to leave it


def _order_sample(cluster: Cluster, found: Found, target: str) -> None:
    _end_with(run_at_master(cluster, found.id, ["ardea", "debug", found.id, target, "--order"]))


def _dump(cluster: Cluster, topology_id: str, source: Source) -> None:
    """SIGUSR1 makes the process write the stack of every thread to its log."""
    label, pod, container = source.label, source.pod, source.container
    before = sum(1 for _ in cluster.logs(pod, container))
    status = layout.process_folder(topology_id, source.number, container) / "status.json"
    argv = ["python", "-P", "-c", _SIGNAL_CHILDREN, str(status)]
    code = cluster.execute(pod, container, argv, _unread, sys.stderr.buffer.write)
    if code != ExitCode.OK:
        raise ClusterError(f"{label}: no signal could be sent to its process (exit {code})")
    deadline = time.monotonic() + DUMP_WITHIN
    new: list[bytes] = []
    while time.monotonic() < deadline and not any(b"Current thread" in line for line in new):
        time.sleep(0.2)
        new = list(cluster.logs(pod, container))[before:]
    print(f"{label} ({pod} -c {container}):")  # noqa: T201
    for line in new:
        print(console.shown(f"  {line.decode(errors='replace')}"))  # noqa: T201


def _open_shell(cluster: Cluster, source: Source) -> None:
    pod, container = source.pod, source.container
    kubectl = shutil.which("kubectl")
    where = ["-n", cluster.namespace]
    console.say(f"also: kubectl debug -it {pod} -n {cluster.namespace} --image=IMAGE --target={container}")
    if kubectl is None:
        raise ClusterError(
            "kubectl is not on the PATH", hint=f"kubectl exec -it {pod} {' '.join(where)} -c {container} -- sh"
        )
    sys.stdout.flush()
    os.execv(kubectl, [kubectl, "exec", "-it", pod, *where, "-c", container, "--", "sh"])  # noqa: S606


def _unread(_: bytes) -> None:
    """Nothing of interest is printed."""

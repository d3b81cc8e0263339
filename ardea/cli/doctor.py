"""``ardea doctor``: whether this machine and its state directory are in order, and what can be removed."""

from __future__ import annotations

import platform
import tempfile
from typing import Annotated

import typer
from rich.table import Table

from ardea.cli import console
from ardea.cli.console import Output, OutputOption, StateOption
from ardea.cli.places import also_on_kubernetes
from ardea.errors import ExitCode, UsageError
from ardea.scheduler.capacity import PROCESS_BYTES, Machine
from ardea.scheduler.home import Home
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.doctor import checks as cluster_checks
from ardea.state.topologies import damaged_names, listing, orphans, remove

MIN_FILES = 1024


def _on_cluster(cluster: Cluster, prune: bool, output: Output) -> None:
    if prune:
        raise UsageError("--prune is for a state directory: on Kubernetes everything goes with its root object")
    _show(cluster_checks(cluster), output)


@console.reports
@also_on_kubernetes(_on_cluster)
def doctor(
    prune: Annotated[bool, typer.Option("--prune", help="Remove what dead topologies have left in the state.")] = False,
    output: OutputOption = Output.TABLE,
    state: StateOption = console.STATE,
) -> None:
    """Check that all is in order; exit 1 if it is not."""
    home, machine = Home(state), Machine.here()
    memory = machine.memory
    writable, where = _writable(home)
    checks = [
        ("Python", True, platform.python_version()),
        ("memory", memory is None or memory >= 10 * PROCESS_BYTES, _memory(memory)),
        ("open files", machine.files is None or machine.files >= MIN_FILES, str(machine.files or "no limit")),
        ("state directory", writable, where),
    ]
    if writable:
        checks += [_private(home), *_leftovers(home, prune)]
    _show(checks, output)


def _show(checks: list[tuple[str, bool, str]], output: Output) -> None:
    if output is Output.JSON:
        console.print_json({"checks": [{"name": n, "ok": ok, "found": found} for n, ok, found in checks]})
    else:
        table = Table("", "Check", "Found", box=None, pad_edge=False)
        for name, ok, found in checks:
            table.add_row("ok" if ok else "WRONG", name, found)
        console.out().print(table)
    if not all(ok for _, ok, _ in checks):
        raise typer.Exit(ExitCode.FAILED)


def _writable(home: Home) -> tuple[bool, str]:
    try:
        home.make()
        with tempfile.TemporaryFile(dir=home.root) as file:
            file.write(b"x" * 4096)
            file.flush()
    except OSError as error:
        return False, f"{home.root}: {error.strerror}"
    return True, str(home.root)


def _private(home: Home) -> tuple[str, bool, str]:
    exposed = " ".join(map(str, home.exposed()))
    found = f"others may write there, and run code as you: `chmod go-w {exposed}`" if exposed else "nobody else writes"
    return "its permissions", not exposed, found


def _leftovers(home: Home, prune: bool) -> list[tuple[str, bool, str]]:
    with home.open_state() as manager:
        dead = [t.id for t in listing(manager) if not t.running and not (t.execution and t.execution.state.final)]
        left = sorted({*orphans(manager), *dead})
        for topology_id in left if prune else ():
            remove(manager, topology_id)
        unreadable = damaged_names(manager)
    what = "removed" if prune else "(--prune removes what they left in the state)"
    runs = f"{len(home.prune())} removed" if prune else f"{len(home.folders())} kept"
    return [
        ("dead topologies", prune or not left, f"{', '.join(left)} {what}" if left else "none"),
        (
            "names",
            not unreadable,
            f"damaged: {', '.join(unreadable)} (`ardea kill` frees them)" if unreadable else "readable",
        ),
        ("runs with logs", True, runs),
    ]


def _memory(available: int | None) -> str:
    if available is None:
        return "unknown"
    return f"{available / 1e9:.1f} GB, about {available // PROCESS_BYTES:,} processes"

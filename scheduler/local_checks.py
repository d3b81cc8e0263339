"""Whether this machine and its state directory are in order, and what can be removed."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator

from ardea.scheduler.capacity import PROCESS_BYTES, Machine
from ardea.scheduler.home import Home, is_held
from ardea.scheduler.schedulers import Check
from ardea.state.topologies import damaged_names, listing, orphans

MIN_FILES = 1024


def checks(home: Home, *, prune: bool) -> Iterator[Check]:
    """See :meth:`ardea.scheduler.schedulers.Scheduler.checks`."""
    machine = Machine.here()
    memory = machine.memory
    yield Check("Python", True, platform.python_version())
    yield Check("memory", memory is None or memory >= 10 * PROCESS_BYTES, _memory(memory))
    yield Check("open files", machine.files is None or machine.files >= MIN_FILES, str(machine.files or "no limit"))
    writable, where = _writable(home)
    yield Check("state directory", writable, where)
    if writable:
        yield _private(home)
        yield from _leftovers(home, prune=prune)


def _writable(home: Home) -> tuple[bool, str]:
    try:
        home.make()
        with tempfile.TemporaryFile(dir=home.root) as file:
            file.write(b"x" * 4096)
            file.flush()
    except OSError as error:
        return False, f"{home.root}: {error.strerror}"
    return True, str(home.root)


def _private(home: Home) -> Check:
    exposed = " ".join(map(str, home.exposed()))
    found = f"others may write there, and run code as you: `chmod go-w {exposed}`" if exposed else "nobody else writes"
    return Check("its permissions", not exposed, found)


def _leftovers(home: Home, *, prune: bool) -> Iterator[Check]:
    with home.open_state() as manager:
        dead = [t.id for t in listing(manager) if not t.running and not (t.execution and t.execution.state.final)]
        left = sorted(i for i in {*orphans(manager), *dead} if not is_held(home.folder(i)))
        for topology_id in left if prune else ():
            home.forget(manager, topology_id, snapshots=False)
        unreadable = damaged_names(manager)
    what = "removed" if prune else "(--prune removes what they left in the state)"
    runs = f"{len(home.prune())} removed" if prune else f"{len(home.folders())} kept"
    yield Check("dead topologies", prune or not left, f"{', '.join(left)} {what}" if left else "none")
    damaged = f"damaged: {', '.join(unreadable)} (`ardea kill` frees them)"
    yield Check("names", not unreadable, damaged if unreadable else "readable")
    yield Check("runs with logs", True, runs)


def _memory(available: int | None) -> str:
    if available is None:
        return "unknown"
    return f"{available / 1e9:.1f} GB, about {available // PROCESS_BYTES:,} processes"

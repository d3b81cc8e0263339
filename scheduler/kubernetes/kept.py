"""What is kept of a topology's state: its master looks, as only its pods reach the store."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from ardea.errors import StateError, TimedOut
from ardea.scheduler.control import ControlPort
from ardea.snapshots.kept import Listing

LISTED_WITHIN = 60.0
LOOK_EVERY = 0.5


def listed(
    control: ControlPort,
    name: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Listing:
    """Asks until the master has looked; ``name``: of the topologies whose savepoints are wanted, or an id.

    A topology whose mode takes no snapshots has none.

    Raises:
        StateError: the store cannot be read.
        TimedOut: it is not read yet.
    """
    request, deadline = secrets.token_hex(4), clock() + LISTED_WITHIN
    while clock() < deadline:
        status = control.ask("snapshots", id=request, name=name)
        if status.snapshots is None:
            return Listing(request)
        if status.kept is not None and status.kept.request == request:
            if status.kept.error:
                raise StateError(f"{status.topology}: {status.kept.error}")
            return status.kept
        pause(LOOK_EVERY)
    raise TimedOut(f"the master of {name} has not read the store of snapshots within {LISTED_WITHIN:g} s")

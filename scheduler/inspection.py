"""Asks a task, over its master, what its threads do (docs/debugging.md, "Stacks and profiles")."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from ardea.errors import ArdeaError, Conflict, TimedOut, Unreachable
from ardea.protocol.checked import MalformedError
from ardea.protocol.inspection import Answer, Inspection, What, unpack
from ardea.scheduler.control import ControlPort, Status, Unreadable

WITHIN = 5.0
"""Seconds that a task has to answer, beyond those that it looks."""
ASK_EVERY = 0.25
_ASKED_FOR = {"stacks": "its stacks", "profile": "a profile"}


def inspect(
    control: ControlPort,
    task: str,
    what: What,
    seconds: int = 0,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Inspection:
    """What the task finds; waits ``seconds`` of a profile, and five more at most.

    Raises:
        TimedOut: the task has not answered.
        Unreachable: no master has.
        Conflict: it was refused, for somebody else looks at the task; the master or the task refused it otherwise.
    """
    request, first, last = secrets.token_hex(8), None, None
    deadline = clock() + seconds + WITHIN
    silence: Unreachable | None = None
    while (left := deadline - clock()) > 0:
        try:
            last = _asked(control, request, task, what, seconds, min(WITHIN, left))
        except Unreachable as error:  # the next master does not know of it, and begins anew
            silence = error
        else:
            first, silence = first or last, None
            if (found := _found(last.inspection)) is not None:
                return found
        pause(min(ASK_EVERY if what == "stacks" else 4 * ASK_EVERY, max(0.0, deadline - clock())))
    if silence is not None or last is None:
        raise silence or Unreachable(f"no master has answered for {task} within {seconds + WITHIN:g} s")
    raise TimedOut(_late(first, last, task, what, seconds + WITHIN), hint="`ardea describe` says what its process does")


def _asked(control: ControlPort, request: str, task: str, what: What, seconds: int, patience: float) -> Status:
    return control.ask("inspect", patience=patience, id=request, task=task, what=what, seconds=str(seconds))


def _found(answer: Answer | None) -> Inspection | None:
    if answer is None:
        raise Unreadable("the master answers without what was asked of the task")
    if answer.refused:
        raise Conflict(f"{answer.task} refused: {answer.refused}")
    if answer.document is None:
        return None
    try:
        return unpack(answer.document)
    except MalformedError as error:
        raise ArdeaError(f"what {answer.task} has found cannot be read") from error


def _late(first: Status | None, last: Status, task: str, what: What, seconds: float) -> str:
    said = f"{task} has not given {_ASKED_FOR[what]} within {seconds:g} s"
    before, now = (status.tasks.get(task) if status is not None else None for status in (first, last))
    if before is not None and now is not None and before.life != now.life:
        return f"{said}: it was started again meanwhile; repeat it"
    return f"{said}: its process stands still, or a call in C keeps the interpreter"

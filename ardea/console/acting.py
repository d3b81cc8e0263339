"""The process that does a verb: it loads authors' code, and goes on when the console is gone.

stdin has a :class:`Task`; stdout gets one :class:`Message` a line, the last of which is its end.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

import msgspec

from ardea.console.actions import Action, Preview, read
from ardea.console.documents import Problem
from ardea.console.problems import problem
from ardea.errors import ArdeaError, printable
from ardea.scheduler.registry import Place


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """``body`` is that of the request to ``where``."""

    place: Place
    topology: str
    verb: str
    body: bytes
    where: str


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sentence, or one of three ends: ``preview``, ``problem``, ``done``."""

    said: str | None = None
    preview: Preview | None = None
    problem: Problem | None = None
    done: bool = False


def main() -> int:
    """Returns 0, whatever has become of it: it was said."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what an author's file prints while it is loaded is no message of ours

    def tell(message: Message) -> None:
        with contextlib.suppress(OSError):  # the console is gone
            out.write(msgspec.json.encode(message) + b"\n")

    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    try:
        tell(_ended(task, tell_said=lambda text: tell(Message(said=printable(text, 10_000)))))
    except ArdeaError as error:
        tell(Message(problem=problem(error, task.where)))
    except Exception as error:  # an author's file may raise anything while it is loaded
        fault = ArdeaError(f"{type(error).__name__}: {printable(error)}", hint=f"`ardea {task.verb}` shows more")
        tell(Message(problem=problem(fault, task.where)))
    return 0


def _ended(task: Task, tell_said: Callable[[str], None]) -> Message:
    order = read(task.verb, task.body)
    with task.place.open() as scheduler:
        action = Action(scheduler, task.topology, task.verb, order)
        if order.confirm is None:
            return Message(preview=action.preview())
        action.perform(tell_said)
        return Message(done=True)


if __name__ == "__main__":
    sys.exit(main())

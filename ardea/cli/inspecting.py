"""``ardea debug stacks`` and ``ardea debug profile``: what the threads of one task do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ardea.cli import completion, console
from ardea.cli.console import Name, Output, OutputOption
from ardea.errors import ClusterError, TimedOut, Unreachable, UserError
from ardea.protocol.inspection import MOST_SECONDS, Inspection, Node
from ardea.scheduler.emits import tasks_of
from ardea.scheduler.inspection import inspect
from ardea.scheduler.schedulers import Handle, LogLine, Scheduler

SIGNAL_WITHIN = 3.0
"""Seconds in which a process writes its stacks into its log."""
SHOWN = 0.01
"""Parts of a profile that a branch has at least, to be shown as text."""
_LAST_THREAD = "Current thread"
"""The thread that a stack dump tells of last."""
_THREADS = (_LAST_THREAD, "Thread 0x")
Task = Annotated[
    str, typer.Argument(metavar="TASK", help="One task: count:0 or count-0.", autocompletion=completion.components)
]


def stacks(scheduler: Scheduler, name: Name, task: Task, output: OutputOption = Output.TABLE) -> None:
    """Show the stack of every thread of one task."""
    with scheduler.find(name) as found:
        found.require_running()
        chosen, selection = _one(found, task)
        try:
            with found.control() as control:
                looked = inspect(control, chosen, "stacks")
        except (TimedOut, Unreachable) as error:
            if output is Output.JSON:
                raise
            _by_signal(scheduler, found, chosen, selection, error)
            return
    if output is Output.JSON:
        console.print_json(msgspec.to_builtins(looked))
        return
    print(console.shown(_who(looked)))  # noqa: T201
    for thread in looked.threads:
        print(console.shown(f"{thread.name}:"))  # noqa: T201
        for frame in thread.frames:
            print(console.shown(f"  {frame.file}:{frame.line} in {frame.name}"))  # noqa: T201


def profile(
    scheduler: Scheduler,
    name: Name,
    task: Task,
    seconds: Annotated[int, typer.Option("--seconds", min=1, max=MOST_SECONDS, help="How long it looks.")] = 30,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="text|json|FILE", help="The format of stdout, or a file for JSON.")
    ] = "text",
) -> None:
    """Show where the threads of one task spend their time, as a tree."""
    with scheduler.find(name) as found:
        found.require_running()
        chosen, _ = _one(found, task)
        with found.control() as control:
            looked = inspect(control, chosen, "profile", seconds)
    if output == "text":
        print(console.shown(f"{_who(looked)}: {looked.seconds:.1f} s, {looked.samples:,} samples"))  # noqa: T201
        for line in _tree(looked):
            print(console.shown(line))  # noqa: T201
    elif output == "json":
        console.print_json(msgspec.to_builtins(looked))
    else:
        _write(Path(output), looked)


def _one(found: Handle, target: str) -> tuple[str, str]:
    """The task's name, and what selects its log."""
    _, tasks = tasks_of(found.definition(), target, emit=False)
    if len(tasks) > 1:
        raise UserError(f"{target} has {len(tasks)} tasks; name one: {', '.join(list(tasks.values())[:4])}")
    ((chosen, selection),) = tasks.items()
    return chosen, selection


def _who(looked: Inspection) -> str:
    where = f"container {looked.container}, pid {looked.pid} on {looked.host}, life {looked.life}"
    return f"{looked.task} in {where}, {looked.at}"


def _tree(looked: Inspection) -> Iterator[str]:
    """A line a branch, with its part of its thread's samples; thin branches are left out."""

    def lines(node: Node, whole: int, depth: int) -> Iterator[str]:
        part = node.samples / max(whole, 1)
        if part >= SHOWN:
            where = f"  {node.file}:{node.line}" if node.file else ""
            yield f"{part:7.1%}{'  ' * depth} {node.name}{where}"
            for child in node.children:
                yield from lines(child, whole, depth + 1)

    for thread in looked.root.children if looked.root is not None else ():
        yield from lines(thread, thread.samples, 0)
    if looked.cut:
        yield f"{looked.cut:,} samples of calls that had no place count for who called them"


def _write(file: Path, looked: Inspection) -> None:
    try:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(looked)) + b"\n")
    except OSError as error:
        raise ClusterError(f"{file} cannot be written: {error.strerror}", hint="-o FILE names another place") from error
    console.say(f"{file}: {looked.seconds:.1f} s of {looked.task}, {looked.samples:,} samples")


def _by_signal(scheduler: Scheduler, found: Handle, task: str, selection: str, silence: TimedOut | Unreachable) -> None:
    """What needs neither a master nor an interpreter: the process writes its stacks into its log.

    Raises:
        TimedOut, Unreachable: ``silence``; nothing has come this way either.
    """
    with scheduler.logs(found.id) as logs:
        heard = logs.lines(selection, follow=True, tail=0)
        next(heard, None)  # the log is open now
        found.dump(task)
        lines = list(_dumped(heard))
    if not lines:
        raise silence
    console.say(f"{silence.message}; this is what it has written into its log when it was asked by a signal")
    for line in lines:
        print(console.shown(line))  # noqa: T201


def _dumped(heard: Iterator[LogLine | None]) -> Iterator[str]:
    deadline, began, last = time.monotonic() + SIGNAL_WITHIN, False, False
    for line in heard:
        if line is not None:
            began = began or line.text.startswith(_THREADS)
            last = last or line.text.startswith(_LAST_THREAD)
            if began:
                yield line.text
        elif last or time.monotonic() >= deadline:
            return

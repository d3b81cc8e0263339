"""What a person hears of a run on the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from ardea.cli import console
from ardea.cli.progress import Display, Rates, failures
from ardea.cli.streams import Unwritable
from ardea.config import Settings
from ardea.health.processes import deaths, said
from ardea.metrics import Totals
from ardea.protocol.wire_pb2 import DONE, TaskState
from ardea.scheduler import capacity
from ardea.scheduler.control import Status, unfinished, waiting_for
from ardea.scheduler.logs import LogName, Tail, log_files
from ardea.scheduler.run import LocalRun, Outcome, Stage
from ardea.scheduler.run_keeper import RunKeeper
from ardea.state.records import RunState

_SHOWN_ERRORS = 5
_BLOCK = 1 << 20
SETTLED = 5.0
"""Seconds after which all counts of a spout are of the same rows."""
SILENCE = 30.0
"""Seconds in which nothing moves and nothing is pending, after which that is said."""


class Watch(RunKeeper):
    """Follows one run on the terminal."""

    def __init__(self, run: LocalRun, logs: list[str], stderr: Console) -> None:
        """``logs``: the components whose output goes to stdout."""
        super().__init__(run)
        self._logs = logs
        self._tails: dict[Path, tuple[LogName, Tail]] = {}
        self.lost: Unwritable | None = None  # stdout takes no more
        self.interrupted = False
        self.notes: list[str] = []  # said once it starts
        self.outdated: Callable[[], bool] = lambda: False  # its code has changed; see ardea.cli.reload
        self._rates = Rates({spout.name for spout in run.submission.plan.spouts})
        self._display = Display(stderr, run.submission.plan.name)
        self._shown: set[str] = set()
        self._timeouts_shown = self._silence_shown = False
        self._untracked: set[str] = set()
        self._moved = ((0, 0, 0), 0.0)  # rows emitted by spouts, acked and executed, and when one of these had grown
        self._next_draw = 0.0

    def started(self) -> None:
        """Says what starts."""
        packing = self.run.submission.packing
        tasks, containers = len(packing.instances), len(packing.containers)
        self._say(f"{self.run.topology} starts: {_count(tasks, 'task')} in {_count(containers, 'container')}")
        for note in self.notes:
            self._say(note)

    def stepped(self) -> None:
        """Shows what is new."""
        self._print_logs()
        self._print_errors()
        self._print_deaths()
        self._print_timeouts()
        if self.run.seconds >= SETTLED:
            self._print_untracked(self.run.status.components if self.run.status else {})
        self._print_silence()
        self._draw()
        if self.run.stage is Stage.RUNNING and self.outdated():
            self._say("a file has changed: the topology starts again")
            self.run.stop()
            self.run.stop()  # what is open is of the former version

    def ended(self, outcome: Outcome) -> None:
        """Sums up."""
        while self._print_logs() and not self._signals:
            pass
        self._display.clear()
        self._print_untracked(outcome.components)
        self._summary(outcome)

    def stopping(self, stage: Stage) -> None:
        """Says what that means, and what the next signal would do."""
        self.interrupted = True
        components = self.run.status.components if self.run.status else {}
        pending = sum(totals.pending for totals in components.values())
        self._say(
            {
                Stage.DRAINING: f"stopping: no new tuples; {_count(pending, 'open tuple')} may finish; "
                "Ctrl-C again ends it at once",
                Stage.TERMINATED: "ending all processes; Ctrl-C again kills them",
                Stage.KILLED: "killing all processes",
            }[stage]
        )

    # --- output -----------------------------------------------------------------------------------------------

    def _say(self, text: str, label: str = "", style: str = "") -> None:
        self._display.clear()
        console.say(text, label, style)

    def _draw(self) -> None:
        run, now = self.run, self.run.seconds
        if run.status is not None:
            self._rates.observe(now, run.status.components)
        if now < self._next_draw:
            return
        self._next_draw = now + 0.25
        waiting = waiting_for(run.status)
        state = "STARTING" if waiting or run.status is None else run.status.state
        if run.stage is not Stage.RUNNING:
            state = "STOPPING"
        line = " · ".join(filter(None, [unfinished(run.status), self._rates.line(now)]))
        self._display.show(state, now, capacity.no_room(run.folder) or waiting or line)

    def _print_logs(self) -> bool:
        """What is new, at most a block of each log, for a flood of prints must not keep signals away; if any."""
        for selection in self._logs:
            for log in _present(self.run.folder, selection):
                if log.path not in self._tails:
                    self._tails[log.path] = log, Tail(log.path, marks=False)
        lines: list[str] = []
        for log, tail in self._tails.values():
            prefix = f"{log.label}: " if len(self._expected()) > 1 else ""
            lines += [f"{prefix}{line}\n" for line in tail.lines(_BLOCK)]
        if not lines:
            return False
        self._display.clear()
        try:
            sys.stdout.write(console.shown("".join(lines)))
            sys.stdout.flush()
        except Unwritable as error:
            self.lost, self._logs, self._tails = error, [], {}
            if self.run.stage is Stage.RUNNING and not self.run.over:
                self.stopping(self.run.stop())
        return True

    def _expected(self) -> list[str]:
        return [i.name for i in self.run.submission.packing.instances if i.component in self._logs]

    def _print_errors(self) -> None:
        """Each task's first exceptions, as they come: the rest is in its log."""
        for error in self.run.status.errors if self.run.status else ():
            kind = error.partition(" (")[0]
            if kind not in self._shown and len(self._shown) < _SHOWN_ERRORS:
                self._shown.add(kind)
                self._say(error, "warning", "yellow")

    def _print_deaths(self) -> None:
        """Each kind of death once: a process that is started again and again looks like one that does nothing.

        Nothing is said of processes that are told to end because another one cannot go on.
        """
        for name, ends in self.run.ends.items() if self.run.stage is Stage.RUNNING else ():
            for end in deaths(ends):
                text = said(end)
                kind = f"{name} {text.partition(' (pid ')[0]}"
                if end.again and kind not in self._shown and len(self._shown) < _SHOWN_ERRORS:
                    self._shown.add(kind)
                    self._say(f"{name} died: {text}; it is started again", "warning", "yellow")

    def _print_timeouts(self) -> None:
        """Once: time-outs where nothing is acked look like a topology that does nothing."""
        plan = self.run.submission.plan
        components = self.run.status.components if self.run.status and not self._timeouts_shown else {}
        for name, totals in ((spout.name, components.get(spout.name, Totals())) for spout in plan.spouts):
            if totals.timed_out and not totals.acked:
                self._timeouts_shown = True
                self._say(
                    f"{_count(totals.timed_out, 'tuple')} of {name} timed out after "
                    f"{Settings.of(plan.config).message_timeout:g} s: nobody acked or failed them. A bolt with "
                    "auto_ack = False must ack or fail each tuple; one that is too slow needs more tasks, or a longer "
                    "topology.message.timeout.secs",
                    "warning",
                    "yellow",
                )

    def _print_untracked(self, components: Mapping[str, Totals]) -> None:
        """Once for each spout: nothing else would say that its rows are sent at most once."""
        plan = self.run.submission.plan
        if Settings.of(plan.config).reliability_mode != "ATLEAST_ONCE":
            return
        for name in (spout.name for spout in plan.spouts if spout.name not in self._untracked):
            totals = components.get(name, Totals())
            if totals.emitted and not (totals.acked or totals.pending or failures(totals) != "0"):
                self._untracked.add(name)
                self._say(
                    f"{name} emits without tup_id: its rows are not tracked, and a row that is lost is not sent again",
                    "note",
                )

    def _print_silence(self) -> None:
        """Once: a spout that has nothing more and does not say so keeps its topology waiting."""
        status, now = self.run.status, self.run.seconds
        components = status.components if status else {}
        spouts = Totals.of_all([components.get(spout.name, Totals()) for spout in self.run.submission.plan.spouts])
        moved = spouts.emitted, spouts.acked, sum(totals.executed for totals in components.values())
        if moved != self._moved[0] or spouts.pending or _ending(status):
            self._moved = moved, now
        elif spouts.emitted and now - self._moved[1] >= SILENCE and not self._silence_shown:
            self._silence_shown = True
            self._say(
                f"no spout has emitted anything for {SILENCE:g} s, and none has called finish(), with which a bounded "
                "topology ends; Ctrl-C ends this one",
                "note",
            )

    def _summary(self, outcome: Outcome) -> None:
        run, name = self.run, self.run.submission.plan.name
        spouts = Totals.of_all([outcome.components.get(spout.name, Totals()) for spout in run.submission.plan.spouts])
        counts = f"after {outcome.seconds:.1f} s: acked {spouts.acked:,}, failed {failures(spouts)}"
        if outcome.state is not RunState.FAILED:
            why = f"; {outcome.reason}" if outcome.reason else ""
            self._say(f"{name} {outcome.state} {counts}{why}; logs: {run.folder}")
            return
        self._say(f"{name} FAILED {counts}: {outcome.reason}", "error", "bold red")
        for error in outcome.errors[:_SHOWN_ERRORS]:
            if error not in outcome.reason:
                self._say(error, "cause", "bold")
        self._say(f"look at {run.log_to_read(outcome)}", "hint", "bold")


def _present(folder: Path, component: str) -> list[LogName]:
    """The component's logs that exist so far."""
    task = re.compile(rf"{re.escape(component)}-\d+")
    return [log for log in log_files(folder) if task.fullmatch(log.path.stem) and log.path.parents[1] != folder]


def _ending(status: Status | None) -> bool:
    """Whether a spout has finished, or the topology does not run."""
    if status is None or status.state != RunState.RUNNING:
        return True
    return any(task.state == TaskState.Name(DONE) for task in status.tasks.values())


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

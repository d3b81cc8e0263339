"""What every scheduler must do: for the tests of whoever writes one (docs/schedulers.md)."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ardea.errors import ArdeaError, ClusterError, Conflict, NotFound, TimedOut, UserError
from ardea.scheduler.next_definition import Change
from ardea.scheduler.schedulers import Deployment, Handle, LogLine, Scheduler, Verdict
from ardea.state.records import RunState

TOPOLOGIES = """
import os

from ardea import Bolt, Grouping, Spout, Topology


class Numbers(Spout):
    outputs = ("number",)

    def initialize(self, config, context):
        self.left = 100

    def next_tuple(self):
        if self.left == 0:
            self.finish()
            return
        self.left -= 1
        self.emit((self.left,), tup_id=self.left)


class Silent(Spout):
    outputs = ("number",)

    def next_tuple(self):
        pass


class Ends(Spout):
    outputs = ("number",)

    def initialize(self, config, context):
        print("this task cannot go on", flush=True)
        os._exit(78)

    def next_tuple(self):
        pass


class Ignore(Bolt):
    def process(self, tup):
        pass


class Bounded(Topology):
    numbers = Numbers.spec()
    ignore = Ignore.spec(inputs={numbers: Grouping.SHUFFLE})


class Endless(Topology):
    numbers = Silent.spec()
    ignore = Ignore.spec(inputs={numbers: Grouping.SHUFFLE})


class Hopeless(Topology):
    numbers = Ends.spec()
    ignore = Ignore.spec(inputs={numbers: Grouping.SHUFFLE})
"""


def check_scheduler(make: Callable[[], Scheduler], folder: Path, *, patience: float = 60.0) -> None:
    """Runs a scheduler through its contract, with topologies of two small tasks each, for real.

    Args:
        make: constructs it, as often as it is called; each stands for another process of a person's.
        folder: an empty one, for the file with the topologies.
        patience: seconds that a topology may take to come up, or to end.

    Raises:
        AssertionError: it does something else; the message says what.
    """
    file = folder / "conformance.py"
    file.write_text(TOPOLOGIES)
    check = _Check(make, file, f"Conformance{secrets.token_hex(3)}", patience)
    try:
        check.refuses_what_is_wrong()
        check.waits_for_the_end()
        check.keeps_what_runs()
        check.tells_what_runs()
        check.shows_its_logs()
        check.passes_orders_on()
        check.restarts()
        check.updates()
        check.ends_what_it_is_told_to()
        check.says_why_one_fails()
    finally:
        check.kill(suppress=True)


class _Check:
    """One scheduler, and one name."""

    def __init__(self, make: Callable[[], Scheduler], file: Path, name: str, patience: float) -> None:
        self._make, self._file, self._name, self._patience = make, file, name, patience

    def refuses_what_is_wrong(self) -> None:
        with self._make() as scheduler:
            missing = self._file.with_name("missing.py")
            with _raises(NotFound, "prepare of a file that is not there"):
                scheduler.prepare(str(missing), {})
            with _raises(UserError, "prepare of a class that is not there"):
                scheduler.prepare(f"{self._file}:Missing", {})
            with _raises(UserError, "prepare with a configuration of a wrong type"):
                scheduler.prepare(f"{self._file}:Endless", {"topology.stmgrs": "many"})
        with self._prepared("Endless"):
            pass
        with _raises(NotFound, "kill of a topology that was only prepared"):
            self.kill()
        with self._make() as scheduler:
            shown = scheduler.preview(f"{self._file}:Endless", {"topology.name": self._name})
            _expect("the name of what a dry run shows", shown.submission.plan.name, self._name)
        with _raises(NotFound, "kill of a topology that a dry run has shown"):
            self.kill()

    def waits_for_the_end(self) -> None:
        with self._submitted("Bounded") as deployment:
            verdict = self._wait(deployment, ended=True)
        _expect("the state when it has ended", verdict.state, RunState.SUCCEEDED)

    def keeps_what_runs(self) -> None:
        """Also when whoever submitted it is gone; under the name of one that has ended."""
        with self._submitted("Endless") as deployment:
            topology = deployment.id
            verdict = self._wait(deployment)
            _expect("the state when it runs", verdict.state, RunState.RUNNING)
            with _raises(TimedOut, "wait for the end of a topology that goes on"):
                deployment.wait(0, ended=True, show=_unseen)
        with self._prepared("Endless") as another:
            if another.id == topology:
                raise AssertionError("prepare gives two topologies one id")
            with _raises(Conflict, "submit under a name that runs"):
                another.submit(_unheard)

    def tells_what_runs(self) -> None:
        with self._make() as scheduler:
            known = [topology for topology in scheduler.topologies() if topology.name == self._name]
            _expect("the topologies of this name that run", [topology.running for topology in known], [True])
        with self._found() as found:
            _expect("the id of what is found", found.id, known[0].id)
            _expect("whether it runs, looked at again", found.runs(), True)
            _expect("the id in the definition", found.definition().topology, found.id)
            description = found.describe()
            if description.status is None:
                raise AssertionError(f"describe has no status of a topology that runs: {description.silence}")
            _expect("the state in describe", description.status.state, RunState.RUNNING)
            _expect("the tasks in describe", sorted(description.status.tasks), ["ignore-0", "numbers-0"])
            untold = {"container-1", "ignore-0", "numbers-0"} - description.status.stories.keys()
            _expect("of whom describe has no story", untold, set())
            _expect("the components in its history", sorted(found.history().series), ["ignore", "numbers"])
            _expect("the exceptions of a topology that raises none", found.exceptions(), [])
            missing = {"ignore-0", "numbers-0"} - {process.name for process in description.processes}
            _expect("the tasks whose processes describe lacks", missing, set())
        with self._make() as scheduler, _raises(NotFound, "find of a topology that there is not"):
            scheduler.find(f"{self._name}Missing")

    def shows_its_logs(self) -> None:
        """And what a task writes into its log when it is asked for its stacks."""
        with self._make() as scheduler, scheduler.logs(self._name) as logs:
            _expect("the logs of a component", logs.names("ignore"), ["ignore-0"])
            _expect("the logs of a task", logs.names("numbers:0"), ["numbers-0"])
            with _raises(NotFound, "the names of logs of a component that there is not"):
                logs.names("missing")
            labels = {line.label for line in logs.lines("ignore") if line is not None}
            _expect("the labels of a log's lines", labels - {"ignore-0"}, set())
            with self._found() as found:
                lines = logs.lines("ignore:0", follow=True, tail=0)
                _expect("the first of a log that is followed from now on", next(lines), None)
                found.dump("ignore-0")
                self._until("a stack in the log of ignore-0", lines, lambda line: "Current thread" in line.text)

    def passes_orders_on(self) -> None:
        with self._found() as found, found.control() as control:
            for verb, state in (("deactivate", RunState.PAUSED), ("activate", RunState.RUNNING)):
                _expect(f"the state that {verb} answers", control.ask(verb).state, state)
            with _raises(ArdeaError, "a verb that there is not"):
                control.ask("missing")

    def restarts(self) -> None:
        with self._found() as found:
            with found.control() as control:
                before = control.ask("status").tasks
            _expect("the containers that restart names", found.restart(1, self._patience), [1])
            with found.control() as control:
                after = control.ask("status").tasks
            _expect(
                "the tasks with a new life", [n for n in sorted(before) if after[n].life > before[n].life], [*before]
            )
            with _raises(NotFound, "restart of a container that there is not"):
                found.restart(99, self._patience)

    def updates(self) -> None:
        with self._found() as found:
            with _raises(UserError, "update of a component that there is not"):
                found.update(Change(parallelism={"missing": 2}), None)
            with found.update(Change(parallelism={"ignore": 2}), None) as update:
                _expect("the tasks that an update would start", update.difference.started, ["ignore-1"])
                update.apply(self._patience, _unheard)
        with self._found() as found, found.control() as control:
            status = control.ask("status")
            _expect("the tasks after an update", sorted(status.tasks), ["ignore-0", "ignore-1", "numbers-0"])
            _expect("the plan after an update", status.epoch, 2)

    def ends_what_it_is_told_to(self) -> None:
        self.kill()
        with _raises(NotFound, "kill of a topology that is gone"):
            self.kill()
        with self._make() as scheduler, _raises(NotFound, "find of a topology that is gone"):
            scheduler.find(self._name)

    def says_why_one_fails(self) -> None:
        """Under the name of one that was killed."""
        with self._submitted("Hopeless") as deployment:
            try:
                verdict = self._wait(deployment, ended=True)
            except ClusterError as error:
                if isinstance(error, TimedOut):
                    raise AssertionError("a process ended with exit code 78, and the topology goes on") from error
                why = error.message
            else:
                _expect("the state of one that fails", verdict.state, RunState.FAILED)
                why = verdict.reason
        if "numbers-0" not in why:
            raise AssertionError(f"the reason of a failure names no task: {why!r}")
        self.kill()

    def kill(self, *, suppress: bool = False) -> None:
        with contextlib.suppress(*((ArdeaError,) if suppress else ())), self._make() as scheduler:
            scheduler.kill(self._name, 5.0, _unheard)

    @contextlib.contextmanager
    def _prepared(self, topology: str) -> Iterator[Deployment]:
        overrides: Mapping[str, Any] = {"topology.name": self._name}
        with self._make() as scheduler, scheduler.prepare(f"{self._file}:{topology}", overrides) as deployment:
            _expect("the name of what is prepared", deployment.submission.plan.name, self._name)
            yield deployment

    @contextlib.contextmanager
    def _submitted(self, topology: str) -> Iterator[Deployment]:
        with self._prepared(topology) as deployment:
            deployment.submit(_unheard)
            yield deployment

    @contextlib.contextmanager
    def _found(self) -> Iterator[Handle]:
        with self._make() as scheduler, scheduler.find(self._name) as found:
            yield found

    def _until(self, what: str, lines: Iterator[LogLine | None], wanted: Callable[[LogLine], bool]) -> None:
        deadline = time.monotonic() + self._patience
        for line in lines:
            if line is not None and wanted(line):
                return
            if time.monotonic() >= deadline:
                break
        raise AssertionError(f"{what}: not within {self._patience:g} s")

    def _wait(self, deployment: Deployment, *, ended: bool = False) -> Verdict:
        return deployment.wait(self._patience, ended=ended, show=_unseen)


def _expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: {found!r}, expected {wanted!r}")


@contextlib.contextmanager
def _raises(kind: type[ArdeaError], what: str) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    except Exception as error:
        raise AssertionError(f"{what} raises {type(error).__name__}, expected {kind.__name__}: {error}") from error
    raise AssertionError(f"{what} raises nothing, expected {kind.__name__}")


def _unheard(_: str) -> None:
    """Nobody listens."""


def _unseen(_: str, __: str) -> None:
    """Nobody looks."""

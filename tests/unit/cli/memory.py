"""A scheduler that runs nothing: topologies are entries of a dictionary, and behave as they are called."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import msgspec
import typer

from ardea.errors import ArdeaError, ClusterError, Conflict, NotFound, TimedOut, Unreachable
from ardea.health import ProcessRow
from ardea.metrics import Samples
from ardea.plan.wire import packing_from_bytes
from ardea.protocol.incarnations import incarnation
from ardea.scheduler.control import Status, TaskStatus
from ardea.scheduler.difference import difference
from ardea.scheduler.next_definition import next_of, plan_of
from ardea.scheduler.schedulers import Deployment, Description, Handle, LogLine, Logs, Scheduler, Update, Verdict
from ardea.scheduler.submission import Submission
from ardea.state.records import ExecutionState, RunState
from ardea.state.topologies import TopologyStatus

RUNNING: dict[str, Entry] = {}
"""By name."""


def entry(topology: str) -> Entry:
    for each in RUNNING.values():
        if topology in (each.id, each.name):
            return each
    raise NotFound(f"no topology is called {topology}")


class Memory(Scheduler):
    """Start nothing at all."""

    start_secs = 5.0
    finds_by = ("shelf",)
    updates_by = ("copies",)

    def __init__(self, shelf: Annotated[str, typer.Option(help="Where it is kept.")] = "top", copies: int = 1):
        self.shelf, self.copies, self.place = shelf, copies, f"shelf {shelf}"

    def prepare(self, target, overrides, begins=None):
        return Entry(Submission.of(target, overrides, "/nowhere"), self)

    def topologies(self):
        return [each.status for each in RUNNING.values()]

    def find(self, topology):
        return Found(entry(topology), self)

    def logs(self, topology):
        return Paper(entry(topology))

    def kill(self, topology, wait_secs, say):
        del RUNNING[entry(topology).name]


class Entry(Deployment):
    options = " --shelf top"

    def __init__(self, submission, scheduler):
        self.submission, self.place = submission, f"shelf {scheduler.shelf}"
        self.where = {"shelf": scheduler.shelf, "copies": str(scheduler.copies)}
        self.name = submission.plan.name
        self.kind = submission.topology_class
        self.definition = submission.definition
        self.state, self.life, self.raised = "RUNNING", 1, []
        self.printed = {name: ["it begins"] for name in self.tasks}

    @property
    def tasks(self):
        return [i.name for i in packing_from_bytes(self.definition.packing).instances]

    @property
    def status(self):
        return TopologyStatus(self.id, self.submission.record(), ExecutionState(RunState(self.state)), True)

    def submit(self, say):
        if self.name in RUNNING:
            raise Conflict(f"a topology named {self.name} is running")
        say("it is dusty here")
        RUNNING[self.name] = self

    def wait(self, patience, *, ended, show):
        show("STARTING", "waiting for nobody")
        if self.kind == "Hopeless":
            raise ClusterError(f"{self.id} FAILED before it ran: numbers-0 ended with exit code 78")
        if self.kind == "Bounded" and ended:
            del RUNNING[self.name]
            return Verdict(RunState.SUCCEEDED)
        if ended:
            raise TimedOut(f"{self.id} has not ended after {patience:g} s; it goes on")
        return Verdict(RunState.RUNNING)


class Found(Handle):
    options = " --shelf top"

    def __init__(self, entry, scheduler):
        self.entry, self.scheduler, self.topology = entry, scheduler, entry.status

    def look(self):
        return entry(self.id).status

    def describe(self):
        rows = [ProcessRow(1, name, "running", None, 1, 0, None, "", "") for name in self.entry.tasks]
        return Description(topology=self.look(), status=self.ask("status"), silence="", kept_by=None, processes=rows)

    def definition(self):
        return self.entry.definition

    def code(self):
        return self.entry.submission.code

    def control(self):
        return nullcontext(self)

    def ask(self, verb, *, patience=5.0, body=b"", **arguments):
        if verb == "inspect":
            raise Unreachable(f"the master of {self.id} did not answer `inspect`")
        if verb not in ("status", "activate", "deactivate", "debug", "history"):
            raise ArdeaError(f"the master knows no verb {verb!r}")
        self.entry.state = {"activate": "RUNNING", "deactivate": "PAUSED"}.get(verb, self.entry.state)
        packing = packing_from_bytes(self.entry.definition.packing)
        life = incarnation(1, self.entry.life)
        tasks = {i.name: TaskStatus("ACTIVE", life, 0, i.resource) for i in packing.instances}
        epoch, stories = self.entry.definition.epoch, {name: [(1.0, "came", 1)] for name in (*tasks, "container-1")}
        history = self.samples(**arguments) if verb == "history" else None
        more = {
            "stories": stories,
            "history": history,
            "exceptions": self.entry.raised if "exceptions" in arguments else [],
        }
        return Status(self.id, self.entry.state, "", 1, epoch, [], [], 0, [], None, tasks, {}, [], **more)

    def samples(self, names, since, **_):
        """One each five seconds up to the hundredth; the value is the time."""
        times = [at for at in range(5, 101, 5) if at > float(since)]
        chosen = names.split(",") if names else ["ignore", "numbers"]
        return Samples(1.0, 5.0, [*map(float, times)], {name: {"executed": [*times]} for name in chosen})

    def dump(self, task):
        self.entry.printed[task].append("Current thread 0x1 (most recent call first):")

    def restart(self, container, patience):
        if container not in (None, 1):
            raise NotFound(f"{self.id} has no container {container}")
        self.entry.life += 1
        return [1]

    def update(self, change, target):
        present = self.entry.definition
        next_ = next_of(
            present, change, lambda config: plan_of(target or present.location, config), half_done=False
        )  # fmt: skip
        return Pending(self.entry, next_)


class Pending(Update):
    def __init__(self, entry, next_):
        self.entry, self.next_, self.difference = entry, next_, difference(entry.definition, next_)

    def apply(self, patience, say):
        say("it is moved")
        self.entry.definition = msgspec.structs.replace(self.next_)


class Paper(Logs):
    def __init__(self, entry):
        self.entry = entry

    def names(self, selection=None):
        wanted = (selection or "").replace(":", "-")
        found = [name for name in self.entry.tasks if wanted in ("", name, name.rpartition("-")[0])]
        if not found:
            raise NotFound(f"{self.entry.id} has no log of {selection}")
        return found

    def lines(self, selection=None, *, follow=False, tail=None, since=None):
        names = self.names(selection)
        kept = {name: len(self.entry.printed[name]) for name in names}
        read = {name: 0 if tail is None else max(0, kept[name] - tail) for name in names}
        while True:
            for name in names:
                fresh = self.entry.printed[name][read[name] :]
                read[name] += len(fresh)
                yield from (LogLine(name, text) for text in fresh)
            if not follow:
                return
            yield None

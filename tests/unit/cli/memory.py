"""A scheduler that runs nothing: topologies are entries of a dictionary, and behave as they are called."""

from __future__ import annotations

from typing import Annotated

import typer

from ardea.errors import ClusterError, Conflict, NotFound, TimedOut
from ardea.scheduler.schedulers import Deployment, Scheduler, Verdict
from ardea.scheduler.submission import Submission
from ardea.state.records import RunState

RUNNING: dict[str, str] = {}
"""Name -> id."""


class Memory(Scheduler):
    """Start nothing at all."""

    start_secs = 5.0

    def __init__(self, shelf: Annotated[str, typer.Option(help="Where it is kept.")] = "top", copies: int = 1):
        self.shelf, self.copies = shelf, copies

    def prepare(self, target, overrides):
        return Entry(Submission.of(target, overrides, "/nowhere"), self)

    def kill(self, topology, wait_secs, say):
        if RUNNING.pop(topology, None) is None:
            raise NotFound(f"no topology is called {topology}")


class Entry(Deployment):
    options = " --shelf top"

    def __init__(self, submission, scheduler):
        self.submission, self.place = submission, f"shelf {scheduler.shelf}"
        self.where = {"shelf": scheduler.shelf, "copies": str(scheduler.copies)}
        self.name = submission.plan.name
        self.kind = submission.topology_class

    def submit(self, say):
        if self.name in RUNNING:
            raise Conflict(f"a topology named {self.name} is running")
        say("it is dusty here")
        RUNNING[self.name] = self.id

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

"""How soon a topology is seen in a browser: ``python -m benchmarks.console_page --tasks 1000``.

The console, its REST interface, the page and Chromium run as they are; what a master answers is made here, as long and
as nested as that of so many tasks, and is decoded as an answer is.  A round starts a console, opens the link of the
topology (*cold*: nobody has asked for it before), and opens it once more (*warm*).

*graph*: every component is drawn; *rates*: with what it does, for which a master has to be asked twice, a second apart.
Seconds are those of the page, from the begin of its navigation.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from ardea.console import decoding, serving
from ardea.console.app import application
from ardea.console.asking import Asker
from ardea.console.desk import Desk
from ardea.console.pages import read
from ardea.console.questions import PACES, Questions
from ardea.console.tokens import Hosts, Tokens
from ardea.drpc.connections import BoundedConnection
from ardea.errors import NotFound, UserError
from ardea.health import Health, HealthState, ProcessRow
from ardea.metrics import SECONDS, Edge, ProcessTotals, Samples, Totals
from ardea.plan.wire import packing_from_bytes
from ardea.protocol.incarnations import incarnation
from ardea.protocol.wire_pb2 import Answer
from ardea.scheduler.control import Status, StoryEvent, TaskStatus, status_in
from ardea.scheduler.registry import Place
from ardea.scheduler.schedulers import Description, Handle, Scheduler
from ardea.scheduler.submission import Submission
from ardea.state.records import ExecutionState, RunState
from ardea.state.topologies import TopologyStatus
from ardea.versions import PROTOCOL
from tests.process.console.browser import Browser, browser

COMPONENTS = 10
RATE = 1000
"""Rows a second and task."""
FILE = """
from ardea import Bolt, Grouping, Spout, Topology

class Numbers(Spout):
    outputs = ("number",)
    def next_tuple(self):
        pass

class Pass(Bolt):
    outputs = ("number",)
    def process(self, tup):
        pass

class Wide(Topology):
    numbers = Numbers.spec(par={tasks})
{bolts}
    config = {{"heron.resources.instance.cpu": 0.01, "topology.container.cpu.padding": 0.01}}
"""
BOLT = "    bolt{number} = Pass.spec(par={tasks}, inputs={{{reads}: Grouping.SHUFFLE}})"
SEEN = {
    "graph": "document.querySelectorAll('.nodes > *').length >= arguments[0]",
    "rates": "[...document.querySelectorAll('.nodes > *')].filter((n) => /[1-9][\\d.,k]*\\/s/.test(n.innerText)).length"
    " >= arguments[0]",
}
LOOK = """
const done = arguments[1], look = () => {{
  if ({seen}) requestAnimationFrame(() => done(performance.now() / 1000));
  else requestAnimationFrame(look);
}};
look();
"""


def submission(tasks: int) -> Submission:
    """A chain of ten components with so many tasks together, twenty a container."""
    each = tasks // COMPONENTS
    names = ["numbers", *(f"bolt{number}" for number in range(1, COMPONENTS))]
    bolts = [BOLT.format(number=n, tasks=each, reads=names[n - 1]) for n in range(1, COMPONENTS)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "wide.py"
        file.write_text(FILE.format(tasks=each, bolts="\n".join(bolts)))
        return Submission.of(str(file), {"topology.stmgrs": max(1, tasks // 20)}, "/nowhere")


class Wide(Handle):
    """The topology, and its master."""

    def __init__(self, made: Submission) -> None:
        self.made, self.began = made, time.monotonic() - 1000
        execution = ExecutionState(RunState.RUNNING, came_up=True)
        self.topology = TopologyStatus(made.definition.topology, made.record(), execution, True)
        self.packing = packing_from_bytes(made.definition.packing)

    def look(self) -> TopologyStatus:
        return self.topology

    def definition(self) -> Any:
        return self.made.definition

    def control(self) -> Any:
        return nullcontext(self)

    def ask(self, verb: str, *, patience: float = 5.0, body: bytes = b"", **arguments: str) -> Status:  # noqa: ARG002
        status = self._status()
        if verb == "history":
            names = arguments["names"].split(",") if arguments["names"] else [c.name for c in self.made.plan]
            status = msgspec.structs.replace(status, history=_samples(names))
        return status_in(Answer(ok=True, body=msgspec.json.encode(status)), PROTOCOL, self.id)

    def describe(self) -> Description:
        status = self.ask("status")
        return Description(
            topology=self.topology,
            status=status,
            silence="",
            kept_by=None,
            processes=status.supervised,
            health=status.health,
        )

    def dump(self, task: str) -> None:  # noqa: ARG002
        raise UserError("there is no process")

    def restart(self, container: int | None, patience: float) -> list[int]:  # noqa: ARG002
        raise UserError("there is no process")

    def update(self, change: Any, target: str | None) -> Any:  # noqa: ARG002
        raise UserError("there is no process")

    def _status(self) -> Status:
        seconds = time.monotonic() - self.began
        count, life = int(seconds * RATE), incarnation(1, 1)
        spread = (*[count // len(SECONDS)] * len(SECONDS), 0, count * 1e-4)
        totals = Totals(
            tasks=1, emitted=count, executed=count, acked=count, busy_seconds=seconds / 2, cpu_seconds=seconds / 2,
            execute_duration=spread, complete_latency=spread, pending=100, resident_memory_bytes=60 << 20, threads=5,
        )  # fmt: skip
        places = [(i, c.number) for c in self.packing.containers for i in c.instances]
        processes = [ProcessTotals(at, i.name, i.component, i.task, totals) for i, at in places]
        managers = [ProcessTotals(c.number, "stream-manager", "", 0, totals) for c in self.packing.containers]
        rows = [ProcessRow(at, i.name, "running", 1000 + i.task, 1, 0, None, "", "") for i, at in places]
        edges = [
            Edge(source=i.component, stream=i.stream, target=c.name, grouping="shuffle", tuples=count, rate=float(RATE))
            for c in self.made.plan
            for i in c.inputs
        ]
        return Status(
            self.id, "RUNNING", "", 1, self.made.definition.epoch, [], [], 0, [], None,
            {i.name: TaskStatus("ACTIVE", life, 0, i.resource) for i, _ in places},
            {c.name: totals for c in self.made.plan}, processes + managers,
            came_up=True, health=Health(HealthState.HEALTHY), supervised=rows, edges=edges,
            stories={i.name: [StoryEvent(1000.0, "came up", 1)] for i, _ in places},
        )  # fmt: skip


def _samples(names: list[str]) -> Samples:
    now = time.time()
    times = [now - 5.0 * ago for ago in range(180, 0, -1)]
    fields = ("executed", "emitted", "acked", "failed", "latency_p50", "latency_p99", "capacity", "back_pressure",
              "initiates", "cpu", "resident_memory_bytes", "pending", "queued_bytes")  # fmt: skip
    return Samples(now - 1000, 5.0, times, {name: {each: [0.5] * len(times) for each in fields} for name in names})


class Simulated(Scheduler):
    """Has one topology."""

    place = "nowhere"

    def __init__(self, made: Submission) -> None:
        self._wide = Wide(made)

    def prepare(self, target: str, overrides: Any, begins: Any = None) -> Any:  # noqa: ARG002
        raise UserError("nothing can be submitted here")

    def topologies(self) -> list[TopologyStatus]:
        return [self._wide.topology]

    def find(self, topology: str) -> Handle:  # noqa: ARG002
        return self._wide

    def logs(self, topology: str) -> Any:  # noqa: ARG002
        raise NotFound("there are no logs")

    def kill(self, topology: str, wait_secs: float, say: Any) -> None:  # noqa: ARG002
        raise UserError("it has no processes")


@contextlib.contextmanager
def console(made: Submission) -> Iterator[str]:
    """The link of one that has just been started."""
    decoding.prepare()
    scheduler, tokens = Simulated(made), Tokens.fresh(act=True)
    asker = Asker(Questions(scheduler).all, PACES)
    desk = Desk(Place("simulated"), scheduler, asker, tokens, Hosts(), read())
    with serving.listen(serving.LOOPBACK, 0) as opened:
        server = uvicorn.Server(uvicorn.Config(application(desk), http=BoundedConnection, log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        try:
            yield serving.link(opened, tokens.act or "", made.plan.name)
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def seen(page: Browser, link: str) -> dict[str, float]:
    """Seconds from the begin of the navigation."""
    page.open("about:blank")
    page.open(link)
    return {what: page.awaited(LOOK.format(seen=condition), COMPONENTS) for what, condition in SEEN.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200, help="a multiple of ten")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    made = submission(given.tasks)
    found: dict[tuple[str, str], list[float]] = {}
    with browser() as page:
        for _ in range(given.rounds):
            with console(made) as link:
                for how in ("cold", "warm"):
                    for what, seconds in seen(page, link).items():
                        found.setdefault((how, what), []).append(seconds)
    print(f"{len(made.packing.instances):,} tasks in {len(made.packing.containers)} containers, {given.rounds} rounds")
    for (how, what), all_ in found.items():
        print(f"{how} {what}: median {statistics.median(all_):.2f} s, {min(all_):.2f} to {max(all_):.2f}")


if __name__ == "__main__":
    main()

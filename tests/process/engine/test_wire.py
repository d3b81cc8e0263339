"""What passes between containers: payload frames unread, values equal, rows in order though the link is cut."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from ardea.heron_instance.gateway import Gateway
from ardea.heron_instance.messages import OutMessage
from ardea.protocol.flow import Window
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import MANY, ONE, ROWS, UNTRACKED, Header, Hello, Plan
from ardea.scheduler.local_processes import LocalProcesses
from ardea.transport import Dialled, context
from ardea.versions import PROTOCOL
from tests.process.engine.running import Running
from tests.sizes import size

pytestmark = pytest.mark.cluster


@pytest.fixture
def cuttable(monkeypatch):
    """Stream managers whose TCP connections SIGUSR2 cuts."""
    module = LocalProcesses._module

    def replaced(self, name, *args):
        command = module(self, name, *args)
        if name != "ardea.stream_manager":
            return command
        return (sys.executable, "-P", str(Path(__file__).with_name("cut_manager.py")), *command[4:])

    monkeypatch.setattr(LocalProcesses, "_module", replaced)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("cuttable")
def test_rows_stay_in_order_and_values_equal_while_the_link_is_cut(tmp_path):
    """Streams alternate, flushes have 1 to 10,000 rows; none is lost, doubled or overtaken."""
    with Running("wire.py:Wire", tmp_path) as topology:
        topology.running()
        place = {i.name: topology.packing.container_of(i.task) for i in topology.packing.instances}
        assert sorted(place[f"in_order-{n}"] for n in (0, 1)) == [1, 2]
        far = next(f"in_order-{n}" for n in (0, 1) if place[f"in_order-{n}"] != place["alternating-0"])
        managers = [topology.pid(f"container-{n}/stream-manager") for n in (1, 2)]
        topology.grows("executed", far, 10_000)

        def resent():
            return sum(sum(topology.metrics(n, "ardea_stmgr_resends_total").values()) for n in (1, 2))

        cuts = 0
        while cuts < size(6, 200) or not resent():
            assert cuts < 400, "no cut ever lost a message"
            os.kill(managers[cuts % 2], signal.SIGUSR2)
            cuts += 1
            topology.grows("executed", far, 10_000)
        topology.raise_flag("enough")
        topology.finish()
        assert [topology.processes()[f"container-{n}/stream-manager"]["life"] for n in (1, 2)] == [1, 1]
    [emitted] = topology.left("alternating")
    assert emitted > 20_000
    assert topology.left("in_order") == [{"next": emitted, "wrong": [], "streams": ["even", "odd"]}] * 2
    every = list(range(len(topology.module.VALUES)))
    assert topology.left("compare") == [{"equal": every, "wrong": []}] * 2


class Played:
    """A task that the test plays: the instance's own gateway on real sockets, and no user code."""

    def __init__(self, topology: Running, task: int, zmq) -> None:
        place = topology.packing.container_of(task)
        spec = json.loads((topology.folder / f"container-{place}" / "spec.json").read_text())
        argv = next(process["argv"] for process in spec["processes"] if process["name"] == "stream-manager")
        definition = topology.run.submission.definition
        self.received: list[tuple[Header, list[bytes]]] = []
        self.window = Window(1 << 20, 5.0)
        hello = Hello(
            protocol=PROTOCOL,
            topology=topology.run.topology,
            digest=definition.shape.digest,
            digests=definition.shape.digests,
            task=task,
            epoch=definition.epoch,
            build=definition.build,
        )
        self.gateway = Gateway(hello, 1, self.window, self._send, self)
        self.sockets = {
            lane: Dialled(zmq, b"t%d" % task, argv[argv.index(option) + 1])
            for lane, option in ((Lane.CONTROL, "--control"), (Lane.DATA, "--data"))
        }

    def _send(self, _link: Link, lane: Lane, message: list[bytes]) -> None:
        self.sockets[lane].send(message)

    def planned(self, plan: Plan) -> None:
        """It knows."""

    def reborn(self) -> None:
        """No manager dies here."""

    def deliver(self, header: Header, frames: list[bytes], size: int) -> None:
        if header.kind == ROWS:
            self.received.append((header, list(frames)))
            self.gateway.consumed(header, size)
            self.window.consumed(header.rows, size, 1e-3)

    def step(self) -> None:
        for lane, dialled in self.sockets.items():
            for frames in dialled.receive(64):
                self.gateway.received(lane, Header.FromString(frames[0]), frames[1:], time.monotonic())
        self.gateway.tick(time.monotonic())


def test_payload_frames_of_random_bytes_pass_two_managers_unchanged(tmp_path, monkeypatch):
    """Nothing in them is rows, nor ids of trees that there are: a manager that read them would stumble."""
    workers = LocalProcesses._workers
    monkeypatch.setattr(LocalProcesses, "_workers", lambda self, plan: workers(self, plan)[:2])  # the managers alone
    chance = random.Random(28)
    sent = [(1, [b""]), (1, [b"\xc1"]), (1, [chance.randbytes(3_000_000)])]
    for _ in range(300):
        values, rows = chance.randbytes(int(10 ** chance.uniform(0, 5))), int(10 ** chance.uniform(0, 4))
        sizes = chance.choice([(), (8 * rows,) * 2, (4 * rows + 4, 80, 80)])
        sent.append((rows, [values, *map(chance.randbytes, sizes)]))
    zmq = context()
    try:
        with Running("wire.py:Pair", tmp_path) as topology:
            task = {i.component: i.task for i in topology.packing.instances}
            assert len({topology.packing.container_of(each) for each in task.values()}) == 2
            near, far = (Played(topology, task[name], zmq) for name in ("near", "far"))
            for rows, frames in sent:
                header = Header(
                    kind=ROWS,
                    source=task["near"],
                    target=task["far"],
                    rows=rows,
                    ids={1: UNTRACKED, 3: ONE, 4: MANY}[len(frames)],
                    epoch=topology.run.submission.definition.epoch,
                )
                near.gateway.offer(OutMessage(header, frames, rows, sum(map(len, frames))))

            def arrived():
                near.step()
                far.step()
                return len(far.received) >= len(sent)

            topology.until(arrived, "all batches arrived")
            lives = [topology.processes()[f"container-{n}/stream-manager"]["life"] for n in (1, 2)]
    finally:
        zmq.destroy(linger=0)
    assert [(header.rows, frames) for header, frames in far.received] == sent
    assert {(h.source, h.target) for h, _ in far.received} == {(task["near"], task["far"])}
    assert lives == [1, 1]

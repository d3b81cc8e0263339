"""A container that was replaced, as on a machine that was cut off and is back: its stream manager goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import msgspec
import pytest

from ardea.errors import ExitCode
from ardea.transport import ipc_address
from stream_manager.process import Remembered
from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster

ROWS = 1000


def test_a_manager_whose_container_was_replaced_is_refused_and_disturbs_nobody(tmp_path):
    """It knows all that it knew, talks to its peers and to the master under its old number, and ends."""
    with Running("survivors.py", tmp_path) as topology:
        topology.running()
        topology.grows("acked", "numbers", ROWS)
        [sink] = [i.task for i in topology.packing.instances if i.component == "arrived"]
        number = 3 - topology.packing.container_of(sink)  # the other one
        folder = topology.folder / f"container-{number}"
        former = msgspec.msgpack.decode((folder / "manager.plan").read_bytes(), type=Remembered)
        os.kill(topology.pid(folder.name), signal.SIGKILL)
        topology.until(lambda: remembered(folder).admission > former.admission, "another container is admitted")
        for n in (0, 1):
            topology.grows("acked", f"numbers-{n}", ROWS)
            topology.grows("executed", f"through-{n}", ROWS)

        before = topology.processes()
        manager = replaced(topology, folder.name, former)
        try:
            code = topology.until(lambda: manager.poll(), "it ends")
        finally:
            manager.kill()
            _, said = manager.communicate()
        assert (code, f"REPLACED: container {number} stood still" in said) == (ExitCode.TEMPORARY, True), said
        for n in (0, 1):
            topology.grows("acked", f"numbers-{n}", ROWS)
            topology.grows("executed", f"through-{n}", ROWS)
        assert topology.processes() == before
        topology.raise_flag("enough")
        outcome = topology.finish()
    [arrived] = topology.left("arrived")
    assert arrived["different"] == arrived["ends"]
    assert outcome.components["numbers"].timed_out == 0


def remembered(folder):
    return msgspec.msgpack.decode((folder / "manager.plan").read_bytes(), type=Remembered)


def replaced(topology, container, former):
    """The manager that ``former`` was kept by, with folder, sockets and ports of its own."""
    folder = topology.out / "replaced"
    folder.mkdir()
    plan = msgspec.structs.replace(former, data_port=0, control_port=0)
    (folder / "manager.plan").write_bytes(msgspec.msgpack.encode(plan))
    spec = json.loads((topology.folder / container / "spec.json").read_text())
    [argv] = [process["argv"] for process in spec["processes"] if process["name"] == "stream-manager"]
    argv[argv.index("--folder") + 1] = str(folder)
    for socket in ("control", "data", "metrics"):
        argv[argv.index(f"--{socket}") + 1] = ipc_address(folder, f"{topology.run.topology}-replaced-{socket}")
    return subprocess.Popen(
        argv,
        env={**os.environ, "ARDEA_SUPERVISOR_ID": former.holder},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )

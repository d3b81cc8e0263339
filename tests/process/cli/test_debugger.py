"""`ardea run --attach`: a debugger stops in a task of the second container, for longer than anybody waits else."""

from __future__ import annotations

import json
import threading

import pytest

from tests.machine import patient
from tests.process.cli.dap import Debugger
from tests.process.ports import free_ports

pytestmark = pytest.mark.cluster
HELD = 13.0
"""Seconds; a supervisor takes a process for dead after ten, and the message timeout would be two."""
TOPOLOGY = """\
from ardea import Bolt, Grouping, Spout, Topology

class Numbers(Spout):
    outputs = ["number"]

    def initialize(self, config, context):
        self.numbers = iter(range(200))

    def next_tuple(self):
        number = next(self.numbers, None)
        if number is None:
            self.finish()
        else:
            self.emit([number], tup_id=number)

class Double(Bolt):
    outputs = ["double"]

    def process(self, tup):
        double = 2 * tup["number"]
        self.emit([double])  # here

class Print(Bolt):
    def process(self, tup):
        breakpoint()
        print(tup["double"])

class Doubles(Topology):
    numbers = Numbers.spec()
    double = Double.spec(inputs=[numbers], par=2)
    printed = Print.spec(inputs=[double])
    config = {"topology.message.timeout.secs": 2}
"""


@pytest.mark.thorough
def test_it_stops_reads_a_variable_and_goes_on(start, ardea, tmp_path):
    file = tmp_path / "doubles.py"
    file.write_text(TOPOLOGY)
    line = TOPOLOGY.splitlines().index("        self.emit([double])  # here") + 1
    [port] = free_ports(1)
    options = ("--containers", 2, "--attach", "double:1", "--port", port, "-o", "json")
    run = start("run", file, *options)
    with Debugger(port) as debugger:
        debugger.attach(str(file), line)
        frame = debugger.stopped()
        assert (frame["name"], frame["line"]) == ("process", line)
        assert int(debugger.value(frame, "double")) == 2 * int(debugger.value(frame, "tup['number']"))
        placed = {
            row["name"]: row["container"]
            for row in json.loads(ardea("describe", "Doubles", "-o", "json").stdout)["processes"]
        }
        threading.Event().wait(HELD)
        others = ardea("logs", "Doubles", "printed").stdout.splitlines()
        threads = json.loads(ardea("debug", "stacks", "Doubles", "double:1", "-o", "json").stdout)["threads"]
        (gateway,) = (thread for thread in threads if thread["name"] == "gateway")
        assert "do_wait_suspend" not in str(gateway), "it works on"
        done = len([text for text in others if text.isdigit()])
        assert done >= 10, "the other task goes on, as long as the spout may have open trees"
        debugger.go_on(frame)
        out, err = run.communicate(timeout=patient(60))
    assert run.returncode == 0, err
    assert placed["double-1"] == 2
    assert f"double-1 waits for a debugger at 127.0.0.1:{port}" in err
    numbers = json.loads(out)["components"]["numbers"]
    assert (numbers["acked"], numbers["timed_out"], numbers["failed"]) == (200, 0, 0)
    logs = ardea("logs", "Doubles").stdout
    assert "double-1: --- life 2" not in logs
    assert "in one call of user code" not in logs


def test_a_breakpoint_without_a_debugger_says_how_to_attach(ardea, tmp_path):
    file = tmp_path / "doubles.py"
    file.write_text(TOPOLOGY)
    patience = ("--set", "topology.message.timeout.secs=60")  # a row that is late is printed again
    run = ardea("run", file, *patience, "--logs", "printed")
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("is passed over") == 1
    assert "`ardea run FILE --attach printed:0` stops there in a debugger" in run.stdout
    assert len([line for line in run.stdout.splitlines() if line.isdigit()]) == 200


@pytest.mark.parametrize(
    ("what", "says"), [("doubel", "did you mean 'double'?"), ("double:2", "has the tasks double:0 to double:1")]
)
def test_who_is_not_there_cannot_be_attached_to(ardea, tmp_path, what, says):
    file = tmp_path / "doubles.py"
    file.write_text(TOPOLOGY)
    run = ardea("run", file, "--attach", what)
    assert run.returncode == 6
    assert says in run.stderr

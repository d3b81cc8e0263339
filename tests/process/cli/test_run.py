"""`ardea run` and the verbs beside it, as a person uses them: real processes, real signals."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess

import pytest

from ardea.errors import ExitCode
from tests.machine import patient
from tests.process.cli.verbs import acked, describe, left_in_state, topology, total

pytestmark = pytest.mark.cluster


def test_a_bounded_topology_runs_to_its_end(ardea, state):
    """Exit 0; every tuple is in the final counts; the logs stay, the state is empty."""
    run = ardea("run", topology("Sum"), "--containers", 2, "-o", "json")
    assert run.returncode == ExitCode.OK, run.stderr
    document = json.loads(run.stdout)
    assert document["state"] == "SUCCEEDED"
    assert document["components"]["numbers"]["acked"] == 4000
    assert document["components"]["numbers"]["complete_latency_seconds"]["p99"] > 0
    assert document["components"]["add"]["executed"] == 4000
    assert left_in_state(state) == []
    assert "the sum is 3998000" in ardea("logs", "Sum", "add:0").stdout
    assert "--- life 1 started" in ardea("logs", document["id"], "-f").stdout


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_component_prints_is_shown_alone(ardea, form):
    """With heron.logging.format=json all else is an object a line."""
    run = ardea(
        "run", topology("Sum"), "--logs", "add", "--set", "test.numbers=10", "--set", f"heron.logging.format={form}"
    )
    assert (run.returncode, run.stdout) == (0, "the sum is 90\n"), run.stderr
    for process in ("stream-manager", "topology-master", "metrics-manager", "numbers") if form == "json" else ():
        lines = ardea("logs", "Sum", process).stdout.splitlines()
        said = [json.loads(line[line.index("{") :]) for line in lines]  # a container's name may stand before it
        assert {"life 1 started", "life 1 ended"} <= {
            " ".join(line["message"].split()[:3]).rstrip(",:") for line in said
        }


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("BadValue", ["component numbers", "stream default", "field number", "object"]),
        ("BadSize", ["component numbers", "stream default", "topology.max.tuple.bytes"]),
        ("BadSpout", ["numbers-0 died 3 times", "RuntimeError: the database is closed", "numbers-0.log"]),
        ("BadTexts", ["tuples failed and none was acked", "bad-0 raised ValueError: half \\ud800 a pairxxx"]),
        ("BadTextKills", ["bad-0 died 3 times", "ValueError: half \\ud800 a pair at topologies.py:"]),
        ("BadRow", ["numbers-0 died 3 times", "KeyError", "topologies.py"]),
        (
            "Shifting",
            ["-0 cannot go on", "builds another topology here than was submitted: component ignore differs"],
        ),
        ("BadConfiguration", ["numbers-0 cannot go on", "my.url is not set", "/logs/numbers-0.log"]),
        (
            "BadBolt",
            [
                "tuples failed and none was acked",
                "bad-0 raised ValueError: no number is good enough at topologies.py:",
                "bad-0.log",
            ],
        ),
        (
            "FewBad",
            [
                "given up: ",
                "tuples failed and none was acked",
                "the last error: bad-0 raised ValueError: no number is good",
                "/logs/bad-0.log",
            ],
        ),
    ],
)
def test_a_topology_that_goes_wrong_ends_with_its_cause(ardea, state, name, says):
    run = ardea("run", topology(name), "--give-up", 1, "-o", "json")
    assert run.returncode == ExitCode.FAILED
    assert [text for text in ("error: ", "FAILED", "hint: look at ", *says) if text not in run.stderr] == []
    assert "Traceback" not in run.stderr
    assert len(run.stderr) < 10_000
    document = json.loads(run.stdout)
    assert document["state"] == "FAILED"
    assert document["components"].get("numbers", {"acked": 0})["acked"] == 0, "it may have ended before it told"
    assert left_in_state(state) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_and_ends_everything(start, ardea, deadline, state, number):
    run = start("run", topology("Never"), "--containers", 2)
    deadline(lambda: acked(ardea, "Never"), "tuples are acked")
    run.send_signal(number)
    _, err = run.communicate(timeout=patient(120))
    assert run.returncode == ExitCode.INTERRUPTED
    assert "stopping: no new tuples" in err
    assert "Never KILLED" in err
    assert "still open" not in err
    assert left_in_state(state) == []


def test_a_second_signal_does_not_wait_for_open_tuples(start, ardea, deadline, state):
    run = start("run", topology("Stuck"), "--ui", "--set", "topology.deactivate.drain.secs=1000")
    deadline(lambda: total(ardea, "Stuck", "pending") == 10, "tuples are open")
    link = next(line for line in iter(run.stderr.readline, "") if line.startswith("open http://127.0.0.1:"))
    console = "127.0.0.1", int(link.partition("/#token=")[0].rpartition(":")[2])
    socket.create_connection(console, 5).close()
    for _ in range(2):
        run.send_signal(signal.SIGINT)
        deadline(lambda: run.stderr.readline().startswith(("stopping", "ending")), "the signal is taken")
    run.communicate(timeout=patient(120))
    assert run.returncode == ExitCode.INTERRUPTED
    assert left_in_state(state) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(console, 5).close()


def test_nothing_outlives_a_run_that_was_killed(start, ardea, deadline, leaks):
    """And what it left in the state stands in nobody's way."""
    before = leaks.processes().keys()
    run = start("run", topology("Never"), "--containers", 2)
    deadline(lambda: acked(ardea, "Never"), "tuples are acked")
    run.kill()
    run.communicate()
    deadline(lambda: leaks.processes().keys() <= before, "every process is gone")
    assert "DEAD" in ardea("list").stdout
    assert ardea("doctor").returncode == ExitCode.FAILED
    assert ardea("doctor", "--prune").returncode == ExitCode.OK
    assert json.loads(ardea("list", "-o", "json").stdout) == {"topologies": []}


def test_the_topologys_supervisor_is_missed(start, ardea, deadline, state):
    run = start("run", topology("Never"), "-o", "json")
    deadline(lambda: acked(ardea, "Never"), "tuples are acked")
    (folder,) = (state / "local").iterdir()
    os.kill(json.loads((folder / "status.json").read_text())["pid"], signal.SIGKILL)
    out, _ = run.communicate(timeout=patient(120))
    assert run.returncode == ExitCode.FAILED
    assert "supervisor ended: killed by SIGKILL" in json.loads(out)["reason"]


def test_the_verbs_for_a_running_topology(start, ardea, deadline):
    """list, describe, deactivate, activate, a second run of the name, kill."""
    run = start("run", topology("Never"), "--containers", 2)
    deadline(lambda: acked(ardea, "Never"), "tuples are acked")
    (row,) = json.loads(ardea("list", "-o", "json").stdout)["topologies"]
    assert (row["name"], row["state"], row["running"]) == ("Never", "RUNNING", True)
    told = describe(ardea, row["id"])["status"]
    assert (told["missing_containers"], told["silent_tasks"]) == ([], [])
    assert told["tasks"].keys() == {"numbers-0", "ignore-0", "ignore-1"}
    assert "numbers-0" in ardea("describe", "Never").stdout

    assert ardea("deactivate", "Never").returncode == 0
    deadline(lambda: describe(ardea, "Never")["state"] == "PAUSED", "it is paused")
    assert ardea("activate", "Never").returncode == 0
    before = acked(ardea, "Never")
    deadline(lambda: acked(ardea, "Never") > before, "it goes on")

    again = ardea("run", topology("Never"))
    assert again.returncode == ExitCode.CONFLICT
    assert "a topology named Never is running" in again.stderr

    assert ardea("kill", "Never", "--wait-secs", 5).returncode == 0
    run.communicate(timeout=patient(120))
    assert run.returncode == ExitCode.INTERRUPTED
    assert json.loads(ardea("list", "-o", "json").stdout) == {"topologies": []}
    assert ardea("activate", "Never").returncode == ExitCode.NOT_FOUND


def test_a_kept_topology_is_described_after_its_end(ardea):
    run = ardea("run", topology("Sum"), "--keep", "--set", "test.numbers=1")
    assert run.returncode == 0, run.stderr
    assert describe(ardea, "Sum")["state"] == "SUCCEEDED"
    assert ardea("deactivate", "Sum").returncode == ExitCode.UNREACHABLE
    assert ardea("kill", "Sum").returncode == 0
    assert describe(ardea, "Sum") == {}


def test_a_port_in_use_is_refused_before_anything_starts(ardea, state):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        run = ardea("run", topology("Sum"), "--metrics-port", port)
    assert run.returncode == ExitCode.FAILED
    assert f"127.0.0.1:{port}" in run.stderr
    assert "nothing was started" in run.stderr
    assert not state.exists()


def test_ten_thousand_tasks_are_refused_before_anything_starts(ardea, state):
    """They need 600 GB; how many fit is a matter of what is free now."""
    run = ardea("run", topology("Many"))
    assert run.returncode == ExitCode.FAILED
    said = " ".join(run.stderr.split())
    assert "10,001 tasks (containers: 1) are 10,008 processes" in said
    fit = re.search(r"about ([\d,]+) tasks fit; nothing was started", said)
    assert fit, said
    assert int(fit[1].replace(",", "")) < 10_001
    assert "hint: ask for fewer tasks" in said
    assert not state.exists()


@pytest.mark.parametrize("room", [0, 700])
def test_a_full_disk_is_named_and_nothing_starts(ardea, state, room):
    """A limit on the size of files does what a full disk does, at the first write and later."""
    run = ardea("run", topology("Sum"), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    assert run.returncode == ExitCode.FAILED
    assert str(state) in run.stderr
    assert "File too large" in run.stderr
    assert "hint: free some space" in run.stderr
    assert left_in_state(state) == []
    assert list((state / "local").iterdir()) == []


def test_a_disk_that_is_full_for_a_while_costs_only_time(start, ardea, leaks, deadline, state, tmp_path):
    """The second half is processed meanwhile; the end, which must be written down, waits until there is room."""
    gate, none, all_ = tmp_path / "gate", (0, resource.RLIM_INFINITY), (resource.RLIM_INFINITY,) * 2
    run = start("run", topology("Halves"), "--containers", 2, "--set", f"test.gate={gate}", "-o", "json")

    def its_own():
        return {pid for pid, line in leaks.processes().items() if pid == run.pid or str(state) in line}

    deadline(lambda: acked(ardea, "Halves") == 2000, "half of it is acked")
    masters = {pid for pid, line in leaks.processes().items() if pid in its_own() and "topology_master" in line}
    for pid in its_own():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, none)
    gate.touch()
    deadline(lambda: masters and not masters & leaks.processes().keys(), "the master could not write down the end")
    for pid in its_own():
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, all_)
    out, err = run.communicate(timeout=patient(120))
    assert run.returncode == ExitCode.OK, err
    assert json.loads(out)["components"]["add"]["executed"] == 4000
    assert "the sum is 3998000" in ardea("logs", "Halves", "add:0").stdout
    assert left_in_state(state) == []


def test_a_master_that_has_no_room_to_write_down_the_drain_ends_even_so(start, ardea, leaks, deadline, state):
    run = start("run", topology("Never"))
    deadline(lambda: acked(ardea, "Never"), "tuples are acked")
    for pid, line in leaks.processes().items():
        if str(state) in line and "topology_master" in line:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    run.send_signal(signal.SIGTERM)
    _, err = run.communicate(timeout=patient(120))
    assert run.returncode == ExitCode.INTERRUPTED, err
    assert "Never KILLED" in err
    assert left_in_state(state) == []


def test_whoever_stops_reading_ends_the_run(start, state):
    """`ardea run ... --logs numbers | head -1` leaves nothing running."""
    run = start("run", topology("Chatty"), "--logs", "numbers")
    assert run.stdout.readline() == "a line\n"
    run.stdout.close()
    assert run.wait(timeout=patient(120)) == ExitCode.FAILED
    run.stdout = None
    (error,) = [line for line in run.stderr.read().splitlines() if line.startswith("error: ")]
    assert "stdout cannot be written: Broken pipe; Chatty-" in error
    assert error.endswith(" was stopped for it, and ended KILLED")
    assert left_in_state(state) == []


def test_a_stderr_that_takes_nothing_costs_its_lines_only(ardea, tmp_path):
    with (tmp_path / "empty").open("x"), (tmp_path / "empty").open() as refuses:
        assert ardea("run", topology("Sum"), "--logs", "add", stderr=refuses).stdout == "the sum is 3998000\n"


def test_a_flood_of_prints_does_not_keep_a_signal_away(start, ardea, deadline, state):
    run = start("run", topology("Flood"), "--logs", "floods", stdout=subprocess.DEVNULL)
    deadline(lambda: acked(ardea, "Flood"), "tuples are acked")
    run.send_signal(signal.SIGINT)
    # What the logs hold by then, tens of megabytes, is printed first.
    assert run.wait(timeout=patient(200)) == ExitCode.INTERRUPTED
    assert left_in_state(state) == []

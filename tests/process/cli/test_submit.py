"""The life of a submitted topology: it outlives its submitter, and nothing of it outlives `ardea kill`."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import termios
import urllib.request
from pathlib import Path

import pytest

from ardea.errors import ExitCode
from tests.machine import patient
from tests.process.cli.verbs import acked, describe, healths, left_in_state, listed, topology
from tests.process.waiting import alive

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("daemons")]


@pytest.fixture
def submit(ardea):
    """``ardea submit local`` of a topology that has to come up; returns what it prints."""

    def submitted(name: str, *options: object) -> dict:
        told = ardea("submit", "local", topology(name), "-o", "json", *options)
        assert told.returncode == 0, told.stderr
        return json.loads(told.stdout)

    return submitted


def keeper(ardea, name: str) -> int:
    return describe(ardea, name)["kept_by"]["pid"]


def test_it_lives_when_the_terminal_and_the_submitters_group_are_gone(start, ardea, state, deadline):
    """Before it has even come up: the submitter leads the terminal's foreground group, which is killed."""
    ours, terminal = pty.openpty()

    def own_the_terminal() -> None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal, "text": False}
    submitter = start(
        "submit", "local", topology("Never"), start_new_session=True, preexec_fn=own_the_terminal, **streams
    )
    os.close(terminal)
    deadline(lambda: list(state.glob("local/*/logs/daemon.log")), "the daemon has begun")
    os.killpg(submitter.pid, signal.SIGHUP)
    os.killpg(submitter.pid, signal.SIGKILL)
    os.close(ours)
    submitter.wait(timeout=patient(120))
    deadline(lambda: acked(ardea, "Never") > 0, "tuples are acked")
    assert ardea("kill", "Never").returncode == 0
    assert left_in_state(state) == []


def test_the_life_of_a_submitted_topology(submit, ardea, state, deadline):
    document = submit("Never", "--containers", 2)
    assert (document["state"], document["topology"]) == ("RUNNING", "Never")
    told = describe(ardea, "Never")
    assert (told["id"], told["topology_class"]) == (document["id"], "Never")
    assert told["version"]
    assert told["submitted_from"] == os.uname().nodename
    where = {process["name"]: process["container"] for process in told["processes"]}
    assert {where["numbers-0"], where["ignore-0"], where["ignore-1"]} == {1, 2}
    assert "process" in ardea("describe", "Never").stdout
    assert told["metrics_ports"].keys() == {"0", "1", "2"}
    for port in told["metrics_ports"].values():
        assert b"ardea_process_threads" in urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read()
    assert told["status"]["tasks"]["numbers-0"]["asked"] == {"cpu": 1.0, "ram": 512 << 20, "disk": 1 << 30}

    deadline(lambda: acked(ardea, "Never"), "tuples are acked")
    assert ardea("deactivate", "Never").returncode == 0
    deadline(lambda: listed(ardea) == {"Never": "PAUSED"}, "it is paused")
    assert ardea("activate", "Never").returncode == 0
    assert "process " in ardea("logs", "Never", "daemon").stdout

    for verb in (["run"], ["submit", "local"]):
        again = ardea(*verb, topology("Never"))
        assert again.returncode == ExitCode.CONFLICT
        assert "a topology named Never is running" in again.stderr
        assert "hint: `ardea kill Never` ends it" in again.stderr

    daemon = keeper(ardea, "Never")
    assert ardea("kill", "Never", "--wait-secs", 5).returncode == 0
    assert not alive(daemon)
    assert left_in_state(state) == []
    for verb in ("kill", "describe", "top"):
        gone = ardea(verb, "Never")
        assert (gone.returncode, "hint: `ardea logs Never`" in gone.stderr) == (ExitCode.NOT_FOUND, True)


def test_what_is_submitted_inactive_begins_when_it_is_activated(submit, ardea, deadline):
    assert submit("Sum", "--containers", 2, "--deploy-deactivated")["state"] == "RUNNING"
    assert listed(ardea) == {"Sum": "PAUSED"}
    assert "numbers from" not in ardea("logs", "Sum", "numbers").stdout
    assert ardea("activate", "Sum").returncode == 0
    deadline(lambda: listed(ardea) == {"Sum": "SUCCEEDED"}, "it has ended")
    assert "numbers from" in ardea("logs", "Sum", "numbers").stdout
    assert "the sum is 3998000" in ardea("logs", "Sum", "add:0").stdout


def test_top_tells_what_each_component_and_task_does(submit, ardea, deadline):
    submit("Never")

    def busy():
        document = json.loads(ardea("top", "Never", "-o", "json", "--interval", 2).stdout)
        rows = {(row["component"], row["task"]): row for row in document["rows"]}
        numbers = rows.get(("numbers", None), {})
        active = all(numbers.get(what) for what in ("emitted", "acked", "latency"))
        # A mean is above the 99th percentile where one tuple in hundreds has waited for a core very long.
        usual = active and numbers["latency"] <= numbers["latency_p99"]
        return rows if usual and rows.get(("ignore", "ignore-1"), {}).get("executed") else None

    rows = deadline(busy, "tuples are acked in an interval")
    for name in ("topology-master", "stream-manager", "metrics-manager"):
        manager = rows.pop(("", name))
        assert manager["resident_memory_bytes"] > 0
        assert manager["threads"] > 0
    assert rows["numbers", "numbers-0"]["threads"] > 0
    assert rows.keys() == {
        ("ignore", None), ("ignore", "ignore-0"), ("ignore", "ignore-1"), ("numbers", None), ("numbers", "numbers-0"),
    }  # fmt: skip
    numbers, ignore = rows["numbers", None], rows["ignore", None]
    assert numbers["emitted"] > 0
    assert numbers["acked"] > 0
    assert 0 < numbers["latency"] <= numbers["latency_p99"]
    assert ignore["executed"] == pytest.approx(
        rows["ignore", "ignore-0"]["executed"] + rows["ignore", "ignore-1"]["executed"], abs=0.01
    )
    table = ardea("top", "Never", "--once", "--interval", 0.5).stdout
    assert "numbers-0" in table
    assert "container-1/stream-manager" in table
    assert ardea("kill", "Never").returncode == 0


def test_debug_shows_what_a_component_emits(submit, ardea):
    submit("Never")
    shown = ardea("debug", "Never", "numbers", "--lines", 3)
    assert shown.returncode == 0, shown.stderr
    assert len(shown.stdout.splitlines()) == 3
    assert all(line.startswith("numbers-0 default (") for line in shown.stdout.splitlines())
    assert ardea("debug", "Never", "numbers-0", "--lines", 1).returncode == 0
    assert ardea("debug", "Never", "numbers-1").returncode == ExitCode.NOT_FOUND
    nothing = ardea("debug", "Never", "ignore")
    assert (nothing.returncode, "declares no outputs" in nothing.stderr) == (ExitCode.INVALID, True)
    assert ardea("kill", "Never").returncode == 0


def test_a_restart_brings_every_process_back_and_data_flows_on(submit, ardea, deadline):
    """Of a container, then of all: each has its next life, the others keep theirs; what was open is replayed."""
    submit("Never", "--containers", 2)
    deadline(lambda: acked(ardea, "Never"), "tuples are acked")
    for container in (0, 1, None):
        before = describe(ardea, "Never")
        only = () if container is None else ("--container", container)
        restarted = ardea("restart", "Never", *only)
        assert restarted.returncode == 0, restarted.stderr
        after = describe(ardea, "Never")
        assert (after["id"], after["state"]) == (before["id"], "RUNNING")
        assert after["kept_by"] == before["kept_by"]
        former = {(p["container"], p["name"]): p for p in before["processes"]}
        for process in after["processes"]:
            once = former[process["container"], process["name"]]
            again = process["container"] is not None and container in (None, process["container"])
            assert process["life"] == once["life"] + again
            assert process["state"] == "running"
            assert process["crash_loop"] == ""
        first = acked(ardea, "Never")
        deadline(lambda first=first: acked(ardea, "Never") > first, "data flows on")
    assert describe(ardea, "Never")["status"]["given_up"] == 0
    unknown = ardea("restart", "Never", "--container", 7)
    assert (unknown.returncode, "it has 0, 1, 2" in unknown.stderr) == (ExitCode.NOT_FOUND, True)
    assert ardea("kill", "Never").returncode == 0


def test_kill_cleans_up_after_a_daemon_that_was_killed(submit, ardea, state, deadline, leaks):
    before = leaks.processes().keys()
    submit("Never", "--containers", 2)
    os.kill(keeper(ardea, "Never"), signal.SIGKILL)
    deadline(lambda: "DEAD" in ardea("list").stdout, "it is dead")
    assert healths(ardea) == {"Never": "ORPHANED"}
    assert "DEAD" in ardea("describe", "Never").stdout
    assert ardea("restart", "Never").returncode == ExitCode.UNREACHABLE
    killed = ardea("kill", "Never")
    assert (killed.returncode, "is dead: nobody keeps its processes" in killed.stderr) == (0, True)
    assert left_in_state(state) == []
    assert leaks.processes().keys() <= before


def test_a_name_whose_topology_is_dead_can_be_submitted_again(submit, ardea, state, deadline):
    dead = submit("Never")
    os.kill(keeper(ardea, "Never"), signal.SIGKILL)
    deadline(lambda: "DEAD" in ardea("list").stdout, "it is dead")
    assert submit("Never")["id"] != dead["id"]
    assert listed(ardea) == {"Never": "RUNNING"}
    assert ardea("kill", "Never").returncode == 0
    assert left_in_state(state) == []


def test_kill_ends_a_topology_whose_daemon_is_frozen(submit, ardea, state):
    submit("Never")
    daemon = keeper(ardea, "Never")
    os.kill(daemon, signal.SIGSTOP)
    killed = ardea("kill", "Never", "--wait-secs", 1)
    assert killed.returncode == 0, killed.stderr
    assert f"SIGKILL goes to process {daemon}" in killed.stderr
    assert left_in_state(state) == []


def test_two_kills_at_once_both_succeed_unless_one_comes_when_the_other_is_done(submit, start, state):
    submit("Never")
    kills = [start("kill", "Never") for _ in range(2)]
    ended = [(kill.wait(timeout=patient(120)), kill.stderr.read()) for kill in kills]
    came_late = [code == ExitCode.NOT_FOUND and "and is gone from the state" in said for code, said in ended]
    assert [code == 0 or late for (code, _), late in zip(ended, came_late, strict=True)] == [True, True], ended
    assert came_late.count(True) <= 1, ended
    assert left_in_state(state) == []


def test_a_topology_that_cannot_come_up_is_refused_with_its_cause(ardea):
    for name, says in (("BadSpout", "RuntimeError: the database is closed"), ("BadConfiguration", "my.url is not set")):
        told = ardea("submit", "local", topology(name))
        assert told.returncode == ExitCode.FAILED
        assert [
            text for text in ("error: ", "FAILED before it ran", says, "hint: look at ") if text not in told.stderr
        ] == []
        assert "Traceback" not in told.stderr
        assert listed(ardea)[name] == "FAILED"
        assert ardea("kill", name).returncode == 0


def test_describe_says_why_a_process_dies_again_and_again(submit, ardea, deadline):
    """A submitted topology goes on trying."""
    submit("BadRow")
    deadline(lambda: healths(ardea) == {"BadRow": "CRASHING"}, "it is called so")
    for verb in (("list",), ("describe", "BadRow"), ("top", "BadRow")):
        said = ardea(*verb).stdout
        assert re.search(r"numbers-0 since \d+ s: died \d+ times in \d+ s: KeyError: 'row 1'", said), said
        assert "CRASHING" in said
    (loop,) = [p["crash_loop"] for p in describe(ardea, "BadRow")["processes"] if p["crash_loop"]]
    assert "KeyError: 'row 1' at topologies.py:" in loop
    assert listed(ardea) == {"BadRow": "RUNNING"}
    assert ardea("kill", "BadRow").returncode == 0


def test_a_bounded_topology_ends_by_itself_and_stays_in_the_list(submit, ardea, state, deadline):
    first = submit("Sum")
    deadline(lambda: listed(ardea) == {"Sum": "SUCCEEDED"}, "it has ended")
    assert "the sum is" in ardea("logs", "Sum", "add").stdout
    deadline(lambda: describe(ardea, "Sum")["kept_by"] is None, "its daemon is gone")
    assert submit("Sum")["id"] != first["id"]
    deadline(lambda: listed(ardea) == {"Sum": "SUCCEEDED"}, "the second has ended, the first is forgotten")
    assert ardea("kill", "Sum").returncode == 0
    assert left_in_state(state) == []


def test_a_submitter_that_does_not_wait_says_so(ardea, deadline):
    told = ardea("submit", "local", topology("Never"), "--wait-secs", 0)
    assert told.returncode == ExitCode.TIMED_OUT
    assert "it goes on starting" in told.stderr
    deadline(lambda: acked(ardea, "Never"), "tuples are acked")
    assert ardea("kill", "Never").returncode == 0


def test_a_state_directory_that_cannot_be_written_is_named(ardea, tmp_path: Path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "local").write_text("a file where the folders of topologies belong")
    told = ardea("submit", "local", topology("Never"))
    assert told.returncode == ExitCode.FAILED
    assert str(tmp_path / "state") in told.stderr
    assert "nothing was started" in told.stderr
    assert "Traceback" not in told.stderr


def test_a_state_directory_that_is_a_file_is_refused(ardea, tmp_path: Path):
    (tmp_path / "state").write_text("a file")
    told = ardea("submit", "local", topology("Never"))
    assert told.returncode == ExitCode.INVALID
    assert f"the state directory {tmp_path / 'state'} is a file" in told.stderr
    assert "Traceback" not in told.stderr

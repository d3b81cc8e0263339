"""CPU and memory, read from a /proc made up here."""

from __future__ import annotations

import os

import pytest

from benchmarks.processes import ProcessTree, Stat, busy_ticks, descendants, kind_of, read_stat
from benchmarks.results import BenchmarkError

TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def stat_line(pid: int, parent: int, user: int, system: int, name: str = "python") -> str:
    before = f"{pid} ({name}) S {parent} 1 1 0 -1 4194560 100 0 0 0"
    return f"{before} {user} {system} 7 7 20 0 1 0 12345 1000 200\n"


@pytest.fixture
def proc(tmp_path):
    (tmp_path / "stat").write_text("cpu  100 10 40 900 5 3 2 50 9 0\ncpu0 50 5 20 450 2 1 1 25 4 0\n")
    (tmp_path / "self").mkdir()

    def add(pid: int, parent: int, argv: list[str], *, ticks: int = 0, pages: int = 0) -> None:
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(stat_line(pid, parent, ticks, 0))
        (folder / "cmdline").write_text("\0".join([*argv, ""]))
        (folder / "statm").write_text(f"9999 {pages} 10 1 0 100 0\n")

    add(10, 1, ["python", "-m", "benchmarks"])
    add(20, 10, ["python", "-m", "ardea.supervisor", "--folder", "f"], ticks=TICKS, pages=2)
    add(
        30,
        20,
        ["python", "-P", "-m", "ardea.heron_instance", "--container", "1", "--task", "7"],
        ticks=3 * TICKS,
        pages=5,
    )
    add(99, 1, ["python", "-m", "ardea.heron_instance", "--task", "7"], ticks=50 * TICKS)
    return tmp_path


def test_a_name_with_spaces_and_parentheses_does_not_shift_the_fields():
    assert read_stat(stat_line(5, 4, 11, 22, name="a) S 9 (b")) == Stat(parent=4, ticks=33)


def test_waiting_idle_and_stolen_time_are_not_work():
    assert busy_ticks("cpu  100 10 40 900 5 3 2 50 9 0\n") == 155


def test_all_descendants_are_found_whatever_their_order():
    assert descendants(10, {30: 20, 20: 10, 10: 1, 40: 30, 50: 1, 1: 0}) == {20, 30, 40}


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (["python", "-P", "-m", "ardea.stream_manager", "--container", "1"], "stream-manager"),
        (["python", "-m", "ardea.topology_master"], "topology-master"),
        (["python", "-m", "ardea.heron_instance", "--task", "7"], "count"),
        (["python", "-m", "http.server"], "other"),
        (["cat"], "other"),
        ([""], "other"),
    ],
)
def test_a_process_is_known_by_its_module_and_an_instance_by_its_component(argv, kind):
    assert kind_of(argv, {7: "count"}) == kind


def test_the_tree_is_what_descends_from_its_root_and_nobody_else(proc):
    usage = ProcessTree({7: "count"}, proc, root=10).usage()
    assert {pid: (each.kind, each.cpu, each.resident) for pid, each in usage.items()} == {
        20: ("supervisor", 1.0, 2 * PAGE),
        30: ("count", 3.0, 5 * PAGE),
    }


def test_a_process_that_ends_while_it_is_read_is_left_out(proc):
    (proc / "30" / "cmdline").unlink()
    assert ProcessTree({7: "count"}, proc, root=10).usage().keys() == {20}


def test_the_machines_time_is_in_seconds(proc):
    assert ProcessTree({}, proc, root=10).machine_cpu() == 155 / TICKS


def test_a_system_without_proc_is_refused(tmp_path):
    with pytest.raises(BenchmarkError, match="use Linux"):
        ProcessTree({}, tmp_path / "absent")

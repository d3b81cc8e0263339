"""What is read of a topology's folder."""

from __future__ import annotations

from ardea.scheduler.processes import died_since, metrics_ports, processes
from ardea.supervision.records import Exit, write_exit, write_status
from ardea.supervision.spec import RESTARTED
from ardea.supervision.supervisor_state import REMOVED


def death(at: float, reason: str = "exit 75 (words-0: OSError: no route at words.py:7)", code: int = 75) -> Exit:
    return Exit("words-0", 1, 1, code, None, reason, at)


def wrote(folder, **processes):
    """``NAME=(STATE, LIFE)``, with an underscore for a hyphen."""
    rows = {
        name.replace("_", "-"): {"state": state, "pid": 7, "life": life, "restarts": 0, "reason": None}
        for name, (state, life) in processes.items()
    }
    write_status(folder, {"supervisor": "x", "pid": 1, "state": "running", "processes": rows})


def test_every_process_is_found_with_its_container(tmp_path):
    wrote(tmp_path, container_1=("running", 1))
    wrote(tmp_path / "container-1", words_0=("waiting", 4))
    for at in (1.0, 2.0, 3.0):
        write_exit(tmp_path / "container-1", death(at))
    supervisor, task = processes(tmp_path, now=4.0)
    assert (supervisor.container, supervisor.name, supervisor.restarts) == (None, "container-1", 0)
    assert (task.container, task.name, task.state, task.restarts, task.last_end) == (1, "words-0", "waiting", 3, 3.0)
    assert task.crash_loop.startswith("died 3 times in 2 s: ")
    assert processes(tmp_path / "nothing", now=0.0) == []


def test_a_container_that_an_update_has_removed_has_no_processes(tmp_path):
    """What its supervisor wrote last stays: the tasks that have moved would be in two containers."""
    wrote(tmp_path, container_10=("running", 1), container_2=("running", 1))
    wrote(tmp_path / "container-2", words_0=("running", 1))
    wrote(tmp_path / "container-3", words_0=("failed", 1))
    wrote(tmp_path / "container-10", words_1=("running", 1))
    found = [(row.container, row.name, row.state) for row in processes(tmp_path, now=4.0)]
    assert found[2:] == [(2, "words-0", "running"), (10, "words-1", "running")]


def test_the_ports_of_metrics_are_read_from_the_containers_folders(tmp_path):
    """Those of containers that are there; an update has removed 5."""
    wrote(tmp_path, **dict.fromkeys(("container_10", "container_2", "container_3", "container_4"), ("running", 1)))
    for number, text in ((10, "33179\n"), (2, "45291\n"), (3, ""), (5, "45292\n")):
        (tmp_path / f"container-{number}").mkdir()
        (tmp_path / f"container-{number}" / "metrics.port").write_text(text)
    assert list(metrics_ports(tmp_path).items()) == [(2, 45291), (10, 33179)]


def test_who_died_lately_is_told_with_its_last_words(tmp_path):
    """Neither who died before, nor who was ended."""
    container = tmp_path / "container-1"
    for name, at, reason in (
        ("b-0", 5, "exit 75 (b-0: OSError: before)"),
        ("b-0", 12, "exit 75 (b-0: OSError: first)"),
        ("b-0", 13, "exit 75 (b-0: OSError: second)"),
        ("b-0", 14, f"exit 75 ({RESTARTED})"),
        ("c-0", 9, "exit 75 (c-0: OSError: before)"),
        ("d-0", 15, f"killed by SIGTERM ({REMOVED})"),
        ("a-0", 15, "exit 78 (a-0: ConfigError: no url)"),
    ):
        write_exit(container, Exit(name, 1, 1, 75, None, reason, at))
    assert died_since(tmp_path, 10) == ["a-0 died: ConfigError: no url", "b-0 died: OSError: second"]

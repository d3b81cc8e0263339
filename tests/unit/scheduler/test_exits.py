"""Which processes are known to have ended, by what they are called."""

from __future__ import annotations

from ardea.scheduler.exits import ExitRecords
from ardea.supervision import records
from ardea.supervision.records import Exit


def names(folder, tasks):
    return sorted(ExitRecords(folder, tasks).read())


def test_a_task_that_no_plan_has_is_passed_over(tmp_path):
    """An update has removed it, or a version with it was put back."""
    ended = {
        ".": ["container-1"],
        "container-0": ["topology-master", "topology-master-2", "metrics-manager"],
        "container-1": ["stream-manager", "metrics-manager", "count-0", "count-1"],
    }
    for container, processes in ended.items():
        for process in processes:
            (tmp_path / container / "exits").mkdir(parents=True, exist_ok=True)
            records.write_exit(tmp_path / container, Exit(process, 1, 1, 75, None, "exit 75", 1.0))
    engine = [
        "container-0/metrics-manager",
        "container-0/topology-master",
        "container-0/topology-master-2",
        "container-1",
        "container-1/metrics-manager",
        "container-1/stream-manager",
    ]
    assert names(tmp_path, {"count-0"}) == [*engine, "count-0"]
    assert names(tmp_path, None) == sorted([*engine, "container-1/count-0", "container-1/count-1"])


def test_a_task_that_has_moved_has_the_ends_of_all_its_places(tmp_path):
    for container, times in {"container-1": (2.0, 4.0), "container-2": (1.0, 3.0), "container-3": (5.0,)}.items():
        for at in times:
            records.write_exit(tmp_path / container, Exit("count-0", 1, 1, 75, None, "exit 75", at))
    ends = ExitRecords(tmp_path, {"count-0"})
    assert [end.time for end in ends.read()["count-0"]] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [end.time for end in ends.read()["count-0"]] == [1.0, 2.0, 3.0, 4.0, 5.0], "they are joined once"

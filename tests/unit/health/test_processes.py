"""What is read of supervisors: which deaths are a crash loop, who is watched by nobody, what a process is called."""

from __future__ import annotations

import itertools
import math
import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ardea.health.processes import (
    CLOSE,
    LONGEST,
    STANDS_STILL,
    UNWATCHED,
    ProcessRow,
    called,
    crash_loop,
    rows,
    supervisors,
    trouble,
)
from ardea.supervision.folder import Folder
from ardea.supervision.records import LOCK, Exit, write_status
from ardea.supervision.spec import RESTARTED


def death(at: float, reason: str = "exit 75 (words-0: OSError: no route at words.py:7)", code: int = 75) -> Exit:
    return Exit("words-0", 1, 1, code, None, reason, at)


def test_three_deaths_close_together_are_a_crash_loop():
    loop = crash_loop([death(0), death(10), death(20)], now=25)
    assert loop == "died 3 times in 20 s: OSError: no route at words.py:7"


def test_two_deaths_are_none_nor_are_three_far_apart_nor_those_of_long_ago():
    assert crash_loop([death(0), death(10)], now=11) == ""
    assert crash_loop([death(0), death(CLOSE), death(CLOSE + 10)], now=CLOSE + 11) == ""
    assert crash_loop([death(0), death(10), death(20)], now=20 + CLOSE) == ""


def test_a_reason_is_cut(tmp_path):
    loop = crash_loop([death(at, f"exit 75 ({'x' * 9999})") for at in range(3)], now=3)
    assert len(loop) == LONGEST


def test_restarts_that_were_asked_for_and_orderly_ends_are_no_crashes():
    asked = [death(at, f"exit 75 ({RESTARTED})") for at in range(5)]
    done = [death(at, "exit 0", 0) for at in range(5)]
    assert crash_loop(asked, now=5) == crash_loop(done, now=5) == ""


@given(st.lists(st.floats(0, 200), max_size=20), st.floats(0, 300))
@example([130.0, math.nextafter(CLOSE, 0), 1.0], 0.0)  # which the sum rounds up
def test_a_crash_loop_has_at_least_three_deaths_and_a_late_last_one(gaps, since):
    now, ends = 0.0, []
    for gap in gaps:
        now += gap
        ends.append(death(now))
    last = [*(end.time for end in ends[-3:]), now + since]
    wanted = len(ends) >= 3 and all(after - before < CLOSE for before, after in itertools.pairwise(last))
    assert bool(crash_loop(ends, now + since)) == wanted


def wrote(folder, *names, state="running"):
    """As a supervisor does that was alive at 100."""
    processes = {name: {"state": "running", "pid": 7, "life": 2, "restarts": 1, "reason": None} for name in names}
    write_status(folder, {"supervisor": "x", "pid": 1, "state": state, "processes": processes})
    (folder / LOCK).touch()
    os.utime(folder / LOCK, (100, 100))


def test_who_is_watched_by_nobody_is_told(tmp_path):
    wrote(tmp_path, "words-0")
    assert [row.state for row in rows(tmp_path, 1, 100 + STANDS_STILL)] == ["running"]
    (row,) = rows(tmp_path, 1, 100 + STANDS_STILL + 1)
    assert row.state == UNWATCHED
    assert "its supervisor stands still" in trouble(row).why


def test_a_supervisor_that_has_ended_does_not_stand_still(tmp_path):
    wrote(tmp_path, "words-0", state="ended")
    assert [row.state for row in rows(tmp_path, 1, 1000)] == ["running"]


def test_a_folder_is_touched_by_who_holds_it(tmp_path):
    """So that the beat of a supervisor is seen; whoever comes second has no beat."""
    wrote(tmp_path, "words-0")
    first, second = Folder(tmp_path), Folder(tmp_path)
    assert first.take()
    held_since = (tmp_path / LOCK).stat().st_mtime
    assert held_since > 100
    os.utime(tmp_path / LOCK, (100, 100))
    assert not second.take()
    assert (tmp_path / LOCK).stat().st_mtime == 100
    first.beat()
    assert (tmp_path / LOCK).stat().st_mtime >= held_since
    first.close()
    assert second.take()
    second.close()


def test_a_pod_has_a_supervisor_a_process_and_a_machine_one_a_container(tmp_path):
    wrote(tmp_path / "container-1", "stream-manager", "words-0")
    wrote(tmp_path / "container-2" / "stream-manager", "stream-manager")
    wrote(tmp_path / "container-2" / "words-1", "words-1")
    (tmp_path / "container-2" / "logs").mkdir()
    assert supervisors(tmp_path / "container-1") == [tmp_path / "container-1"]
    assert supervisors(tmp_path / "container-2")[1:] == [
        tmp_path / "container-2" / "stream-manager", tmp_path / "container-2" / "words-1",
    ]  # fmt: skip


def row(container, name, state="running", loop=""):
    return ProcessRow(container, name, state, 7, 1, 0, None, "", loop, since=5.0 if loop else None)


@pytest.mark.parametrize(
    ("container", "name", "who"),
    [
        (1, "words-0", "words-0"),
        (1, "stream-manager", "container-1/stream-manager"),
        (2, "metrics-manager", "container-2/metrics-manager"),
        (0, "topology-master-2", "container-0/topology-master-2"),
        (None, "container-3", "container-3"),
    ],
)
def test_what_a_process_is_called(container, name, who):
    assert called(row(container, name)) == who


def test_only_who_is_not_well_is_a_trouble():
    assert trouble(row(1, "words-0")) is None
    assert trouble(row(1, "words-0", "waiting")) is None
    crashing = trouble(row(1, "words-0", "waiting", "died 3 times in 2 s: boom"))
    assert (crashing.who, crashing.since, crashing.why, crashing.crashing) == (
        "words-0", 5.0, "died 3 times in 2 s: boom", True,
    )  # fmt: skip
    for state in ("stuck", "silent", UNWATCHED):
        assert not trouble(row(1, "words-0", state)).crashing

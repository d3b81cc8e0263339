"""Which deaths are called a crash loop, and what is read of a topology's folder."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ardea.scheduler.processes import CLOSE, crash_loop, died_since, processes
from ardea.supervision.records import Exit, write_exit, write_status
from ardea.supervision.spec import RESTARTED
from ardea.supervision.supervisor_state import REMOVED


def death(at: float, reason: str = "exit 75 (words-0: OSError: no route at words.py:7)", code: int = 75) -> Exit:
    return Exit("words-0", 1, 1, code, None, reason, at)


def test_three_deaths_close_together_are_a_crash_loop():
    loop = crash_loop([death(0), death(10), death(20)], now=25)
    assert loop == "died 3 times in 20 s, the last time 5 s ago: OSError: no route at words.py:7"


def test_two_deaths_are_none_nor_are_three_far_apart_nor_those_of_long_ago():
    assert crash_loop([death(0), death(10)], now=11) == ""
    assert crash_loop([death(0), death(CLOSE), death(CLOSE + 10)], now=CLOSE + 11) == ""
    assert crash_loop([death(0), death(10), death(20)], now=20 + CLOSE) == ""


def test_restarts_that_were_asked_for_and_orderly_ends_are_no_crashes():
    asked = [death(at, f"exit 75 ({RESTARTED})") for at in range(5)]
    done = [death(at, "exit 0", 0) for at in range(5)]
    assert crash_loop(asked, now=5) == crash_loop(done, now=5) == ""


@given(st.lists(st.floats(0, 200), max_size=20), st.floats(0, 300))
def test_a_crash_loop_has_at_least_three_deaths_and_a_late_last_one(gaps, since):
    now, ends = 0.0, []
    for gap in gaps:
        now += gap
        ends.append(death(now))
    loop = crash_loop(ends, now + since)
    wanted = len(ends) >= 3 and since < CLOSE and gaps[-1] < CLOSE and gaps[-2] < CLOSE
    assert bool(loop) == wanted


def test_every_process_is_found_with_its_container(tmp_path):
    def wrote(folder, name, state, life):
        row = {"state": state, "pid": 7, "life": life, "restarts": 0, "reason": None}
        write_status(folder, {"supervisor": "x", "pid": 1, "state": "running", "processes": {name: row}})

    wrote(tmp_path, "container-1", "running", 1)
    wrote(tmp_path / "container-1", "words-0", "waiting", 4)
    for at in (1.0, 2.0, 3.0):
        write_exit(tmp_path / "container-1", death(at))
    supervisor, task = processes(tmp_path, now=4.0)
    assert (supervisor.container, supervisor.name, supervisor.restarts) == (None, "container-1", 0)
    assert (task.container, task.name, task.state, task.restarts, task.last_end) == (1, "words-0", "waiting", 3, 3.0)
    assert task.crash_loop.startswith("died 3 times in 2 s, the last time 1 s ago: ")
    assert processes(tmp_path / "nothing", now=0.0) == []


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

"""When `ardea run` gives up."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.health.processes import said
from ardea.metrics import Totals
from ardea.scheduler.hopeless_run import Cause, DiesInVain, HopelessRun, NothingAcked, NothingDone, permanent
from ardea.snapshots.status import LastSnapshot
from ardea.supervision.records import Exit


def ended(name: str, at: float, code: int | None = 75, reason: str = "exit 75") -> Exit:
    return Exit(name, 1, 1, code, None if code is not None else "SIGKILL", reason, at)


def test_a_hundred_failures_without_an_ack_for_thirty_seconds_are_hopeless():
    rule = NothingAcked()
    assert rule.observe(0, 0, 0, 1000) is None
    assert rule.observe(1, 0, 50, 1000) is None
    assert rule.observe(29.9, 0, 500, 1000) is None
    assert rule.observe(30, 0, 500, 1000) == Cause("500 tuples failed and none was acked for 30 s")


def test_fewer_than_a_hundred_failures_are_not_hopeless():
    rule = NothingAcked()
    rule.observe(0, 0, 0, 20)
    assert rule.observe(1000, 0, 99, 20) is None
    assert rule.observe(1001, 0, 100, 20) is not None


def test_few_rows_are_hopeless_when_each_has_failed_five_times():
    rule = NothingAcked()
    rule.observe(0, 0, 0, 3)
    assert rule.observe(29.9, 0, 30, 3) is None
    assert rule.observe(30, 0, 14, 3) is None
    assert rule.observe(31, 0, 15, 3) == Cause("15 tuples failed and none was acked for 31 s")


def test_failures_of_rows_that_are_no_longer_open_must_be_a_hundred():
    """Whoever overrides fail() may send nothing again."""
    rule = NothingAcked()
    rule.observe(0, 0, 0, 0)
    assert rule.observe(1000, 0, 99, 0) is None
    assert rule.observe(1001, 0, 100, 0) is not None


def test_time_without_any_failure_does_not_count():
    rule = NothingAcked()
    rule.observe(0, 0, 0, 9)
    rule.observe(1000, 0, 0, 9)
    assert rule.observe(1001, 0, 200, 9) is None


def test_zero_seconds_means_never():
    rule = NothingAcked(0)
    rule.observe(0, 0, 0, 9)
    assert rule.observe(1e6, 0, 10**6, 9) is None


def test_sums_of_a_new_master_begin_anew():
    """It has not been told of most acks, and never is of those which only the dead have counted."""
    rule = NothingAcked()
    rule.observe(0, 400_000, 100, 9)
    assert [rule.observe(1 + at, 1000 * at, 200 * at, 9) for at in range(60)] == [None] * 60
    assert rule.observe(90, 59_000, 11_900, 9) is not None


@given(st.lists(st.tuples(st.floats(0.1, 40), st.integers(0, 2), st.integers(0, 300), st.integers(0, 40)), max_size=50))
def test_gives_up_only_after_failures_and_silence_enough(steps):
    """At each refusal, the failures and the time since the last ack or quiet moment reach both limits."""
    rule = NothingAcked()
    now = acked = failed = 0
    since, then = 0.0, 0
    rule.observe(now, acked, failed, 0)
    for pause, acks, failures, pending in steps:
        now, acked, failed = now + pause, acked + acks, failed + failures
        if acks or failed == then:
            since, then = now, failed
        many = failed - then >= 100 or (pending and failed - then >= 5 * pending)
        assert (rule.observe(now, acked, failed, pending) is not None) == bool(many and now - since >= 30)


def test_a_task_that_never_worked_has_three_lives():
    ends = [ended("words-0", at, reason="exit 75 (words-0: OSError: no route)") for at in (0, 100, 200)]
    assert NothingDone().observe({"words-0": ends[:2]}, {"words-0"}, set()) is None
    assert NothingDone().observe({"words-0": ends}, {"words-0"}, {"words-0"}) is None
    cause = NothingDone().observe({"words-0": ends}, {"words-0"}, set())
    reason = "words-0 died 3 times before it emitted or processed anything: OSError: no route"
    assert cause == Cause(reason, "words-0")


def test_a_new_master_that_does_not_know_of_a_task_that_worked_is_not_believed():
    rule = NothingDone()
    ends = [ended("words-0", at, code=None) for at in (0, 100, 200)]
    assert rule.observe({"words-0": ends[:2]}, {"words-0"}, {"words-0"}) is None
    assert rule.observe({"words-0": ends}, {"words-0"}, set()) is None


@pytest.mark.parametrize(("times", "hopeless"), [((0, 10, 29), True), ((0, 10, 31), False)])
def test_another_process_has_three_lives_within_thirty_seconds(times, hopeless):
    ends = [ended("metrics-manager", at) for at in times]
    cause = NothingDone().observe({"container-1/metrics-manager": ends}, {"words-0"}, set())
    assert (cause.culprit if cause else None) == ("container-1/metrics-manager" if hopeless else None)


def test_processes_that_were_killed_by_hand_are_not_given_up():
    ends = [ended("stream-manager", at, code=None) for at in (0, 1, 2)]
    assert NothingDone().observe({"container-1/stream-manager": ends}, set(), set()) is None


def test_orderly_ends_count_for_nothing():
    assert (
        NothingDone().observe({"words-0": [ended("words-0", at, code=0) for at in (0, 1, 2)]}, {"words-0"}, set())
        is None
    )


def test_the_first_permanent_end_is_the_cause():
    ends = {
        "b-0": [ended("b-0", 2, 78, "exit 78 (second)")],
        "container-1/a": [ended("a", 0.5), ended("a", 1, 78, "exit 78 (a: first (of two))")],
        "c": [ended("c", 0)],
    }
    assert permanent(ends) == Cause("a cannot go on: first (of two)", "container-1/a")
    assert permanent({"c": [ended("c", 0)]}) is None


def test_an_end_without_words_says_how():
    assert said(ended("a-0", 0)) == "exit 75"


def test_an_exit_0_that_is_not_believed_is_called_one():
    reason = "exit 0 (before its work was done)"
    assert said(ended("a-0", 0, reason=reason)) == "exited with 0 before its work was done"


def test_five_deaths_without_an_ack_for_thirty_seconds_are_in_vain():
    """Of one that has worked: its flush fails, say, each time that all is done."""
    rule, ends = DiesInVain(), [ended("count-0", at) for at in (1, 2, 5, 9, 14)]
    assert rule.observe(0, (7, ""), {}, {"count-0"}) is None
    assert rule.observe(29, (7, ""), {"count-0": ends}, {"count-0"}) is None
    assert rule.observe(30, (7, ""), {"count-0": ends[:4]}, {"count-0"}) is None
    assert rule.observe(30, (7, ""), {"container-1/stream-manager": ends}, {"count-0"}) is None
    cause = rule.observe(30, (7, ""), {"count-0": ends}, {"count-0"})
    assert cause == Cause("count-0 died 5 times and no tuple was acked meanwhile: exit 75", "count-0")


@pytest.mark.parametrize("progress", [(8, "1.5"), (7, "1.6")], ids=["ack", "snapshot"])
def test_an_ack_or_a_snapshot_begins_the_count_of_deaths_anew(progress):
    rule, ends = DiesInVain(), {"count-0": [ended("count-0", at) for at in (1, 2, 5, 9, 14)]}
    rule.observe(0, (7, "1.5"), {}, {"count-0"})
    assert rule.observe(20, progress, ends, {"count-0"}) is None
    assert rule.observe(60, progress, ends, {"count-0"}) is None


def test_deaths_of_a_task_that_worked_between_them_are_not_in_vain():
    """Of a topology whose rows nobody tracks: nothing else tells that they go on."""
    rule, day, ends = DiesInVain(), 86_400, []
    for days in range(9):
        assert rule.observe(days * day, (0, ""), {"count-0": ends}, {"count-0"}) is None
        ends.append(ended("count-0", days * day + 1))
        assert rule.observe(days * day + 2, (0, ""), {"count-0": ends}, {"count-0"}) is None


def test_deaths_never_end_a_run_that_is_to_go_on():
    rule = DiesInVain(0)
    rule.observe(0, (0, ""), {}, {"count-0"})
    ends = [ended("count-0", at) for at in range(1, 9)]
    assert rule.observe(31, (0, ""), {"count-0": ends}, {"count-0"}) is None


def status_of(*, complete=True, update=None, failed=0, erring=(), snapshot=""):
    """What a master says of a spout `words` and a bolt `count`, whose failures do not count."""
    of = {"acked": 0, "timed_out": 0, "lost": 0, "pending": 9}
    components = {"words": SimpleNamespace(failed=failed, **of), "count": SimpleNamespace(failed=10**6, **of)}
    errors = [f"{task}: OSError: no route" for task in erring]
    last = LastSnapshot(number=snapshot) if snapshot else None
    return SimpleNamespace(
        complete=complete,
        update=update,
        components=components,
        processes=[],
        erring=list(erring),
        errors=errors,
        snapshots=SimpleNamespace(last=last),
    )


def causes(*, patient=False, heard=True, **told):
    """Of a run that fails for a minute, of which the master says this."""
    run = HopelessRun(30, patient=patient)
    if heard:
        run.heard(status_of(**told))
    return [
        run.observe(now, now, status_of(failed=failed, **told), {}, {"words-0"}, {"words"})
        for now, failed in ((0, 0), (60, 200))
    ]


def test_a_run_is_given_up_with_the_last_error():
    assert causes() == [None, Cause("given up: 200 tuples failed and none was acked for 60 s")]
    reason = "given up: 200 tuples failed and none was acked for 60 s; the last error: count-0: OSError: no route"
    assert causes(erring=["count-0"]) == [None, Cause(reason, "count-0")]


def test_a_patient_run_is_given_up_only_before_it_has_come_up():
    assert causes(patient=True) == [None, None]
    assert causes(patient=True, heard=False)[1] is not None


def test_a_version_that_does_not_come_up_is_put_back_and_nothing_is_given_up():
    assert causes(update=SimpleNamespace(running=True)) == [None, None]
    assert causes(update=SimpleNamespace(running=False))[1] is not None


@pytest.mark.parametrize("snapshots", [["1.1"] * 6, ["1.1", "1.2", "1.3", "1.4", "1.5", "1.6"]], ids=["none", "some"])
def test_a_run_goes_on_while_snapshots_come_to_count_between_deaths(snapshots):
    run, ends, found = HopelessRun(30, patient=False), [], []
    for each, snapshot in enumerate(snapshots):
        status = status_of(snapshot=snapshot)
        status.processes = [SimpleNamespace(process="words-0", totals=Totals(emitted=1))]
        found.append(run.observe(each * 50, each * 50, status, {"words-0": list(ends)}, {"words-0"}, {"words"}))
        ends.append(ended("words-0", each * 50 + 40))
    reason = "given up: words-0 died 5 times and no tuple was acked meanwhile: exit 75"
    assert found == [*[None] * 5, Cause(reason, "words-0") if snapshots[1] == "1.1" else None]


UPDATES, UPDATED = SimpleNamespace(running=True), SimpleNamespace(running=False)


def updating(ends):
    """What is said for a minute after an update that took one, while nothing was acked and these processes ended."""
    run = HopelessRun(30, patient=False)
    assert run.observe(0, 0, status_of(), {}, {"words-0", "count-0"}, {"words"}) is None
    for now in range(1, 61):
        assert run.observe(now, now, status_of(update=UPDATES), ends, {"words-0", "count-0"}, {"words"}) is None
    return [
        run.observe(now, now, status_of(update=UPDATED), ends, {"words-0", "count-0"}, {"words"})
        for now in range(61, 120)
    ]


def test_what_ended_while_a_version_was_tried_counts_no_more():
    """A task of it died as it began, and its container's manager with it; it is put back."""
    ends = {
        name: [ended(name, at) for at in (40, 45, 50, 55, 60.5)] for name in ("count-0", "container-1/stream-manager")
    }
    assert not any(updating(ends))


def test_what_ends_after_an_update_does():
    causes = updating({"count-0": [ended("count-0", at) for at in (50, 62, 63, 64)]})
    assert next(filter(None, causes)).reason.startswith("given up: count-0 died 3 times before it emitted")

"""When a task has all of a batch: only with every row and report of one attempt, and the commit where it waits."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.trident.batches import REMEMBERED, BatchTracker


class Task:
    """A task behind a tracker; ``verdicts``: tuple -> acked or failed."""

    def __init__(self, early=(1, 2), late=(), *, commits=False, raises=False, asked=False):
        self.asked = asked
        self.verdicts, self.finished, self.begun, self.raises = {}, [], [], raises
        self.failures = []
        self.tracker = BatchTracker(
            frozenset(early),
            frozenset(late),
            commits=commits,
            settling=self,
            begin=lambda run: self.begun.append((run.txid, run.attempt)),
            finish=self.finish,
        )

    def ack(self, tup):
        assert tup not in self.verdicts
        self.verdicts[tup] = "acked"

    def fail(self, tup):
        assert tup not in self.verdicts
        self.verdicts[tup] = "failed"

    def failing(self, batch):
        self.failures.append((batch.asker, dict(self.verdicts)))

    def finish(self, batch, tup):
        if self.raises:
            raise ValueError("bad row")
        self.finished.append((batch.run.txid, batch.run.attempt, tup))

    def rows(self, txid, attempt, task, count):
        if (batch := self.tracker.batch(txid, attempt)) is not None:
            batch.received[task] += count

    def report(self, txid, attempt, task, count, tup, asker=None):
        self.tracker.report(txid, attempt, task, count, tup, asker)


def test_a_batch_that_fails_says_so_first_and_again_when_it_is_known_who_asked():
    task = Task()
    task.tracker.fail(task.tracker.batch(7, 0))
    assert task.failures == [(None, {})]
    task.report(7, 0, 1, 0, "first", asker="who")
    assert task.failures == [(None, {}), ("who", {})], "before its tuple fails"
    assert task.verdicts == {"first": "failed"}


def test_a_batch_is_finished_by_the_last_report():
    task = Task()
    task.rows(7, 0, 1, 3)
    task.report(7, 0, 1, 3, "first")
    assert task.verdicts == {}, "held: if the task dies, the tree fails"
    task.report(7, 0, 2, 0, "second")
    assert task.finished == [(7, 0, "second")]
    assert task.verdicts == {"first": "acked", "second": "acked"}


@pytest.mark.parametrize("commits", [False, True])
@pytest.mark.parametrize("count", [2, 4])
def test_a_missing_row_fails_the_batch_at_once(count, commits):
    """Where it is committed too; there Storm notices it in the commit phase."""
    task = Task(commits=commits)
    task.rows(7, 0, 1, 3)
    task.report(7, 0, 2, 0, "first")
    task.report(7, 0, 1, count, "second")
    assert (task.finished, task.verdicts) == ([], {"first": "failed", "second": "failed"})


def test_counts_are_compared_task_by_task():
    """One row too many of one and too few of another are not the right number."""
    task = Task()
    task.rows(7, 0, 1, 3)
    task.rows(7, 0, 2, 1)
    task.report(7, 0, 1, 2, "first")
    task.report(7, 0, 2, 2, "second")
    assert task.finished == []


def test_a_higher_attempt_replaces_and_a_lower_one_is_ignored():
    task = Task()
    task.rows(7, 0, 1, 3)
    task.report(7, 0, 1, 3, "old")
    task.rows(7, 1, 1, 2)
    task.rows(7, 0, 2, 9)
    task.report(7, 0, 2, 9, "late")
    task.report(7, 1, 1, 2, "first")
    task.report(7, 1, 2, 0, "second")
    assert task.finished == [(7, 1, "second")]
    assert set(task.verdicts.values()) == {"acked"}
    assert task.begun == [(7, 0), (7, 1)]


def test_a_finished_attempt_does_not_begin_again():
    task = Task(early=(1,))
    task.report(7, 1, 1, 0, "only")
    task.rows(7, 0, 1, 3)
    task.report(7, 1, 1, 0, "again")
    assert (len(task.finished), task.verdicts["again"]) == (1, "acked")


def test_a_commit_is_awaited():
    task = Task(commits=True)
    task.report(7, 0, 1, 0, "first")
    task.report(7, 0, 2, 0, "second")
    assert (task.finished, task.verdicts) == ([], {"first": "acked", "second": "acked"})
    task.tracker.commit(7, 0, "commit")
    assert task.finished == [(7, 0, "commit")]


def test_a_commit_to_a_new_life_fails_at_once():
    """Storm waits for the message timeout: the reports were acked by the task's former life."""
    task = Task(commits=True)
    task.tracker.commit(7, 0, "commit")
    assert task.verdicts == {"commit": "failed"}


def test_behind_a_commit_the_batch_phase_ends_without_its_rows():
    """Storm holds the early report until the late ones, which wait for it."""
    task = Task(early=(1,), late=(2,))
    task.report(7, 0, 1, 0, "early")
    assert task.verdicts == {"early": "acked"}
    task.rows(7, 0, 2, 4)
    task.report(7, 0, 2, 4, "late")
    assert task.finished == [(7, 0, "late")]


def test_late_reports_to_a_new_life_fail():
    task = Task(early=(1,), late=(2,))
    task.report(7, 0, 2, 0, "late")
    assert task.verdicts == {"late": "failed"}


def test_an_exception_at_the_end_fails_what_is_held():
    task = Task(raises=True)
    task.report(7, 0, 1, 0, "first")
    with pytest.raises(ValueError, match="bad row"):
        task.report(7, 0, 2, 0, "second")
    assert task.verdicts == {"first": "failed"}


def test_of_a_batch_that_has_failed_no_rows_are_kept():
    task = Task()
    batch = task.tracker.batch(7, 0)
    batch.run.memory["an operation"] = ["rows"]
    task.tracker.fail(batch)
    assert batch.run.memory == {}


def test_requests_that_fail_here_or_elsewhere_do_not_stay_for_ever():
    """They never come again.  Of one that failed where it came from, the last report does not come either."""
    task = Task(asked=True)
    task.tracker.fail(task.tracker.batch(1, 0))
    task.report(2, 0, 1, 0, "held", asker="who")
    for txid in range(3, REMEMBERED + 2):
        task.rows(txid, 0, 1, 1)
    assert task.verdicts == {}
    task.rows(txid + 1, 0, 1, 1)
    assert task.verdicts == {"held": "failed"}
    assert len(task.tracker._batches) == REMEMBERED


def test_transactions_that_are_open_stay_however_many_there_are():
    """They are to be committed one after another."""
    task = Task()
    for txid in range(2 * REMEMBERED):
        task.report(txid, 0, 1, 0, ("first", txid))
    for txid in range(2 * REMEMBERED):
        task.report(txid, 0, 2, 0, ("second", txid))
    assert len(task.finished) == 2 * REMEMBERED


@given(
    counts=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    late=st.sets(st.integers(0, 3)),
    commits=st.booleans(),
    lost=st.integers(0, 4),
    seed=st.integers(0, 10**6),
)
def test_finished_exactly_when_nothing_is_missing(counts, late, commits, lost, seed):
    """Senders in any interleaving, each in its order; late ones and the commit behind the early ones."""
    rng = random.Random(seed)
    tasks = range(len(counts))
    late_tasks = frozenset(late.intersection(tasks))
    task = Task(frozenset(tasks) - late_tasks, late_tasks, commits=commits)
    missing = Counter()
    for _ in range(lost):
        sender = rng.choice(tasks)
        missing[sender] += missing[sender] < counts[sender]

    def phase(senders, *more):
        queue = [s for s in senders for _ in range(counts[s] - missing[s] + 1)] + list(more)
        rng.shuffle(queue)
        left = Counter(queue)
        for sender in queue:
            left[sender] -= 1
            if sender == "commit":
                task.tracker.commit(1, 0, "commit")
            elif left[sender]:
                task.rows(1, 0, sender, 1)
            else:
                task.report(1, 0, sender, counts[sender], sender)
        return "failed" not in task.verdicts.values()

    good = phase(sorted(frozenset(tasks) - late_tasks))
    if good and (late_tasks or commits):
        good = phase(sorted(late_tasks), *(["commit"] if commits else []))
    assert good == (not missing.total())
    assert len(task.finished) == good
    if good:
        assert set(task.verdicts.values()) == {"acked"}

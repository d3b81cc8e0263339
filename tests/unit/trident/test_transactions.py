"""The master batch coordinator's state: commits in order and one at a time, verdicts of former attempts ignored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ardea.trident.transactions import LIVES, MOST_PATIENCE, Phase, Step, Transactions


def always(_):
    return True


def test_one_transaction_from_batch_to_commit():
    transactions = Transactions(1, 0, 1)
    (batch,) = transactions.next_steps(always)
    assert batch == Step(Phase.BATCH, 1, 0)
    assert transactions.next_steps(always) == []
    assert not transactions.done(batch)
    (commit,) = transactions.next_steps(always)
    assert commit == Step(Phase.COMMIT, 1, 0)
    assert transactions.done(commit)
    assert transactions.idle
    assert transactions.next_steps(always) == [Step(Phase.BATCH, 2, 0)]


def test_a_failure_begins_later_transactions_again():
    transactions = Transactions(1, 0, 3)
    one, two, three = transactions.next_steps(always)
    transactions.done(one)
    transactions.done(three)
    assert transactions.failed(two)
    assert transactions.next_steps(always) == [
        Step(Phase.COMMIT, 1, 0),
        Step(Phase.BATCH, 2, 1),
        Step(Phase.BATCH, 3, 1),
    ]


def test_a_late_verdict_on_a_former_attempt_changes_nothing():
    """Storm's coordinator drops the living attempt."""
    transactions = Transactions(1, 0, 1)
    (first,) = transactions.next_steps(always)
    transactions.failed(first)
    (second,) = transactions.next_steps(always)
    assert not transactions.failed(first)
    assert not transactions.done(first)
    transactions.done(second)
    assert transactions.next_steps(always) == [Step(Phase.COMMIT, 1, 1)]


def test_a_later_life_has_higher_attempts():
    (step,) = Transactions(7, 2, 1).next_steps(always)
    assert step == Step(Phase.BATCH, 7, 2 * LIVES)


def test_a_gap_waits():
    transactions = Transactions(1, 0, 3)
    assert [s.txid for s in transactions.next_steps(lambda txid: txid != 2)] == [1]
    assert [s.txid for s in transactions.next_steps(always)] == [2, 3]


def test_what_fails_again_and_again_waits_longer():
    transactions = Transactions(1, 0, 1)
    waits = []
    for _ in range(12):
        calls = 0
        while not (steps := transactions.next_steps(always)):
            calls += 1
        waits.append(calls)
        transactions.failed(steps[0])
    assert waits == [0, 0, 1, 3, 7, 15, 31, 63, 127, 255, MOST_PATIENCE, MOST_PATIENCE]


events = st.lists(st.tuples(st.sampled_from(["go", "ack", "fail", "die"]), st.integers(0, 30)), max_size=120)


@given(events=events, most=st.integers(1, 4))
def test_commits_come_in_order(events, most):
    """Whatever the order of verdicts, late ones and new lives included."""
    life, committed, asked, highest = 0, [], [], {}
    transactions = Transactions(1, life, most)
    for what, which in events:
        if what == "go":
            steps = transactions.next_steps(always)
            for step in steps:
                if step.phase is Phase.COMMIT:
                    assert step.txid == transactions.current
                else:
                    assert step.attempt > highest.get(step.txid, -1), "attempts go up"
                    assert transactions.current <= step.txid < transactions.current + most
                    highest[step.txid] = step.attempt
            asked += steps
        elif what == "die":
            life += 1
            transactions = Transactions(transactions.current, life, most)
        elif asked:
            step = asked[which % len(asked)]  # perhaps a verdict on what is long over
            if what == "ack" and transactions.done(step):
                assert step.attempt == highest[step.txid]
                committed.append(step.txid)
            elif what == "fail":
                transactions.failed(step)
    assert committed == list(range(1, len(committed) + 1))

"""One number for many rounds: equal for equal ones, whatever the order, and for no others that come up."""

from hypothesis import given
from hypothesis import strategies as st

from ardea.protocol.rounds import Rounds

TASKS, ROUNDS = st.integers(0, 5), st.integers(0, 5).map(lambda low: 1 << 32 | low)
CHANGES = st.lists(st.tuples(TASKS, st.none() | ROUNDS), max_size=30)


def after(changes):
    """The table after all of them, and what it should hold."""
    rounds, expected = Rounds(), {}
    for task, round_ in changes:
        if round_ is None:
            assert rounds.forget(task) == (expected.pop(task, None) is not None)
        else:
            rounds[task] = expected[task] = round_
    assert rounds.tasks == expected.keys()
    return rounds, expected


@given(CHANGES, CHANGES)
def test_digests_are_equal_for_equal_rounds_only(one, other):
    (first, mine), (second, theirs) = after(one), after(other)
    assert (first.digest == second.digest) == (mine == theirs)


@given(CHANGES)
def test_of_two_parts_the_digest_is_the_xor(changes):
    rounds, expected = after(changes)
    parts = [Rounds({t: r for t, r in expected.items() if t % 2 == odd}) for odd in (0, 1)]
    assert rounds.digest == parts[0].digest ^ parts[1].digest == Rounds(expected).digest


def test_nothing_has_the_digest_of_a_spout_that_sees_nobody():
    assert Rounds().digest == 0

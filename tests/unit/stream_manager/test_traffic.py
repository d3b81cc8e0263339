"""Rows that wait for a task, and managers that have sent lately: totals equal the sums over all managers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ardea.stream_manager.traffic import ACTIVE_FOR, Traffic

few, counts = st.integers(1, 3), st.integers(0, 50)
steps = st.one_of(
    st.tuples(st.just("sent"), few, few, counts, counts, st.sampled_from([0.0, 0.3, 0.9, ACTIVE_FOR])),
    st.tuples(st.just("held"), few, few, counts, counts, st.just(0.0)),
    st.tuples(st.just("consumed"), few, few, counts, counts, st.just(0.0)),
    st.tuples(st.just("restart"), few, few, counts, counts, st.just(0.0)),
    st.tuples(st.just("looked"), few, few, counts, counts, st.sampled_from([0.0, 0.5, 2 * ACTIVE_FOR])),
)


class AddedUp:
    """The same without totals: what each sender said, added up when it is asked."""

    def __init__(self):
        self.senders = {}

    def sender(self, container, life):
        if container not in self.senders or self.senders[container]["life"] < life:
            self.senders[container] = {"life": life, "sent": [0, 0], "held": [0, 0], "done": [0, 0], "seen": -1e9}
        return self.senders[container]

    def waits(self, place):
        return sum(s["held"][place] + max(0, s["sent"][place] - s["done"][place]) for s in self.senders.values())

    def active(self, now):
        return sum(
            now - s["seen"] < ACTIVE_FOR or s["held"][0] + max(0, s["sent"][0] - s["done"][0]) > 0
            for s in self.senders.values()
        )


@given(st.lists(steps, max_size=30))
def test_totals_are_sums(changes):
    made, expected, now = Traffic(), AddedUp(), 0.0
    for what, container, life, rows, size, later in changes:
        now += later
        if what == "sent":
            made.sent(container, life, rows, size, now)
            sender = expected.sender(container, life)
            sender["sent"] = [sender["sent"][0] + rows, sender["sent"][1] + size]
            sender["seen"] = now
        elif what == "held":
            made.held(container, life, rows, size)
            expected.sender(container, life)["held"] = [rows, size]
        elif what == "consumed":
            known = expected.senders.get(container)
            assert made.consumed(container, life, rows, size) is (known is not None and known["life"] == life)
            if known is not None and known["life"] == life:
                known["done"] = [max(known["done"][0], rows), max(known["done"][1], size)]
        elif what == "restart":
            made.restart()
            for sender in expected.senders.values():
                sender["sent"], sender["done"] = [0, 0], [0, 0]
        assert (made.rows, made.bytes) == (expected.waits(0), expected.waits(1))
        if what == "looked":
            assert made.active(now) == expected.active(now)
    assert made.active(now) == expected.active(now)


def test_a_new_life_of_a_sender_forgets_the_former():
    made = Traffic()
    made.held(2, 1, 7, 70)
    made.sent(2, 1, 3, 30, 5.0)
    assert (made.rows, made.bytes, made.active(5.0)) == (10, 100, 1)
    made.held(2, 2, 0, 0)
    assert (made.rows, made.bytes, made.active(5.0)) == (0, 0, 0)

"""A consumer as its manager sees it: what waits, the watermarks, each sender's share."""

from hypothesis import given
from hypothesis import strategies as st

from ardea.protocol.wire_pb2 import Credit
from ardea.stream_manager.consumers import Consumer
from ardea.stream_manager.traffic import ACTIVE_FOR

counts = st.integers(0, 1000)


def consumer(**more):
    return Consumer(5, life=1, high_rows=100, high_bytes=10_000, low_bytes=5_000, **more)


@given(st.lists(st.tuples(counts, counts, counts), max_size=5))
def test_what_waits_is_held_and_sent_and_not_consumed(senders):
    """Summed over all senders; a pause begins above the mark and ends at half of it."""
    made = consumer()
    for number, (held, sent, consumed) in enumerate(senders):
        made.traffic.sent(number, 1, sent, 0, 0.0)
        made.traffic.held(number, 1, held, 0)
        made.traffic.consumed(number, 1, consumed, 0)
    waiting = sum(held + max(0, sent - consumed) for held, sent, consumed in senders)
    assert made.judge(0.0) == (waiting > 100)


def test_a_pause_lasts_until_half_of_the_watermark():
    """No flicker at one mark, and its time is counted."""
    made = consumer()
    seen = []
    for now, rows in enumerate([100, 101, 100, 51, 50, 100, 101]):
        made.traffic.held(2, 1, rows, 0)
        seen.append(made.judge(float(now)))
    assert seen == [False, True, True, True, False, False, True]
    assert made.pauses == 2
    assert made.seconds_paused(8.0) == 3.0 + 2.0


def test_what_is_set_aside_pauses_spouts_though_it_is_consumed():
    made = consumer()
    made.measured(Credit(window_rows=500, window_bytes=9_000, high_rows=100, pace=200, aside_rows=101))
    assert made.judge(0.0)
    made.measured(Credit(window_rows=500, window_bytes=9_000, high_rows=100, pace=200, aside_bytes=5_001))
    assert made.judge(1.0)
    made.measured(Credit(window_rows=500, window_bytes=9_000, high_rows=100, pace=200))
    assert not made.judge(2.0)


def test_bytes_pause_too():
    made = consumer()
    made.traffic.held(2, 1, 0, 10_001)
    assert made.judge(0.0)
    made.traffic.held(2, 1, 0, 4_000)
    made.traffic.sent(2, 1, 0, 1_001, 1.0)
    assert made.judge(1.0)
    made.traffic.consumed(2, 1, 0, 1)
    assert not made.judge(2.0)


def test_a_new_life_of_the_task_keeps_what_is_held():
    """Nothing waits in it, nothing is known of its speed; its senders still hold their rows."""
    made = consumer()
    made.measured(Credit(window_rows=500, window_bytes=9_000, high_rows=300, pace=200))
    made.traffic.sent(2, 1, 50, 500, 0.0)
    made.traffic.held(2, 1, 7, 70)
    made.traffic.consumed(2, 1, 20, 200)
    made.restart(2)
    assert (made.life, made.window_rows, made.window_bytes, made.pace) == (2, 16, 4096, 16)
    assert (made.traffic.rows, made.traffic.bytes) == (7, 70)


@given(st.integers(1, 10**6), st.integers(1, 10**8), st.integers(1, 8))
def test_active_senders_share_the_window(rows, size, active):
    """Their windows add up to no more than the task's, except that each may send one row."""
    made = consumer()
    made.measured(Credit(window_rows=rows, window_bytes=size, high_rows=10, pace=3))
    made.traffic.sent(99, 7, 0, 1, 10.0 - ACTIVE_FOR)
    for number in range(active):
        made.traffic.sent(number, 7, 1, 1, 10.0)
    grants = [made.grant(number, 10.0) for number in range(active)]
    for name, whole in (("window_rows", rows), ("window_bytes", size)):
        shares = [getattr(grant, name) for grant in grants]
        assert min(shares) >= 1
        assert sum(shares) <= max(whole, active)
    assert {(g.task, g.task_life, g.container_life, g.pace) for g in grants} == {(5, 1, 7, 3)}


def test_a_manager_that_never_sent_gets_no_credit():
    assert consumer().grant(3, 0.0) is None


steps = st.one_of(
    st.tuples(st.just("sent"), st.integers(1, 4), st.integers(0, 20)),
    st.tuples(st.just("consumed"), st.integers(1, 4), st.integers(0, 40)),
    st.tuples(st.just("measured"), st.integers(1, 10_000), st.integers(1, 50)),
    st.tuples(st.just("restart"), st.just(0), st.just(0)),
    st.tuples(st.just("later"), st.sampled_from([1, 5, 10, 11]), st.just(0)),
)


@given(st.lists(steps, max_size=40))
def test_nobody_works_by_a_share_that_is_over(changes):
    """Of an active sender the share is the present one once it was told; of another it is at most twice that."""
    made, now, told = consumer(), 0.0, {}
    for what, number, rows in changes:
        if what == "sent":
            made.traffic.sent(number, 1, rows, rows, now)
        elif what == "consumed":
            made.traffic.consumed(number, 1, rows, rows)
        elif what == "measured":
            made.measured(Credit(window_rows=number, window_bytes=number * 3, high_rows=10, pace=rows))
        elif what == "restart":
            made.restart(made.life + 1)
            told.clear()
        else:
            now += number / 10
        for container in made.untold(now):
            grant = made.grant(container, now)
            told[container] = grant.window_rows, grant.window_bytes, grant.pace
        share = made.share(now)
        active = {*made.traffic._recent, *made.traffic._patient}
        assert all(told[container] == share for container in active)
        assert all(part <= 2 * most for parts in told.values() for part, most in zip(parts, share, strict=True))
        assert made.untold(now) == []

"""Two processes that speak for one number: each has its connection, and only the present one is sent to."""

from __future__ import annotations

import pytest

from ardea.transport import Bound, Callers, Dialled, Poller, caller, context, peer_number


@pytest.mark.parametrize(
    ("name", "number"),
    [
        (b"t7-9f2c01aa", 7),
        (b"m12", 12),
        (b"m", -1),
        (b"-", -1),
        (b"t-7", -1),
        (b"tx", -1),
        (b"\xff\xfe", -1),
        (b"", -1),
    ],
)
def test_a_name_begins_with_a_number_or_is_a_strangers(name, number):
    assert peer_number(name) == number


def test_no_two_processes_have_one_name():
    names = {caller("t", 7) for _ in range(100)}
    assert len(names) == 100
    assert {peer_number(name) for name in names} == {7}


def test_each_incarnation_is_reached_where_it_spoke_last():
    callers = Callers()
    assert callers.name(7, 0) is callers.name(7, 1) is None
    callers.hears(7, 1, b"t7-old")
    assert callers.name(7, 0) == b"t7-old"
    assert callers.name(8, 0) is None
    callers.hears(7, 2, b"t7-new")
    callers.hears(7, 1, b"t7-old")
    assert callers.name(7, 2) == b"t7-new"
    assert callers.name(7, 1) == b"t7-old"
    callers.hears(7, 2, b"t7-newer")
    assert callers.name(7, 2) == b"t7-newer"


def test_made_up_incarnations_take_no_memory_for_ever(monkeypatch):
    monkeypatch.setattr("ardea.transport.callers.MOST", 3)
    callers = Callers()
    for incarnation in (1, 2, 1, 3, 4):
        callers.hears(7, incarnation, b"t7-%d" % incarnation)
    assert [callers.name(7, incarnation) for incarnation in (1, 2, 3, 4)] == [b"t7-1", None, b"t7-3", b"t7-4"]


def test_a_former_process_keeps_its_connection_and_takes_nobodys(deadline):
    """With one name for both, the present one would be cut off without noticing it."""
    ctx = context()
    bound, poller = Bound(ctx), Poller()
    port = bound.bind("tcp://127.0.0.1:0")
    poller.watch(bound)
    former, present = (Dialled(ctx, caller("t", 7), f"tcp://127.0.0.1:{port}") for _ in range(2))
    heard = {}

    def hear():
        for dialled, text in ((former, b"former"), (present, b"present")):
            dialled.send([text])
        poller.wait(0.05)
        heard.update({frames[0]: name for name, frames in bound.receive(100)})
        return len(heard) == 2

    try:
        deadline(hear, "both are heard")
        assert bound.send(heard[b"present"], [b"yes"])
        assert bound.send(heard[b"former"], [b"no"])
        assert not bound.send(None, [b"nobody"])
        for dialled, answer in ((present, b"yes"), (former, b"no")):
            assert deadline(lambda dialled=dialled: list(dialled.receive(9)), "an answer") == [[answer]]
    finally:
        for endpoint in (former, present, bound):
            endpoint.close()
        poller.close()
        ctx.destroy(linger=0)

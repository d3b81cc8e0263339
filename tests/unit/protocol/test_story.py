"""The last events of one thing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ardea.protocol.lane import Lane
from ardea.protocol.link import Link
from ardea.protocol.story import KEPT, Story
from ardea.protocol.wire_pb2 import CREDITS, Header


def test_what_happens_again_takes_one_place():
    story = Story()
    for at, what in ((1.0, "up"), (2.0, "late"), (3.0, "late"), (4.0, "up")):
        story.tell(at, what)
    assert story.lines(10.0) == ["9.0 s ago: up", "7.0 s ago: late (2 times)", "6.0 s ago: up"]


@given(told=st.lists(st.sampled_from("abc"), max_size=50))
def test_it_is_bounded_and_keeps_the_last(told):
    story = Story()
    for at, what in enumerate(told):
        story.tell(float(at), what)
    assert len(story.events) <= KEPT
    assert [event.what for event in story.events][-1:] == told[-1:]
    if len(story.events) < KEPT:
        assert sum(event.times for event in story.events) == len(told)


def test_a_link_tells_of_lives_and_gaps():
    link = Link("peer", "peer", 1, lambda *_: None)
    link.meet(5)
    link.last_heard = 7.0
    link.accept(Lane.CONTROL, Header(kind=CREDITS, sender=5, receiver=1, sequence=3), 0)
    link.meet(6)
    assert [event.what for event in link.story.events] == [
        "met admission 0, life 5, after unknown",
        "asks for CONTROL from 1",
        "heard again",
        "met admission 0, life 6, after admission 0, life 5",
    ]
    assert [event.at for event in link.story.events] == [0.0, 7.0, 7.0, 7.0]

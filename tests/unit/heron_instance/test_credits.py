"""What an instance tells its manager of its input: what was consumed, once, and how fast."""

from __future__ import annotations

import pytest

from ardea.heron_instance.gateway import Gateway, Listener
from ardea.heron_instance.messages import OutMessage
from ardea.protocol.flow import Window
from ardea.protocol.lane import Lane
from ardea.protocol.wire_pb2 import CREDITS, HEARTBEAT, HELLO, MARKER, ROWS, Header, Hello
from ardea.versions import PROTOCOL

MANAGER = 1 << 32 | 1


class Deaf(Listener):
    def deliver(self, header, frames, size):
        pass

    def planned(self, plan):
        pass

    def reborn(self):
        pass


class Instance:
    def __init__(self):
        self.now, self.said = 0.0, []
        self.window = Window(1 << 20, 5.0)
        hello = Hello(protocol=PROTOCOL, task=7, epoch=1, build=1)
        self.gateway = Gateway(hello, 1, self.window, self.sent, Deaf())
        self.met(MANAGER)

    def sent(self, _link, _lane, message):
        self.said.append(Header.FromString(message[0]))

    def met(self, life):
        hello = Hello(protocol=PROTOCOL, epoch=1, build=1).SerializeToString()
        self.gateway.received(Lane.CONTROL, Header(kind=HELLO, sender=life, receiver=1), [hello], self.now)
        self.second()
        self.said.clear()

    def takes(self, container, rows, size=0, busy=0.0, life=1):
        """The executor takes a batch, and is done with it."""
        header = Header(kind=ROWS, rows=rows, container=container, container_life=life, sender=self.gateway.link.peer)
        self.gateway.consumed(header, size)
        self.window.consumed(rows, size, busy)

    def second(self):
        self.now += 1.0
        header = Header(kind=HEARTBEAT, sender=self.gateway.link.peer, receiver=1)
        self.gateway.received(Lane.CONTROL, header, [], self.now)
        self.gateway.tick(self.now)

    def credits(self):
        """What it has said of (container, rows), of all messages."""
        return [(credit.container, credit.rows) for header in self.said for credit in header.credits]


@pytest.fixture
def instance():
    return Instance()


def test_a_quarter_of_the_window_is_told_at_once_and_less_within_a_second(instance):
    instance.takes(2, 1)
    instance.gateway.tick(instance.now)
    assert instance.credits() == [(2, 1)], "of the first batch at once, with the measures"
    instance.takes(2, 3)
    instance.gateway.tick(instance.now)
    assert instance.credits() == [(2, 1)]
    instance.takes(2, 1)
    instance.gateway.tick(instance.now)
    assert instance.credits() == [(2, 1), (2, 5)]
    instance.takes(2, 1)
    instance.second()
    assert instance.credits() == [(2, 1), (2, 5), (2, 6)]
    assert {header.kind for header in instance.said if header.credits} == {CREDITS}, "which is not lost"


def test_what_was_told_is_not_said_again(instance):
    instance.takes(2, 4)
    instance.takes(3, 4)
    instance.second()
    instance.said.clear()
    for _ in range(3):
        instance.second()
    assert [header.kind for header in instance.said] == [HEARTBEAT] * 3
    assert instance.credits() == []


def test_a_window_that_has_changed_is_told_with_any_one_sender(instance):
    """The measures are the task's: its manager tells the senders."""
    for container in (2, 3, 4):
        instance.takes(container, 1)
    instance.second()
    instance.said.clear()
    instance.window.consumed(16, 100, 0.001)
    instance.gateway.tick(instance.now)
    ((credit,),) = [list(header.credits) for header in instance.said]
    assert (credit.rows, credit.window_rows) == (1, 32)


def test_a_changed_pace_is_told_within_a_second(instance):
    instance.takes(2, 1)
    instance.second()
    instance.said.clear()
    instance.window.rate = 5.0
    instance.gateway.tick(instance.now)
    assert instance.said == []
    instance.second()
    assert [credit.pace for header in instance.said for credit in header.credits] == [5]


def test_a_new_life_of_the_manager_hears_of_what_came_from_it_only(instance):
    instance.takes(2, 1)
    instance.met(MANAGER + 1)
    instance.second()
    assert instance.credits() == []
    instance.takes(2, 2)
    instance.second()
    assert instance.credits() == [(2, 2)]


def test_a_new_life_of_the_manager_hears_the_measures_with_the_first_rows(instance):
    """It takes 16 rows for the window until then, and nothing moves once as many are on their way."""
    instance.takes(2, 16, busy=0.001)
    instance.second()
    instance.met(MANAGER + 1)
    instance.takes(2, 1)
    instance.gateway.tick(instance.now)
    ((credit,),) = [list(header.credits) for header in instance.said]
    assert (credit.rows, credit.window_rows, credit.pace) == (1, 32, 16)


def test_what_a_former_life_of_a_sender_sent_is_nobodys_once_the_next_has_sent(instance):
    """It has waited, as batches do that come ahead of their timeline; its sender counts anew."""
    instance.takes(2, 5, life=1)
    instance.takes(2, 3, life=2)
    instance.takes(2, 7, life=1)
    instance.second()
    assert instance.credits()[-1] == (2, 3)


def test_what_waits_aside_is_told_with_the_credit_and_that_it_is_over_within_a_second(instance):
    instance.window.aside_rows, instance.window.aside_bytes = 40, 400
    instance.takes(2, 40)
    instance.second()
    (credit,) = (credit for header in instance.said for credit in header.credits)
    assert (credit.rows, credit.aside_rows, credit.aside_bytes) == (40, 40, 400)
    instance.said.clear()
    instance.window.aside_rows = instance.window.aside_bytes = 0
    instance.second()
    (credit,) = (credit for header in instance.said for credit in header.credits)
    assert (credit.rows, credit.aside_rows, credit.aside_bytes) == (40, 0, 0)


def test_a_marker_that_is_held_counts_as_output_though_it_has_no_size():
    """Else an executor that waits for room would find it at once, again and again."""
    gateway = Gateway(
        Hello(protocol=PROTOCOL, task=7, epoch=1, build=1), 1, Window(1 << 20, 5.0), lambda *_: None, Deaf()
    )
    assert (gateway.held, gateway.held_bytes) == (False, 0)
    gateway.offer(OutMessage(Header(kind=MARKER), [], 0, 0))
    assert (gateway.held, gateway.held_bytes) == (True, 1)


def test_what_is_consumed_as_the_manager_has_a_new_life_is_not_told_to_that_one():
    """The executor has looked at the manager, and writes after the gateway has met the next one."""
    instance = Instance()
    instance.takes(2, 100)
    gateway = instance.gateway

    class Slow(dict):
        def get(self, key):
            instance.met(MANAGER + 1)
            return super().get(key)

    gateway._consumed = Slow(gateway._consumed)
    instance.takes(2, 50)
    instance.second()
    assert instance.credits() == []
    instance.takes(2, 7)
    instance.second()
    assert instance.credits() == [(2, 7)]

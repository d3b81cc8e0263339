"""What managers tell each other, and when: credit and demands where something has changed, lives in one message."""

from __future__ import annotations

import pytest

from ardea.protocol.incarnations import incarnation
from ardea.protocol.lane import Lane
from ardea.protocol.link import CONTROL_ROOM
from ardea.protocol.wire_pb2 import CREDITS, HEARTBEAT, HELLO, PAUSE, PLAN, TASKS, Demand, Header, Hello, Plan, Tasks
from ardea.stream_manager.known_plan import KnownPlan
from ardea.stream_manager.members import SOON
from ardea.stream_manager.senders import may_come_from_instance
from ardea.versions import PROTOCOL
from tests.unit.stream_manager.mesh import Mesh


@pytest.fixture
def mesh():
    """Two managers; all of their tasks are there, and nothing has been said since."""
    made = Mesh(2)
    made.begins(*made.plan.tasks)
    made.second()
    made.said.clear()
    return made


def sender_and_readers(mesh):
    """A spout of the first container, and the bolts of the second."""
    return mesh.tasks(1, "rows")[0], mesh.tasks(2, "keep")


def lives(said):
    return [(dict(Tasks.FromString(frames[0]).lives), Tasks.FromString(frames[0]).again) for _, frames in said]


# --- incarnations -------------------------------------------------------------------------------------------------


def test_tasks_that_rise_in_one_round_are_told_in_one_message():
    """To tasks together with those that rise soon after."""
    mesh = Mesh(2)
    mesh.begins(*mesh.tasks(1, "rows"), *mesh.tasks(2, "keep"))
    mesh.soon()
    mesh.said.clear()
    risen = mesh.tasks(1, "keep")
    mesh.begins(*risen)
    assert not mesh.heard(TASKS, f"task {mesh.tasks(1, 'rows')[0]}")
    assert mesh.managers[1].tick(mesh.now) <= mesh.now + SOON
    mesh.soon()
    expected = [({task: mesh.managers[1].members.lives[task] for task in risen}, False)]
    assert len(risen) == 3
    assert lives(mesh.heard(TASKS, "manager 2")) == expected
    assert lives(mesh.heard(TASKS, f"task {mesh.tasks(1, 'rows')[0]}")) == expected
    assert lives(mesh.heard(TASKS, f"task {mesh.tasks(2, 'keep')[0]}")) == expected


def test_tasks_hear_in_time_however_often_another_rises():
    mesh = Mesh(2)
    mesh.begins(*mesh.plan.tasks)
    mesh.soon()
    mesh.said.clear()
    one, two, _ = mesh.tasks(1, "keep")
    mesh.begins(one, life=2)
    mesh.now += 0.8 * SOON
    mesh.begins(two, life=2)
    mesh.now += 0.2 * SOON
    mesh.flush()
    assert len(lives(mesh.heard(TASKS, f"task {mesh.tasks(1, 'rows')[0]}"))) == 1


def test_who_is_dialled_elsewhere_now_is_said_hello_and_nobody_else():
    mesh = Mesh(3)
    manager = mesh.managers[1]
    known = KnownPlan.of(mesh.sent)
    mesh.said.clear()
    change = Plan(base=0, epoch=1, build=1)
    change.addresses.add(container=2, host="elsewhere")
    manager.planned(known.changed(change))
    assert [to for _, to, header, _ in mesh.said if header.kind == HELLO] == ["manager 2"]
    assert manager.members.addresses[2].host == "elsewhere"


def test_where_lives_must_wait_the_newest_of_each_task_is_told(mesh):
    """The peer confirms nothing: a mebibyte is on its way, and no more is sent."""
    here, peer = mesh.managers[1].members, mesh.managers[1].members.peers[2]
    one, two, _ = mesh.tasks(1, "keep")
    peer.lanes[0].unconfirmed_bytes += CONTROL_ROOM
    mesh.begins(one, life=2)
    mesh.begins(one, two, life=3)
    assert mesh.heard(TASKS, "manager 2") == []
    peer.lanes[0].unconfirmed_bytes -= CONTROL_ROOM
    mesh.flush()
    assert lives(mesh.heard(TASKS, "manager 2")) == [
        ({one: here.lives[one]}, False),
        ({two: here.lives[two]}, False),
    ]


def test_a_task_whose_manager_is_back_is_told_as_the_same_again(mesh):
    """Its readers then send it their markers once more."""
    here = mesh.managers[1].members
    (task, *_) = mesh.tasks(2, "keep")
    here.left_behind(2)
    assert here.risen(task, here.lives[task]) == here.lives[task]
    mesh.flush()
    mesh.soon()
    assert lives(mesh.heard(TASKS, f"task {mesh.tasks(1, 'rows')[0]}")) == [({task: here.lives[task]}, True)]


def test_a_hello_that_comes_again_is_answered_without_the_plan():
    mesh = Mesh(2)
    (task,) = mesh.tasks(1, "rows")
    mesh.said.clear()
    mesh.begins(task)
    mesh.begins(task)
    assert len(mesh.heard(PLAN, f"task {task}")) == 1
    assert len(mesh.heard(HELLO, f"task {task}")) == 2
    mesh.begins(task, life=2)
    assert len(mesh.heard(PLAN, f"task {task}")) == 2


# --- credit -------------------------------------------------------------------------------------------------------


def test_credit_for_several_tasks_travels_in_one_message(mesh):
    spout, readers = sender_and_readers(mesh)
    for reader in readers:
        mesh.emits(spout, reader, 8)
    mesh.flush()
    for reader in readers:
        mesh.consumes(reader, 1, 5)
    mesh.flush()
    ((header, _),) = mesh.heard(CREDITS, "manager 1")
    assert {(credit.task, credit.rows) for credit in header.credits} == {(reader, 5) for reader in readers}
    channels = mesh.managers[1].rows.channels
    assert [channels[reader].inflight_rows for reader in readers] == [3, 3, 3]


def test_where_credit_must_wait_the_newest_of_each_task_is_told(mesh):
    spout, (one, two, _) = sender_and_readers(mesh)
    for reader in (one, two):
        mesh.emits(spout, reader, 8)
    mesh.flush()
    peer = mesh.managers[2].members.peers[1]
    peer.lanes[0].unconfirmed_bytes += CONTROL_ROOM
    mesh.consumes(one, 1, 3)
    mesh.consumes(two, 1, 4)
    mesh.flush()
    mesh.consumes(one, 1, 8)
    mesh.flush()
    assert mesh.heard(CREDITS, "manager 1") == []
    peer.lanes[0].unconfirmed_bytes -= CONTROL_ROOM
    mesh.flush()
    said = [credit for header, _ in mesh.heard(CREDITS, "manager 1") for credit in header.credits]
    assert [(credit.task, credit.rows) for credit in said] == [(one, 8), (two, 4)]


def test_a_task_hears_within_a_second_of_little_output_that_went_on(mesh):
    """A quarter of its window it hears of at once; of what has been told, nothing again."""
    spout, (reader, *_) = sender_and_readers(mesh)
    mesh.emits(spout, reader, 1)
    mesh.flush()
    assert mesh.heard(CREDITS, f"task {spout}") == []
    for _ in range(3):
        mesh.second()
    ((header, _),) = mesh.heard(CREDITS, f"task {spout}")
    assert [credit.rows for credit in header.credits] == [1]


def test_credit_that_has_been_told_is_not_repeated(mesh):
    spout, (reader, *_) = sender_and_readers(mesh)
    mesh.emits(spout, reader, 8)
    mesh.flush()
    mesh.consumes(reader, 1, 8)
    mesh.flush()
    mesh.said.clear()
    for _ in range(3):
        mesh.second()
    assert mesh.heard(CREDITS, "manager 1") == []
    assert not any(header.credits or header.demands for header, _ in mesh.heard(HEARTBEAT, "manager 1"))


def test_a_sender_that_waits_hears_of_a_larger_share_within_a_second(mesh):
    """Both managers send, then only one: the other's part of the window becomes its own."""
    (here,), (there,) = mesh.tasks(1, "rows"), mesh.tasks(2, "rows")
    reader = mesh.tasks(2, "keep")[0]
    channel = mesh.managers[1].rows.channels[reader]
    mesh.emits(here, reader, 20)
    mesh.emits(there, reader, 1)
    mesh.flush()
    mesh.consumes(reader, 2, 1, window_rows=40)
    mesh.flush()
    assert channel.window_rows == 20
    mesh.second()
    mesh.second()
    assert channel.window_rows == 40


def test_a_new_life_of_a_sender_hears_of_its_share_with_its_first_batch(mesh):
    """It begins with 16 rows, and the task may consume as many long before a quarter of its window."""
    spout, (reader, *_) = sender_and_readers(mesh)
    mesh.emits(spout, reader, 8)
    mesh.flush()
    mesh.consumes(reader, 1, 8, window_rows=1000)
    mesh.flush()
    mesh.reborn(1)
    mesh.deliver()
    mesh.begins(spout)
    mesh.emits(spout, reader, 8)
    mesh.deliver()
    channel = mesh.managers[1].rows.channels[reader]
    assert (channel.inflight_rows, channel.window_rows) == (8, 1000)


def test_a_sender_that_rests_is_told_of_less_than_half(mesh):
    """It must not begin with so much; of a little less it hears when it begins."""
    spout, (reader, *_) = sender_and_readers(mesh)
    channel = mesh.managers[1].rows.channels[reader]
    mesh.emits(spout, reader, 8)
    mesh.flush()
    mesh.consumes(reader, 1, 8, window_rows=100)
    mesh.flush()
    mesh.second()
    mesh.second()
    mesh.consumes(reader, 2, 0, window_rows=60)
    mesh.flush()
    mesh.second()
    assert channel.window_rows == 100
    mesh.consumes(reader, 2, 0, window_rows=49)
    mesh.flush()
    mesh.second()
    assert channel.window_rows == 49


# --- at rest ------------------------------------------------------------------------------------------------------


def beats(mesh, seconds):
    """How many heartbeats the first manager sends the second in so many seconds."""
    mesh.said.clear()
    for _ in range(seconds):
        mesh.second()
    return len(mesh.heard(HEARTBEAT, "manager 2"))


def test_managers_that_exchange_nothing_beat_each_ten_seconds(mesh):
    beats(mesh, 10)
    assert beats(mesh, 30) == 3
    spout, (reader, *_) = sender_and_readers(mesh)
    mesh.emits(spout, reader, 8)
    assert beats(mesh, 5) >= 5
    beats(mesh, 10)
    assert beats(mesh, 30) == 3


def test_managers_beat_each_second_while_something_is_held(mesh):
    spout, (reader, *_) = sender_and_readers(mesh)
    mesh.emits(spout, reader, 20)
    mesh.emits(spout, reader, 5)
    beats(mesh, 20)
    assert beats(mesh, 10) == 10


# --- demands ------------------------------------------------------------------------------------------------------


def waiting(mesh, task):
    return mesh.managers[2].inputs.consumers[task].traffic.rows


def test_what_is_held_is_named_and_what_is_not_named_is_not_held(mesh):
    spout, (one, two, _) = sender_and_readers(mesh)
    for reader in (one, two):
        mesh.emits(spout, reader, 20)
        mesh.emits(spout, reader, 5)
    mesh.second()
    ((header, _),) = [said for said in mesh.heard(HEARTBEAT, "manager 2") if said[0].all_held]
    assert {demand.task: demand.held_rows for demand in header.demands} == {one: 5, two: 5}
    assert (waiting(mesh, one), waiting(mesh, two)) == (25, 25)
    # The rows of one move on, and wait no longer; the word of that is lost once.
    mesh.said.clear()
    mesh.loses = lambda kind: kind == HEARTBEAT
    mesh.consumes(one, 1, 20)
    mesh.second()
    assert mesh.managers[1].rows.channels[one].held_rows == 0
    assert waiting(mesh, one) == 10, "held five, and five on their way"
    mesh.loses = lambda kind: False
    mesh.second()
    assert (waiting(mesh, one), waiting(mesh, two)) == (5, 25)


@pytest.mark.parametrize("container", [1, 2])
def test_that_half_of_what_was_held_has_gone_is_told_at_once(mesh, container):
    """Else they would pause for up to a second longer than anything waits, and the task would have nothing to do."""
    spout, reader = mesh.tasks(1, "rows")[0], mesh.tasks(container, "keep")[0]
    consumer = mesh.managers[container].inputs.consumers[reader]
    mesh.emits(spout, reader, 16)
    mesh.emits(spout, reader, 40)
    mesh.flush()
    assert consumer.pausing
    assert consumer.traffic.rows == 56
    mesh.consumes(reader, 1, 16, high_rows=100)
    mesh.flush()
    mesh.flush()
    assert mesh.managers[1].rows.channels[reader].held_rows == 0
    assert consumer.traffic.rows == 40, "no row is counted as held and as sent"
    assert not consumer.pausing


def test_that_less_is_held_is_told_with_the_next_heartbeat_where_it_was_little(mesh):
    spout, (reader, *_) = sender_and_readers(mesh)
    mesh.emits(spout, reader, 16)
    mesh.consumes(reader, 1, 0, window_rows=16)
    mesh.emits(spout, reader, 3)
    mesh.flush()
    mesh.said.clear()
    mesh.consumes(reader, 1, 16)
    mesh.flush()
    assert mesh.managers[1].rows.channels[reader].held_rows == 0
    assert not mesh.heard(HEARTBEAT, "manager 2")


def test_more_for_one_task_says_nothing_of_another(mesh):
    """A word ahead of the heartbeat names one task."""
    spout, (one, two, _) = sender_and_readers(mesh)
    mesh.emits(spout, one, 20)
    mesh.emits(spout, one, 5)
    mesh.second()
    mesh.emits(spout, two, 20)
    mesh.emits(spout, two, 5)
    mesh.deliver()
    assert (waiting(mesh, one), waiting(mesh, two)) == (25, 25)


def test_a_second_after_nothing_is_held_any_more_that_is_said_once(mesh):
    """However little else is said on the link."""
    spout, (reader, *_) = sender_and_readers(mesh)
    rows = mesh.managers[1].rows
    mesh.emits(spout, reader, 20)
    mesh.emits(spout, reader, 5)
    assert [(demand.task, demand.held_rows) for demand in rows.beat()[2]] == [(reader, 5)]
    rows.channels[reader].sift(lambda _held: False)
    assert rows.beat() == {2: []}
    assert rows.beat() == {}


@pytest.mark.parametrize("said", [{"all_held": True}, {"demands": [Demand(task=1)]}])
def test_a_task_cannot_say_what_a_container_holds(said):
    """Its number may be that of a container."""
    assert may_come_from_instance(1, Header(kind=HEARTBEAT), [])
    assert not may_come_from_instance(1, Header(kind=HEARTBEAT, **said), [])


def test_what_a_former_life_of_a_manager_sent_and_held_waits_no_longer(mesh):
    """Its next life may send and hold nothing: its spouts may be paused for just these rows."""
    spout, (reader, *_) = sender_and_readers(mesh)
    mesh.emits(spout, reader, 20)
    mesh.emits(spout, reader, 5)
    mesh.second()
    assert mesh.managers[2].inputs.consumers[reader].pausing
    hello = Hello(protocol=PROTOCOL, topology="many-1", container=1, epoch=1, build=1)
    hello.digest = mesh.managers[1].hellos.digest
    manager, link = mesh.managers[2], mesh.managers[2].members.peers[1]
    header = Header(kind=HELLO, sender=incarnation(1, 2), receiver=manager.members.me)
    manager.received(link, Lane.CONTROL, header, [hello.SerializeToString()], mesh.now)
    assert waiting(mesh, reader) == 0
    mesh.second()
    assert not manager.inputs.consumers[reader].pausing


def test_spouts_go_on_when_a_task_died_with_what_they_waited_for(mesh):
    """They are paused for rows that nobody has any more, and so nothing else comes that could end it."""
    spout, (reader, *_) = sender_and_readers(mesh)
    mesh.emits(spout, reader, 20)
    mesh.deliver()
    mesh.second()
    assert mesh.managers[2].inputs.consumers[reader].pausing
    mesh.begins(reader, life=2)
    mesh.said.clear()
    mesh.second()
    assert not mesh.managers[2].inputs.consumers[reader].pausing
    assert [header.paused for header, _ in mesh.heard(PAUSE, "manager 1")] == [False]
    assert [header.paused for header, _ in mesh.heard(PAUSE, f"task {spout}")] == [False]


def test_what_a_container_held_that_has_left_waits_no_longer(mesh):
    spout, (reader, *_) = sender_and_readers(mesh)
    mesh.emits(spout, reader, 20)
    mesh.emits(spout, reader, 5)
    mesh.second()
    mesh.consumes(reader, 1, 20)
    assert waiting(mesh, reader) == 5
    mesh.managers[2].inputs.container_left(1)
    assert waiting(mesh, reader) == 0


def test_a_pause_is_repeated_while_it_lasts_and_ends_when_nothing_is_held(mesh):
    spout, (reader, *_) = sender_and_readers(mesh)
    mesh.emits(spout, reader, 20)
    mesh.emits(spout, reader, 5)
    mesh.second()
    mesh.said.clear()
    mesh.second()
    assert [header.paused for header, _ in mesh.heard(PAUSE, "manager 1")] == [True]
    mesh.said.clear()
    mesh.consumes(reader, 1, 20)
    mesh.flush()
    mesh.consumes(reader, 1, 25)
    mesh.second()
    assert [header.paused for header, _ in mesh.heard(PAUSE, "manager 1")] == [False]

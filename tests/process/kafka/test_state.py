"""The transactional sink, one partition of it at a time, against a real broker."""

from __future__ import annotations

import itertools

import pytest

from ardea.errors import FailedException, UserError
from ardea.kafka import KafkaState, Record
from ardea.kafka.control import decode
from ardea.kafka.state import TopicState


@pytest.fixture
def make(broker, request):
    """Makes states of one name and control topic; closes them."""
    made = []
    name, topic = broker.topic(), broker.topic(2)
    control = f"{name}-control"

    def state(partition=0, partitions=1):
        config = {"kafka.bootstrap.servers": broker.servers}
        made.append(KafkaState(name, control=control).make_state(config, partition, partitions))
        return made[-1]

    state.topic, state.name, state.control = topic, name, control
    yield state
    for each in made:
        each.close()
    broker.also(control)


def written(state, topic, txid, *values):
    state.begin_commit(txid)
    state.write(topic, [Record(value) for value in values])
    state.commit(txid)


def test_a_batch_that_comes_again_is_written_once_and_an_open_one_never(broker, make):
    state = make()
    written(state, make.topic, 1, "one")
    written(state, make.topic, 1, "one")
    state.begin_commit(2)
    state.write(make.topic, [Record("left")])
    written(state, make.topic, 2, "two")
    state = make()
    written(state, make.topic, 2, "two")
    written(state, make.topic, 3, "three")
    assert sorted(broker.read(make.topic)) == [b"one", b"three", b"two"]
    stored = [(message.key(), message.value()) for message in broker.messages(make.control)]
    assert decode(make.name, stored) == {0: (3, 1)}


def test_a_zombie_that_wakes_up_writes_nothing(broker, make):
    zombie = make()
    written(zombie, make.topic, 1, "one")
    zombie.begin_commit(2)
    zombie.write(make.topic, [Record("two, of the zombie")])
    heir = make()
    written(heir, make.topic, 2, "two")
    with pytest.raises(FailedException, match="another task has taken over"):
        zombie.commit(2)
    assert sorted(broker.read(make.topic)) == [b"one", b"two"]


@pytest.mark.thorough
def test_what_is_committed_behind_an_open_transaction_of_another_is_waited_for_and_never_forgotten(
    broker, make, monkeypatch
):
    first = make()
    stranger = broker.producer(**{"transactional.id": f"{make.name}-stranger"})
    stranger.init_transactions(30)
    stranger.begin_transaction()
    stranger.produce(make.control, b"held open", b"stranger")
    assert stranger.flush(30) == 0
    written(first, make.topic, 1, "one")
    said = rf"waits to read the control topic up to offset 3 of {make.control}\[0\]"
    with monkeypatch.context() as patch:
        patch.setattr(TopicState, "clock", staticmethod(itertools.count(step=10).__next__))
        heir = make()
        with pytest.raises(FailedException, match=said):
            heir.begin_commit(1)
    stranger.abort_transaction(30)
    written(heir, make.topic, 1, "one")
    written(heir, make.topic, 2, "two")
    assert sorted(broker.read(make.topic)) == [b"one", b"two"]


@pytest.mark.thorough
def test_partitions_are_apart_and_their_number_changes_only_between_transactions(broker, make):
    one, two = make(0, 2), make(1, 2)
    written(one, make.topic, 1, "a")
    with pytest.raises(UserError, match="had 2 partitions, has 3 now, and some have not committed transaction 1"):
        make(0, 3)
    written(two, make.topic, 1, "b")
    third = make(2, 3)
    written(third, make.topic, 1, "c")  # was committed, by two partitions
    written(third, make.topic, 2, "d")
    assert sorted(broker.read(make.topic)) == [b"a", b"b", b"d"]


def test_a_state_ahead_of_its_topology_refuses_it_and_says_so(make, caplog):
    state = make()
    written(state, make.topic, 5, "five")
    with pytest.raises(FailedException, match="has committed transaction 5, and 4 comes now"):
        state.begin_commit(4)
    assert "has committed transaction 5, and 4 comes now" in caplog.text


def test_a_record_that_is_refused_fails_the_batch_and_nothing_of_it_is_seen(broker, make, caplog):
    state = make()
    state.begin_commit(1)
    with pytest.raises(FailedException, match=r"too large|Message size"):
        state.write(make.topic, [Record("small"), Record(b"x" * 2_000_000)])
    written(state, make.topic, 1, "small")
    assert broker.read(make.topic) == [b"small"]
    state.begin_commit(2)
    state.write(f"{make.topic}-nowhere", [Record("stray")])
    with pytest.raises(FailedException, match=r"transaction 2 of .*; refused: Broker: Unknown topic"):
        state.commit(2)
    written(state, make.topic, 2, "again")
    assert sorted(broker.read(make.topic)) == [b"again", b"small"]
    assert "Message size too large; the batch fails and comes again" in caplog.text

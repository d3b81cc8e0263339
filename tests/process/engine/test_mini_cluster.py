"""Storm's mini-cluster tests (8.4 of the integration tests' list) and the API beyond Storm's, on real processes."""

from __future__ import annotations

import pytest

from tests.machine import patient
from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def timeout():
    """Seconds, of a message."""
    return patient(6.0)


@pytest.fixture(scope="module")
def ended(tmp_path_factory, timeout):
    """The topology, run once: each test looks at another part of what it left."""
    settings = {"topology.message.timeout.secs": timeout}
    with Running("storm.py", tmp_path_factory.mktemp("storm"), settings) as topology:
        outcome = topology.finish()
        yield topology, outcome


@pytest.fixture
def left(ended):
    return ended[0].left


def test_words_are_counted_by_key_and_globally(left):
    counted = left("counter")
    assert sorted(row for task in counted for row in task) == [["bob", 1], ["joey", 1], ["nathan", 1], ["nathan", 2]]
    words = [{word for word, _ in task} for task in counted]
    assert sum(map(len, words)) == 3, "each word in one task"
    assert left("overall") == [[1, 2, 3, 4]]
    assert left("aggregator") == [[1, 2, 3, 4]]


def test_equal_bytes_of_four_tasks_meet_in_one_of_six(left):
    assert sorted(left("tally")) == [[], [], [], [], [], list(range(1, 25))]


@pytest.mark.parametrize("grouping", ["partial", "near", "idlest"])
def test_each_word_goes_to_one_task(left, grouping):
    assert sorted(word for task in left(grouping) for [word] in task) == ["bob", "joey", "nathan", "nathan"]


def test_a_grouping_of_the_authors_own_chooses_its_tasks(left):
    words = [["nathan"], ["bob"], ["joey"], ["nathan"]]
    assert left("first") == [words, words, []]


def test_six_tasks_of_three_executors_each_get_the_tuple(left):
    tasks = left("everyone")
    assert [task["index"] for task in tasks] == [0, 1, 2, 3, 4, 5]
    assert all(task["got"] == ["one"] for task in tasks)


def test_a_components_configuration_wins_over_its_classs_and_the_topologys(left):
    """Four executors were asked for; the limit of two is that of the declaration, not the class's."""
    merged = {
        "fake.config": 123,
        "fake.config2": 987,
        "fake.topology": 5,
        "topology.max.task.parallelism": 2,
        "topology.max.spout.pending": 30,
    }
    assert left("configured") == [merged, merged]


def test_what_is_not_acked_times_out_exactly_once_a_time(ended, left, timeout):
    """1 and 3 are acked at once; 2 times out, again as the fourth to come, and is acked as the fifth."""
    verdicts = left("feeder")[0]
    assert [(kind, number) for kind, number, _ in verdicts] == [
        ("ack", 1), ("ack", 3), ("fail", 2), ("fail", 2), ("ack", 2),
    ]  # fmt: skip
    for kind, _, seconds in verdicts:
        if kind == "fail":
            assert timeout <= seconds < 3 * timeout
    feeder = ended[1].components["feeder"]
    assert (feeder.acked, feeder.timed_out, feeder.failed, feeder.given_up) == (3, 2, 0, 0)


def test_what_is_held_does_not_time_out_while_its_timeout_is_reset(left):
    """The first is held for half as long again as its timeout, and acked with the fifth; the second is neither."""
    [verdicts] = left("slowly")
    assert sorted(verdicts) == [["ack", 1], ["ack", 3], ["ack", 4], ["ack", 5], ["fail", 2]]


def test_ticks_reach_the_bolt_while_it_has_input_to_expect(left, timeout):
    ticks = left("every_other")[0]
    assert len(ticks) >= 2 * timeout / 0.2 / 3, "it waited for two timeouts"
    assert all(tick == ["__system", "__tick", 0.2] for tick in ticks)


def test_a_task_hook_sees_emits_acks_fails_and_executions(left):
    assert left("hook_rows") == [[[0, 0, 0, 0], [2, 1, 0, 1], [4, 1, 1, 2], [6, 2, 1, 3]]]


def test_tuples_held_over_batches_are_acked_once_each_and_work_goes_on_in_threads(left):
    assert left("numbers") == [{"acked": 1000, "most": 1, "open": 0}]
    assert left("holds")[0] >= 1
    assert left("total") == [{"sum": sum(range(1000)), "rows": 10}]
    assert left("asynchronous") == [{"refused": 10, "done": 10, "alive": False}]

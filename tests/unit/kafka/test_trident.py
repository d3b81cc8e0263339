"""What a batch is made of when partitions are silent, deleted, or read again; the broker is a script."""

from __future__ import annotations

import itertools
import logging
import re
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea.errors import FailedException, UserError
from ardea.kafka.client import Quiet
from ardea.kafka.fetching import Deleted
from ardea.kafka.marks import PartitionId
from ardea.kafka.survey import Span
from ardea.kafka.trident import KafkaTridentSpout
from ardea.metrics.user import CountMetric
from ardea.trident import Attempt
from ardea.trident.store import MemoryStore, StreamStore
from tests.simulation.trident.parts import ONE_TASK, Emissions
from tests.sizes import share

PLACE = PartitionId("t", 0)


class Message:
    """A record whose value and offset are a number."""

    def __init__(self, value, offset, size=1, key=None):
        self._value, self._offset, self._size, self._key = value, offset, size, key

    def __len__(self):
        return self._size

    def key(self):
        return self._key

    def value(self):
        return self._value

    def offset(self):
        return self._offset


class Log:
    """Stands for a fetcher: a partition with records ``first`` to ``end``, silent if told so."""

    def __init__(self, first: int = 0, end: int = 10, *, silent: bool = False) -> None:
        self.first, self.end, self.silent = first, end, silent

    def span(self, place):
        return Span(self.first, self.end)

    def new(self, place, begin, end, patience):
        self._check(place, begin)
        taken = [] if self.silent else range(begin, min(self.end, begin + 3, end if end is not None else self.end))
        return [Message(number, number) for number in taken], begin + len(taken)

    def again(self, place, begin, end, patience):
        self._check(place, begin)
        if self.silent or end > self.end:
            return None
        return [Message(number, number) for number in range(begin, end)]

    def _check(self, place, begin):
        if not self.first <= begin <= self.end:
            raise Deleted(place, begin, self.span(place))


class Logs:
    """Partitions of one topic; no two of their records are equal."""

    def __init__(self) -> None:
        self.parts = [Log(0, 4)]

    def span(self, place):
        return self.parts[place.partition].span(place)

    def new(self, place, *args):
        records, behind = self.parts[place.partition].new(place, *args)
        return self._own(place, records), behind

    def again(self, place, *args):
        records = self.parts[place.partition].again(place, *args)
        return None if records is None else self._own(place, records)

    def everything(self):
        """What of them becomes rows."""
        return [1000 * at + n for at, part in enumerate(self.parts) for n in range(part.end) if n % 5]

    def _own(self, place, records):
        return [Message(1000 * place.partition + record.value(), record.offset()) for record in records]


def no_fives(message):
    return [message.value()] if message.value() % 5 else None


def spout(log, *, topics="t", opaque=False, translate=no_fives, **options):
    make = KafkaTridentSpout.opaque_transactional if opaque else KafkaTridentSpout.transactional
    made = make(topics, ["n"], translate, **options)
    made._fetcher, made.submitted = log, []
    made._skipped = CountMetric()
    made._context = SimpleNamespace(submit=made.submitted.append)
    logger = logging.getLogger("test")
    made._connection = SimpleNamespace(quiet=Quiet(logger, lambda: 0.0), logger=logger, check=lambda: None)
    made._lib = SimpleNamespace(KafkaException=OSError)
    made.partitions, made.clock = lambda: ["t/0"], itertools.count().__next__  # each look is due
    made._begin(100)
    return made


def look(made, position):
    """Whether it is ready, and whether it has finished."""
    return made.is_ready({"t/0": [0, position]}), made.finished({"t/0": [0, position]})


def emitted(act, *args):
    rows = []
    result = act(*args, SimpleNamespace(emit=rows.append))
    return [row[0] for row in rows], result


def test_batches_follow_one_another_and_come_again_as_they_were():
    made = spout(Log())
    assert emitted(made.emit_new, Attempt(1, 0), "t/0", None) == ([1, 2], [0, 3])
    assert emitted(made.emit_new, Attempt(2, 0), "t/0", [0, 3]) == ([3, 4], [3, 6])
    assert emitted(made.emit_again, Attempt(1, 1), "t/0", [0, 3]) == ([1, 2], None)


events = st.lists(st.sampled_from(["again", "next", "life", "more", "part", "silent", "back"]), max_size=30)


@settings(max_examples=share(150))
@given(opaque=st.booleans(), events=events)
def test_every_record_is_in_one_batch(opaque, events):
    """Same transaction, same records, unless it is opaque; committed batches are disjoint, nothing is left out.

    Through new attempts, new lives, new partitions, and one that is silent for a while.
    """
    logs = Logs()
    made = spout(logs, opaque=opaque)
    made.partitions = lambda: [f"t/{number}" for number in range(len(logs.parts))]
    emissions, seen, committed = Emissions(made), {}, []
    for event in [*events, "back", *["next"] * 30]:
        logs.parts[0].silent = {"silent": True, "back": False}.get(event, logs.parts[0].silent)
        if event == "more":
            logs.parts[-1].end += 2
        if event == "part" and len(logs.parts) < 4:
            logs.parts.append(Log(0, 5))
        if event == "life":
            emissions.new_life()
        try:
            rows = emissions.emit()
        except FailedException:
            assert not opaque
            assert logs.parts[0].silent, "only a transactional batch waits, for what is silent"
            continue
        if not opaque:
            assert rows == seen.setdefault(emissions.txid, rows)
        if event == "next":
            committed += rows
            emissions.commit()
    assert sorted(committed) == logs.everything()


def test_a_stream_begins_at_its_start_and_a_later_partition_at_its_first_record():
    """Whatever number its first transaction has: it may stand in a topology whose other streams were read before."""
    made, store = spout(Log(2, 10), start="latest"), StreamStore(MemoryStore(), "topology", "stream")
    made.open = lambda config, context: None
    made.emitter({}, ONE_TASK, store)
    for txid in (501, 502):
        store.put(f"meta/{txid}", ["t/0"])
    assert emitted(made.emit_new, Attempt(501, 0), "t/0", None) == ([], [10, 10])
    assert emitted(made.emit_new, Attempt(502, 0), "t/0", None) == ([2, 3, 4], [2, 5])


def test_latest_is_found_once_in_a_life():
    """An opaque batch that comes again begins where the first attempt did: what came in between is in it."""
    log = Log()
    made = spout(log, opaque=True, start="latest")
    made.open = lambda config, context: None
    made.emitter({}, ONE_TASK, StreamStore(MemoryStore(), "topology", "stream"))
    assert emitted(made.emit_new, Attempt(1, 0), "t/0", None) == ([], [10, 10])
    log.end = 12
    assert emitted(made.emit_new, Attempt(1, 1), "t/0", None) == ([11], [10, 12])


def sees(topics, found, **options):
    """A spout that is to read topics where there are others: ``found`` has the number of partitions of each."""
    made = spout(Log(), topics=topics, **options)
    del made.partitions, made.clock
    made.time = [0.0]
    made.clock = lambda: made.time[0]

    def list_topics(timeout):
        return SimpleNamespace(
            topics={name: SimpleNamespace(error=None, partitions=range(count)) for name, count in found.items()}
        )

    made._connection.quiet = Quiet(made._connection.logger, made.clock)
    made._consumer = SimpleNamespace(list_topics=list_topics)
    made._begin(100)
    return made


def test_a_topic_that_is_awaited_is_named_every_ten_seconds(caplog):
    found = {"t": 2}
    made = sees(["t", "away"], found)
    for made.time[0] in (0.0, 5.0, 10.0):
        assert made.partitions() == ["t/0", "t/1"]
    assert caplog.text.count("there is no topic away that may be read; waits for it") == 2
    found["away"] = 1
    made.time[0] = 20.0
    assert made.partitions() == ["away/0", "t/0", "t/1"]
    assert caplog.text.count("WARNING") == 2


@pytest.mark.parametrize(
    ("topics", "end", "what"),
    [
        (["t", "away"], "latest", "away"),
        (re.compile("away.*"), "latest", "topic that matches"),
        ("t", {("t", 1): 5, ("t", 2): 5}, r"t\[2\]"),
    ],
    ids=["topic", "pattern", "partition"],
)
def test_what_is_to_be_read_to_its_end_has_to_be_there(topics, end, what):
    made = sees(topics, {"t": 2}, end=end)
    with pytest.raises(FailedException):
        made.partitions()
    with pytest.raises(UserError, match=f"there is no {what}, so that it cannot be read to its end"):
        made.submitted[0]()
    assert look(made, 0) == (False, False), "its coordinator only waits for the end"


def test_a_topic_that_goes_after_it_was_seen_does_not_end_the_topology(caplog):
    """A broker that has just begun may not know all topics yet."""
    found = {"t": 1, "u": 1}
    made = sees(["t", "u"], found, end="latest")
    assert made.partitions() == ["t/0", "u/0"]
    del found["t"], found["u"]
    for made.time[0] in (10.0, 20.0):
        assert made.partitions() == []
    assert (made.submitted, caplog.text.count("there is no topic u that may be read")) == ([], 2)


def test_given_offsets_end_it_exclusively():
    made = spout(Log(), end={("t", 0): 2})
    assert emitted(made.emit_new, Attempt(1, 0), "t/0", None) == ([1], [0, 2])
    assert emitted(made.emit_new, Attempt(2, 0), "t/0", [0, 2]) == ([], [2, 2])
    assert emitted(made.emit_new, Attempt(2, 0), "t/1", None) == ([], [0, 0])


def test_a_silent_partition_fails_a_transactional_batch_that_comes_again_and_leaves_an_opaque_one_without_it():
    with pytest.raises(FailedException, match=r"transaction 3: 0 to 3 of t\[0\] cannot be read now; the batch comes"):
        emitted(spout(Log(silent=True)).emit_again, Attempt(3, 1), "t/0", [0, 3])
    made = spout(Log(silent=True), opaque=True)
    assert emitted(made.emit_new, Attempt(3, 1), "t/0", [0, 3]) == ([], [3, 3])


@pytest.mark.parametrize("again", [False, True], ids=["new", "again"])
def test_deleted_records_end_the_task_unless_the_author_goes_on_without_them(again, caplog):
    def run(made):
        return emitted(made.emit_again if again else made.emit_new, Attempt(2, 0), "t/0", [1, 5] if again else [0, 1])

    made = spout(Log(3, 10))
    with pytest.raises(FailedException):
        run(made)
    with pytest.raises(UserError, match=r"offset 1 of t\[0\] is wanted, but there are only 3 to 10: records were del"):
        made.submitted[0]()
    assert run(spout(Log(3, 10), deleted="earliest")) == (([3, 4], None) if again else ([3, 4], [3, 6]))
    assert "goes on at 3" in caplog.text
    assert run(spout(Log(3, 10), deleted="latest")) == (([], None) if again else ([], [10, 10]))


@pytest.mark.parametrize("end", [None, "latest", {("t", 0): 8}], ids=["endless", "latest", "given"])
def test_a_partition_that_ends_before_its_position_is_not_taken_for_read(end, caplog):
    """A new topic of the same name: it would be silent until it is as long as the former."""
    made = spout(Log(end=10), end=end)
    assert look(made, 10) == (False, end is not None)
    assert look(spout(Log(end=10), end=end), 100) == (True, False)
    if end == {("t", 0): 8}:  # else the client is told so when it asks for the offset
        with pytest.raises(FailedException, match=r"offset 100 of t\[0\] is wanted, but there are only 0 to 10"):
            emitted(made.emit_new, Attempt(7, 0), "t/0", [90, 100])
        again = spout(Log(end=10), end=end, deleted="earliest")
        assert emitted(again.emit_new, Attempt(7, 0), "t/0", [90, 100]) == ([1, 2], [0, 3])
        assert "goes on at 0" in caplog.text
        assert emitted(spout(Log(), end=end, deleted="latest").emit_new, Attempt(7, 0), "t/0", [9, 99])[1] == [10, 10]


@pytest.mark.parametrize("begin", [90, 5], ids=["behind", "across"])
def test_nothing_is_left_of_a_batch_that_comes_again_when_its_topic_was_made_anew_and_is_shorter(begin, caplog):
    """What stands at its offsets now are other records; they are in the batches that follow."""
    made = spout(Log(end=10))
    with pytest.raises(FailedException):
        emitted(made.emit_again, Attempt(7, 1), "t/0", [begin, 100])
    with pytest.raises(UserError, match=r"of t\[0\] is wanted, but there are only 0 to 10: records were deleted"):
        made.submitted[0]()
    for deleted, goes_on in (("earliest", 0), ("latest", 10)):
        made = spout(Log(end=10), deleted=deleted)
        assert emitted(made.emit_again, Attempt(7, 1), "t/0", [begin, 100]) == ([], None)
        assert f"goes on at {goes_on}" in caplog.text
        assert emitted(made.emit_new, Attempt(8, 0), "t/0", [begin, 100])[1][0] == goes_on


def no_fours(message):
    """What stands for a malformed record is the number 4."""
    if message.value() == 4:
        raise ValueError("broken")
    return [message.value()]


def rows_of(act, *args):
    rows = []
    act(*args, SimpleNamespace(emit=rows.append))
    return [tuple(row) for row in rows]


BROKEN = ["t", 0, 4, None, 4, "ValueError: broken"]


@pytest.mark.parametrize("opaque", [False, True])
@pytest.mark.parametrize(
    ("undecodable", "rows"), [("skip", [(3,), (5,)]), ("emit", [(3, None), (None, BROKEN), (5, None)])]
)
def test_a_malformed_record_is_left_out_or_put_aside_alone_in_each_attempt(opaque, undecodable, rows, caplog):
    made = spout(Log(), opaque=opaque, translate=no_fours, undecodable=undecodable)
    assert rows_of(made.emit_new, Attempt(2, 0), "t/0", [0, 3]) == rows
    if opaque:
        assert rows_of(made.emit_new, Attempt(2, 1), "t/0", [0, 3]) == rows
    else:
        assert rows_of(made.emit_again, Attempt(2, 1), "t/0", [3, 6]) == rows
    assert "the record at offset 4 of t[0] cannot be emitted: ValueError: broken; reading goes on" in caplog.text
    assert (made.submitted, made.outputs) == ([], ["n", "undecodable"] if undecodable == "emit" else ["n"])


def refuses(message):
    raise UserError("no such schema")


@pytest.mark.parametrize(
    ("translate", "says"),
    [
        (no_fours, r"offset 4 of t\[0\] cannot be emitted: ValueError: broken"),
        (refuses, r"offset 3 of t\[0\] cannot be emitted: no such schema"),
        (lambda message: [1, 2], r"offset 3 of t\[0\]: translate gave 2 values where 1 are declared"),
    ],
)
def test_a_record_that_cannot_be_translated_ends_the_topology_which_says_which(translate, says):
    made = spout(Log(), translate=translate)
    with pytest.raises(FailedException, match=says):
        rows_of(made.emit_new, Attempt(2, 0), "t/0", [0, 3])
    with pytest.raises(UserError, match=says):
        made.submitted[0]()


def test_a_record_that_is_too_large_is_undecodable():
    made = spout(Log(), translate=no_fours, undecodable="emit")
    made._fetcher = SimpleNamespace(again=lambda *_: [Message(1, 1), Message(2, 2, size=101)])
    too_large = ["t", 0, 2, None, None, "ValueError: 101 bytes are more than topology.max.tuple.bytes, 100"]
    assert rows_of(made.emit_again, Attempt(2, 1), "t/0", [1, 3]) == [(1, None), (None, too_large)]
    made._fetcher = SimpleNamespace(again=lambda *_: [Message(1, 1), Message(2, 2, size=52, key=b"k" * 49)])
    assert rows_of(made.emit_again, Attempt(2, 1), "t/0", [1, 3]) == [(1, None), (None, too_large)], "by its key, too"


def test_whatever_a_translation_raises_the_words_can_be_sent():
    def half(message):
        raise ValueError("unknown customer \ud800")

    made = spout(Log(0, 1), translate=half, undecodable="emit")
    [(_, aside)] = rows_of(made.emit_new, Attempt(1, 0), "t/0", None)
    assert aside[-1] == "ValueError: unknown customer \\ud800"


def test_a_translation_may_fail_its_batch_by_itself():
    def later(message):
        raise FailedException("the registry is away")

    made = spout(Log(), translate=later, undecodable="skip")
    with pytest.raises(FailedException, match="the registry is away"):
        rows_of(made.emit_new, Attempt(2, 0), "t/0", [0, 3])
    assert made.submitted == []

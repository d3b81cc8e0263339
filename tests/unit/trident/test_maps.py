"""The three maps: Storm's tables (StateTest), the published examples, and exactness whatever is repeated."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import StateError, UserError
from ardea.trident import (
    CachedMap,
    LRUMemoryMapState,
    MemoryMap,
    MemoryMapState,
    NonTransactionalMap,
    OpaqueMap,
    OpaqueValue,
    Snapshottable,
    SnapshottableMap,
    TransactionalMap,
    TransactionalValue,
)

A, B = ("a",), ("b",)


def add(count):
    return lambda stored: count if stored is None else stored + count


def get(state, key=A):
    return state.multi_get([key])[0]


def plus(state, count, key=A):
    return state.multi_update([key], [add(count)])[0]


def test_opaque_value():
    value = OpaqueValue(8, "v1", "v0")
    assert [value.get(txid) for txid in (None, 100, 9, 8)] == ["v1", "v1", "v1", "v0"]
    with pytest.raises(StateError, match=r"Current batch \(7\) is behind state's batch: 8"):
        value.get(7)
    assert value.update(8, "v2") == OpaqueValue(8, "v2", "v0")
    assert value.update(9, "v2") == OpaqueValue(9, "v2", "v1")
    assert value == OpaqueValue(8, "v1", "v0")


def test_opaque_map():
    state = OpaqueMap(MemoryMap())
    state.begin_commit(1)
    assert [get(state), plus(state, 1), get(state), plus(state, 2), get(state)] == [None, 1, 1, 3, 3]
    state.commit(1)
    state.begin_commit(1)
    assert [get(state), plus(state, 2)] == [None, 2]
    state.commit(1)
    state.begin_commit(2)
    assert [get(state), plus(state, 3), plus(state, 1)] == [2, 5, 6]


def test_transactional_map():
    state = TransactionalMap(MemoryMap())
    state.begin_commit(1)
    assert [get(state), plus(state, 1), plus(state, 2)] == [None, 1, 3]
    state.commit(1)
    state.begin_commit(1)
    assert [get(state), plus(state, 1), plus(state, 2)] == [3, 3, 3]
    state.commit(1)
    state.begin_commit(2)
    assert [get(state), plus(state, 3), plus(state, 1)] == [3, 6, 7]


def test_a_removal_is_repeated_from_what_was_there():
    state = OpaqueMap(MemoryMap())
    state.begin_commit(1)
    state.multi_put([A, B], [1, 2])
    state.commit(1)
    for _ in range(2):
        state.begin_commit(2)
        assert state.multi_get([A, B]) == [1, 2]
        state.multi_remove([A])
        assert state.multi_get([A, B]) == [None, 2]
        state.commit(2)
    state.begin_commit(3)
    assert state.multi_get([A, B]) == [None, 2]


def test_the_published_transactional_example():
    """Batch 3 is [man], [man], [dog]; it had reached the dog before."""
    backing = MemoryMap()
    man, dog, apple = ("man",), ("dog",), ("apple",)
    values = [TransactionalValue(1, 3), TransactionalValue(3, 4), TransactionalValue(2, 10)]
    backing.multi_put([man, dog, apple], values)
    state = TransactionalMap(backing)
    state.begin_commit(3)
    state.multi_update([man, dog], [add(2), add(1)])
    state.commit(3)
    assert backing.multi_get([man, dog, apple]) == [(3, 5), (3, 4), (2, 10)]


@pytest.mark.parametrize(("txid", "stored"), [(3, (3, 6, 4)), (2, (2, 3, 1))])
def test_the_published_opaque_example(txid, stored):
    """Stored: value 4, previous 1, transaction 2; the batch counts 2."""
    backing = MemoryMap()
    backing.multi_put([A], [OpaqueValue(2, 4, 1)])
    state = OpaqueMap(backing)
    state.begin_commit(txid)
    plus(state, 2)
    state.commit(txid)
    assert backing.multi_get([A]) == [stored]


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_a_batch_that_comes_too_late_fails(kind):
    """A process that was frozen and replaced wakes up."""
    backing = MemoryMap()
    present, late = kind(backing), kind(backing)
    late.begin_commit(5)
    present.begin_commit(6)
    plus(present, 1)
    present.commit(6)
    with pytest.raises(StateError, match="behind"):
        plus(late, 1)
    assert get(present) == 1


def test_updates_belong_to_a_transaction():
    with pytest.raises(UserError, match="outside of a transaction"):
        plus(TransactionalMap(MemoryMap()), 1)


def test_without_transactions_each_update_counts():
    state = NonTransactionalMap(MemoryMap())
    for _ in range(2):
        state.begin_commit(1)
        plus(state, 2)
        state.commit(1)
    assert get(state) == 4


def test_a_snapshot_is_one_key():
    state = SnapshottableMap(OpaqueMap(MemoryMap()))
    for _ in range(2):
        state.begin_commit(1)
        assert (state.get(), state.update(add(2)), state.get()) == (None, 2, 2)
        state.commit(1)


@pytest.mark.parametrize(
    ("kind", "again"), [(NonTransactionalMap, (8, 7)), (TransactionalMap, (8, 8)), (OpaqueMap, (None, 7))]
)
def test_a_snapshot_can_be_set(kind, again):
    """Within a transaction, which comes again as it does for any key: ``again``, before and behind another value."""
    state = SnapshottableMap(kind(MemoryMap()))
    state.begin_commit(1)
    state.set(5)
    assert (state.get(), state.update(add(1))) == (5, 6)
    state.set(8)
    assert state.get() == 8
    state.commit(1)
    state.begin_commit(1)
    before = state.get()
    state.set(7)
    assert (before, state.get()) == again
    state.commit(1)
    state.begin_commit(2)
    assert state.get() == again[1]
    state.set(None)
    assert state.get() is None


class Single(Snapshottable):
    """The author's own, with the two methods that it must have."""

    value = 3

    def get(self):
        return self.value

    def update(self, update):
        self.value = update(self.value)
        return self.value


def test_whatever_can_be_updated_can_be_set():
    state = Single()
    state.set(9)
    assert state.get() == 9


class Durable(MemoryMap):
    """Knows what a transaction wrote, as a database does."""

    def keys_of(self, txid):
        return [key for key, value in self.values.items() if value.txid == txid]


class CrashError(Exception):
    pass


class Crashing(Durable):
    """The next write dies before it, or behind it."""

    when = None

    def multi_put(self, keys, values):
        when, self.when = self.when, None
        if when == "before":
            raise CrashError
        super().multi_put(keys, values)
        if when == "behind":
            raise CrashError


def test_a_cache_forgets_what_a_write_that_failed_may_have_changed():
    """The write had its effect, and the attempt that comes again does not have the key: it is set back."""
    backing = Crashing()
    state = OpaqueMap(CachedMap(backing, 2))
    for txid, key in [(1, A), (2, A), (2, B), (3, ("c",)), (4, ("d",))]:
        backing.when = "behind" if (txid, key) == (2, A) else None
        state.begin_commit(txid)
        with suppress(CrashError):
            plus(state, 1, key)
            state.commit(txid)
    assert state.multi_get([A, B, ("c",), ("d",)]) == [1, 1, 1, 1]


words = st.lists(st.sampled_from("abcd"), max_size=5)
crashes = st.sampled_from([None, "before", "behind", "replayed"])
attempts = st.lists(st.tuples(words, crashes, st.booleans()), max_size=3)
histories = st.lists(st.tuples(attempts, words), min_size=1, max_size=6)


@given(history=histories, opaque=st.booleans(), cached=st.booleans())
def test_each_transaction_counts_once(history, opaque, cached):
    """Attempts that fail before or behind a write, or are complete and yet repeated, in this life or in a new one.

    Opaque: each attempt has tuples of its own, and only those of the last count.
    """
    backing, truth = Crashing(), Counter()
    kind = OpaqueMap if opaque else TransactionalMap

    def new_life():
        return kind(CachedMap(backing, 2) if cached else backing)

    state = new_life()
    for txid, (tries, final) in enumerate(history, 1):
        for batch, crash, dies in [*tries, (final, None, False)]:
            counts = Counter(batch if opaque else final)
            backing.when = crash if crash in ("before", "behind") and counts else None
            with suppress(CrashError):  # a server that did not answer in time: the task lives on
                state.begin_commit(txid)
                if counts:
                    state.multi_update([(word,) for word in counts], [add(count) for count in counts.values()])
                state.commit(txid)
            backing.when = None
            if dies:
                state = new_life()
        truth.update(final)
    state.begin_commit(len(history) + 1)
    assert [get(state, (word,)) or 0 for word in "abcd"] == [truth[word] for word in "abcd"]


@pytest.mark.parametrize(("made", "room"), [(MemoryMapState, ()), (LRUMemoryMapState, (10,))])
@pytest.mark.parametrize(("kind", "counted"), [("opaque", 7), ("transactional", 3), ("non_transactional", 8)])
def test_memory_in_all_three_kinds(made, room, kind, counted):
    """2, then 1 in an attempt that was not the last and 5 in the one that was; another life says that it lost them."""
    factory = getattr(made, kind)(*room)
    assert factory.kind == kind.replace("_", "-")
    state = factory.make_state({}, 0, 1)
    for txid, number in ((1, 2), (2, 1), (2, 5)):
        state.begin_commit(txid)
        state.multi_update([("a",)], [lambda stored, number=number: (stored or 0) + number])
        if number != 1:
            state.commit(txid)
    assert factory.values() == {("a",): counted}
    with pytest.raises(StateError, match="partition 0 begins empty at transaction 3"):
        factory.make_state({}, 0, 1).begin_commit(3)


def appending(row):
    def update(stored):
        rows = [] if stored is None else stored
        rows.append(row)
        return rows

    return update


def extended(rows, more):
    rows.extend(more)
    return rows


def crash(_):
    raise CrashError


@pytest.mark.parametrize("backing", [MemoryMap, lambda: CachedMap(MemoryMap(), 2)], ids=["plain", "cached"])
@pytest.mark.parametrize(
    "change",
    [
        lambda state, row: state.multi_update([A], [appending(row)]),
        lambda state, row: state.multi_combine([A], [[row]], extended),
    ],
    ids=["update", "combine"],
)
@pytest.mark.parametrize(
    ("kind", "kept"), [(NonTransactionalMap, [1, 2, 2]), (TransactionalMap, [1, 2]), (OpaqueMap, [1, 2])]
)
def test_a_value_may_be_changed_in_place(kind, kept, change, backing):
    """A transaction that comes again finds the value before it, and one that raises has changed nothing."""
    state = kind(backing())
    for txid in (1, 2, 2):
        state.begin_commit(txid)
        change(state, txid)
        state.commit(txid)
    state.begin_commit(3)
    with pytest.raises(CrashError):
        state.multi_update([A, B], [appending(3), crash])
    assert state.multi_get([A, B]) == [kept, None]


class NeverCopied:
    def __deepcopy__(self, memo):
        raise AssertionError


@pytest.mark.parametrize("kind", [NonTransactionalMap, TransactionalMap, OpaqueMap])
def test_a_value_that_is_replaced_is_not_copied(kind):
    """As the rows of windows, of which a batch may have thousands."""
    state = kind(MemoryMap())
    for txid in (1, 2):
        state.begin_commit(txid)
        state.multi_put([A], [NeverCopied()])
        state.commit(txid)
    state.begin_commit(3)
    with pytest.raises(UserError, match="a stored value of type NeverCopied cannot be copied"):
        state.multi_update([A], [str])

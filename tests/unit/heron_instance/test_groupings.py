"""The ten groupings: Storm's tables, and what holds for any rows."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea import CustomStreamGrouping
from ardea.errors import EncodingError, TopologyError
from ardea.heron_instance.routing import Emitter, make_router
from ardea.plan.logical import GroupingPlan, StreamPlan
from ardea.protocol.keys import key_hash
from ardea.snapshots.key_groups import Keys


class First(CustomStreamGrouping):
    """Storm's NGrouping: the first ``n`` tasks."""

    def __init__(self, n):
        self.n = n

    def prepare(self, context, component, stream, target_tasks):
        self.prepared = (context, component, stream)
        self.tasks = target_tasks[: self.n]

    def choose_tasks(self, values):
        return self.tasks


class Says(First):
    """Whatever the row says."""

    def choose_tasks(self, values):
        return values[0]


def router(kind, targets=(1, 2, 3, 4), *, key=(), fields=("word", "n"), local=(), custom=None, seed=0, groups=None):
    grouping = GroupingPlan(kind, key, custom)
    rng = np.random.default_rng(seed)
    stream = StreamPlan("default", fields)
    return make_router(grouping, stream, targets, Emitter("words", frozenset(local), rng, "context", groups))


def pairs(routed, count):
    """(row, place) of every delivery."""
    rows = range(count) if routed.rows is None else routed.rows.tolist()
    return list(zip(rows, routed.targets.tolist(), strict=True))


def spread(made, count, batch=500):
    """How many of ``count`` rows each task gets, in batches."""
    total = np.zeros(len(made.targets), dtype=np.int64)
    for start in range(0, count, batch):
        total += np.bincount(made.route([("w", 1)] * min(batch, count - start)).targets, minlength=len(total))
    return total.tolist()


words = st.one_of(
    st.text(max_size=2), st.integers(0, 5), st.binary(max_size=1), st.lists(st.integers(0, 1), max_size=2)
)
batches = st.lists(st.lists(st.tuples(words, st.integers(0, 3)), max_size=9), max_size=6)
teams = st.sets(st.integers(1, 99), min_size=1, max_size=9).map(lambda tasks: tuple(sorted(tasks)))


@given(
    st.sampled_from(
        [
            *[("shuffle", ()), ("all", ()), ("global", ()), ("none", ()), ("direct", ()), ("local_or_shuffle", ())],
            *[("fields", ("word",)), ("fields", ("n", "word")), ("partial_key", ("word",)), ("partial_key", ())],
            *[("custom", ()), ("load_aware", ())],
        ]
    ),
    teams,
    st.sets(st.integers(1, 99)),
    batches,
)
def test_every_row_goes_to_valid_targets(kind, targets, local, parts):
    """One target a row, all for ``all``, none for ``direct``, two for the custom one; ``fixed`` tells the truth."""
    name, key = kind
    made = router(name, targets, key=key, local=local, custom=First(2) if name == "custom" else None)
    copies = {"all": len(targets), "direct": 0, "custom": min(2, len(targets))}.get(name, 1)
    for rows in parts:
        sent = pairs(made.route(rows), len(rows))
        assert [row for row, _ in sent] == [row for row in range(len(rows)) for _ in range(copies)]
        assert {place for _, place in sent} <= ({made.fixed} if made.fixed is not None else set(range(len(targets))))
        assert len(set(sent)) == len(sent)
    chosen = made.route_one(("w", 1))
    assert len(chosen) == copies
    assert set(chosen) <= set(targets)


@pytest.mark.parametrize(
    "kind", ["shuffle", "fields", "partial_key", "all", "global", "custom", "load_aware", "local_or_shuffle"]
)
def test_without_target_tasks_rows_go_nowhere(kind):
    made = router(kind, (), key=("word",) if kind in {"fields", "partial_key"} else (), custom=First(1))
    assert pairs(made.route([("a", 1), ("b", 2)]), 2) == []
    assert made.route_one(("a", 1)) == ()


# Shuffle, local or shuffle, none, global, all


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_shuffle_is_exactly_even(batch):
    """Storm's ShuffleGroupingTest: 30000 picks over 6 tasks."""
    assert (
        spread(router("shuffle", tuple(range(1, 7))), 6 * (5000 if batch > 1 else 500), batch)
        == [5000 if batch > 1 else 500] * 6
    )


@given(st.sampled_from(["shuffle", "none"]), teams, st.lists(st.integers(0, 20), max_size=20), st.integers(0, 9))
def test_shuffle_is_even_within_one_whatever_the_batches(kind, targets, sizes, seed):
    made = router(kind, targets, seed=seed)
    total = np.zeros(len(targets), dtype=np.int64)
    for size in sizes:
        total += np.bincount(made.route([("w", 1)] * size).targets, minlength=len(targets))
        assert total.max() - total.min() <= 1


def test_shuffles_do_not_all_begin_with_the_same_task():
    assert {router("shuffle", seed=seed).route_one(("w", 1)) for seed in range(40)} == {(1,), (2,), (3,), (4,)}


def test_local_or_shuffle_stays_in_the_container_if_it_can():
    assert spread(router("local_or_shuffle", local=(2, 4, 77)), 1000) == [0, 500, 0, 500]
    assert spread(router("local_or_shuffle", local=(77,)), 1000) == [250] * 4
    assert router("local_or_shuffle", local=(3,)).fixed == 2


def test_global_is_the_lowest_task_and_all_is_every_task():
    assert (router("global").fixed, router("global").route_one(("w", 1))) == (0, (1,))
    assert router("all").route_one(("w", 1)) == (1, 2, 3, 4)
    assert router("all", (9,)).fixed == 0


# Fields


@given(batches, teams, st.data())
def test_fields_depends_on_the_key_alone(parts, targets, data):
    """Not on batches, emitters or what came before."""
    made = router("fields", targets, key=("word",))
    together = [row for rows in parts for row in rows]
    cut = [place for rows in parts for _, place in pairs(made.route(rows), len(rows))]
    shuffled = data.draw(st.permutations(together))
    other = {
        repr(row): place
        for row, (_, place) in zip(
            shuffled, pairs(router("fields", targets, key=("word",)).route(shuffled), len(together)), strict=True
        )
    }
    assert cut == [other[repr(row)] for row in together]
    if len(targets) > 1:
        assert cut == [key_hash([row[0]]) % len(targets) for row in together]


def test_fields_takes_the_named_fields_in_their_order():
    """("a", 1) by (n, word) is the key (1, "a")."""
    made = router("fields", tuple(range(1, 100)), key=("n", "word"))
    assert made.route([("a", 1)]).targets.tolist() == [key_hash([1, "a"]) % 99]


def test_equal_bytes_meet():
    """Storm's GroupingIntegrationTest: four emitters, six counters, 24 times each of two keys."""
    counts = Counter()
    for _ in range(4):
        made = router("fields", tuple(range(1, 7)), key=("word",))
        for kind in (bytes, bytearray, memoryview):
            rows = [(kind(bytes([letter])), 1) for letter in b"abab"]
            counts.update(
                (bytes(word), place) for (word, _), place in zip(rows, made.route(rows).targets.tolist(), strict=True)
            )
    assert len(counts) == 2
    assert set(counts.values()) == {24}


@pytest.mark.parametrize("kind", ["fields", "partial_key"])
def test_a_value_that_is_no_key_is_named(kind):
    made = router(kind, key=("n", "word"))
    with pytest.raises(EncodingError, match="component words, stream default, field word: a value of type dict"):
        made.route([("a", 1), ({}, 2)])
    assert len(made.route([("a", 1)]).targets) == 1


# Partial key


def test_partial_key_alternates_between_two_tasks():
    """Storm's PartialKeyGroupingTest."""
    made = router("partial_key", tuple(range(1, 7)), key=("word",))
    first, second, third = (made.route_one(("key", n)) for n in range(3))
    assert first != second
    assert third == first


@given(words, st.integers(2, 9))
def test_the_candidates_of_a_key_are_two_and_always_the_same(word, n):
    """In every emitter, and whatever other keys it sends."""
    targets = tuple(range(1, n + 1))
    fresh, busy = (router("partial_key", targets, key=("word",)) for _ in range(2))
    candidates = set(fresh.route([(word, 0)] * 4).targets.tolist())
    assert len(candidates) == 2
    busy.route([(f"other{i}", 0) for i in range(50)])
    assert set(busy.route([(word, 0)] * 200).targets.tolist()) == candidates


def test_every_pair_of_tasks_is_somebodys():
    made = [router("partial_key", tuple(range(1, 5)), key=("word",)) for _ in range(300)]
    seen = {tuple(r.route([(f"w{i}", 0)] * 2).targets.tolist()) for i, r in enumerate(made)}
    assert len(seen) == 4 * 3


def test_the_least_used_candidate_wins():
    """Storm's BalancedTargetSelectorTest: counts are per emitter over all keys."""
    made = router("partial_key", (1, 2), key=("word",))
    sent = [0, 0]
    for i in range(200):
        [task] = made.route_one((f"w{i * i % 17}", 0))
        assert sent[task - 1] == min(sent)
        sent[task - 1] += 1


def test_partial_key_without_names_takes_the_first_value():
    """And with nothing to go by, nothing goes."""
    unnamed, named = router("partial_key"), router("partial_key", key=("word",))
    rows = [(f"w{i % 9}", i) for i in range(100)]
    assert unnamed.route(rows).targets.tolist() == named.route(rows).targets.tolist()
    assert router("partial_key", fields=()).route_one(()) == ()


def test_partial_key_evens_out_what_fields_cannot():
    """One key with 40 % of a million tuples, 4 tasks; what the tasks have counted of a key adds up."""
    rng = np.random.default_rng(7)
    numbers = np.where(rng.random(1_000_000) < 0.4, 0, rng.integers(1, 10_000, 1_000_000))
    rows = [(f"w{number}", 1) for number in numbers.tolist()]
    loads, tasks_of = {}, {}
    for kind in ("fields", "partial_key"):
        made = router(kind, key=("word",))
        places = np.concatenate([made.route(rows[i : i + 1000]).targets for i in range(0, len(rows), 1000)])
        loads[kind] = np.bincount(places, minlength=4)
        counted = [Counter(numbers[places == place].tolist()) for place in range(4)]
        assert sum(counted, Counter()) == Counter(numbers.tolist()), "the totals of a bolt that merges"
        tasks_of[kind] = np.array([sum(number in task for task in counted) for number in range(10_000)])
    assert loads["fields"].max() >= 0.4 * len(rows)
    assert loads["partial_key"].max() <= 1.1 * len(rows) / 4
    assert tasks_of["fields"].max() == 1
    assert tasks_of["partial_key"].max() == 2


# Custom


@pytest.mark.parametrize("n", [2, 3])
def test_custom_sends_where_it_says(n):
    """Storm's NGrouping, with the context and origin it is prepared with; the author's object stays as it was."""
    grouping = First(n)
    made = router("custom", custom=grouping)
    assert made.route_one(("a", 1)) == (1, 2, 3, 4)[:n]
    assert not hasattr(grouping, "tasks")
    assert made._chooser.prepared == ("context", "words", "default")


def test_custom_may_choose_none_or_several():
    made = router("custom", custom=Says(0))
    routed = made.route([([], 1), ([4, 2], 1), ([], 1), ((3,), 1), ([np.int64(1)], 1)])
    assert pairs(routed, 5) == [(1, 3), (1, 1), (3, 2), (4, 0)]


@pytest.mark.parametrize("tasks", [[1, 9], [[1]], 1, None])
def test_custom_choices_are_checked(tasks):
    made = router("custom", custom=Says(0))
    with pytest.raises(
        TopologyError, match=r"component words, stream default: the grouping Says chose .*targets \(1, 2, 3, 4\)"
    ):
        made.route([([1], 1), (tasks, 1)])


# Load-aware


def test_load_aware_takes_from_the_loaded_task():
    """Storm's LoadAwareShuffleGroupingTest: after k refreshes the share is (100 - 10k) / (200 - 10k), within 1 %."""
    made = router("load_aware", (1, 2))
    assert spread(made, 10_000)[0] == 5000
    for k in range(1, 11):
        made.refresh({1: 1.0, 2: 0.0})
        assert spread(made, 10_000)[0] / 10_000 == pytest.approx((100 - 10 * k) / (200 - 10 * k), abs=0.01)
    for k in range(1, 11):
        made.refresh({1: 0.0, 2: 1.0})
        assert spread(made, 10_000)[0] / 10_000 == pytest.approx(k / (k + 100 - 10 * k), abs=0.01)


@pytest.mark.parametrize("n", [7, 1000])
def test_load_aware_is_even_under_even_load(n):
    """Within 1.5 %."""
    made = router("load_aware", tuple(range(1, n + 1)))
    made.refresh(dict.fromkeys(made.targets, 0.5))
    counts = spread(made, 10 * max(1000, 5 * n), 1000)
    assert max(counts) <= 1.015 * np.mean(counts)
    assert min(counts) >= 0.985 * np.mean(counts)


def test_loads_within_five_percent_of_the_least_do_not_count():
    made = router("load_aware", (1, 2, 3))
    made.refresh({1: 0.50, 2: 0.55, 3: 0.56})
    assert spread(made, 2900) == pytest.approx([1000, 1000, 900], abs=10)


def test_load_aware_leaves_its_container_when_it_is_busy_and_comes_back():
    """Storm's scope walk, of which a container and everything remain."""
    made = router("load_aware", (1, 2, 3), local=(1,))
    assert spread(made, 300) == [300, 0, 0]
    made.refresh({1: 0.8, 2: 0.0, 3: 0.0})
    assert spread(made, 300) == [300, 0, 0]
    made.refresh({1: 1.0, 2: 1.0, 3: 1.0})
    assert spread(made, 3000) == pytest.approx([1000] * 3, abs=3)
    made.refresh({1: 0.2, 2: 0.1, 3: 0.1})
    assert min(spread(made, 3000)) > 800
    made.refresh({1: 0.1, 2: 0.1, 3: 0.1})
    assert spread(made, 300) == [300, 0, 0]
    made.refresh({1: 1.0})
    assert spread(made, 2900) == pytest.approx([900, 1000, 1000], abs=10), "the weights began anew"


@given(teams, st.sets(st.integers(1, 99)), st.lists(st.dictionaries(st.integers(1, 99), st.floats(0, 1)), max_size=15))
def test_load_aware_never_starves_the_least_loaded(targets, local, history):
    """Within its scope; and its ring keeps its size."""
    made = router("load_aware", targets, local=local)
    for loads in history:
        if made.fixed is not None:
            break
        made.refresh(loads)
        size = max(1000, 5 * len(targets))
        counts = spread(made, size, size)
        scope = [place for place, count in enumerate(counts) if count]
        near = [place for place, task in enumerate(targets) if task in local]
        candidates = near if set(scope) <= set(near) else range(len(targets))
        least = min(loads.get(targets[place], 0.0) for place in candidates)
        assert all(counts[p] for p in candidates if loads.get(targets[p], 0.0) == least)
        assert sum(counts) == size


def test_custom_may_choose_by_a_generator():
    class Generates(CustomStreamGrouping):
        def prepare(self, context, component, stream, target_tasks):
            self.tasks = target_tasks

        def choose_tasks(self, values):
            return (task for task in self.tasks if task % 2 == values[0] % 2)

    made = router("custom", custom=Generates())
    assert made.route_one((1,)) == (1, 3)
    assert made.route_one((2,)) == (2, 4)


@given(st.lists(st.text(), min_size=1, max_size=50), st.integers(1, 9))
def test_where_state_moves_by_groups_a_key_goes_to_the_task_that_owns_its_group(words, tasks):
    routed = router("fields", tuple(range(1, tasks + 1)), key=("word",), groups=12).route([(w, 1) for w in words])
    for word, place in zip(words, routed.targets.tolist(), strict=True):
        keys = Keys("count", place, tasks, 12, 1)
        assert keys.group(word) in keys.owned

"""The ledger against a naive model, under any interleaving, and its exact timeouts and memory."""

import math
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ardea.protocol.ids import GENERATIONS, SLOTS, make_roots
from ardea.stream_manager.ledger import Ledger
from tests.sizes import share

TASK = 7
TIMEOUT = 10.0
SHAPES = ((), (-1,), (-1, 0), (-1, -1), (-1, 0, 0), (-1, -1, 0, 1, 1), (-1, 0, 1, 2, 3, 4))
"""Trees: the parent of each edge's receiver, -1 for the spout itself."""


def column(numbers):
    return np.array(list(numbers), dtype=np.uint64)


class Tree:
    """One tree as the model knows it: an edge is one bit, so that no two sets of edges have one XOR by chance."""

    def __init__(self, root, use, shape):
        self.root, self.use = root, use
        self.init = sum(1 << edge for edge, parent in enumerate(shape) if parent == -1)
        self.acks = [
            1 << edge | sum(1 << child for child, parent in enumerate(shape) if parent == edge)
            for edge in range(len(shape))
        ]
        self.applied = [0] * len(shape)
        self.missing = Counter()
        self.deadline = 0.0

    def toggle(self, bits):
        """A multiset of edges: each is there an odd number of times, or it is gone."""
        for edge in range(bits.bit_length()):
            if bits >> edge & 1:
                self.missing[edge] = 1 - self.missing[edge]
        return sum(self.missing.values())


class LedgerMachine(RuleBasedStateMachine):
    """Columns of anything that a network of living and dead processes can deliver, in any order."""

    slots = (0, 1, 2, 3, 1500)

    @initialize(base=st.sampled_from([0, 1, 12345, GENERATIONS // 2 - 2, GENERATIONS - 2]))
    def start(self, base):
        self.ledger = Ledger(TASK, TIMEOUT)
        self.now = 0.0
        self.life = 0
        self.base = base
        self.uses = dict.fromkeys(self.slots, 0)
        self.last = {}  # slot -> tree of the newest init that was taken
        self.trees = []
        self.of_this_life = []
        self.verdicts = {}
        self.counts = Counter()

    # --- what the model says ---------------------------------------------------------------------------------

    def open_trees(self):
        return {slot: tree for slot, tree in self.last.items() if tree.root not in self.verdicts}

    def is_open(self, tree):
        return any(tree is other for other in self.open_trees().values())

    def judged(self, verdict, trees, returned):
        expected = [tree.root for tree in trees]
        assert sorted(returned.tolist()) == sorted(expected), verdict
        for root in expected:
            assert root not in self.verdicts, "two verdicts for one tree"
            self.verdicts[root] = verdict
        self.counts[verdict] += len(expected)

    # --- what happens ----------------------------------------------------------------------------------------

    def fresh(self, slot, shape):
        use = self.uses[slot]
        self.uses[slot] += 1
        generation = (self.base + self.life * 1_000_003 + use) % GENERATIONS
        root = int(make_roots(TASK, np.array([slot]), np.array([generation]))[0])
        tree = Tree(root, use, shape)
        self.trees.append(tree)
        self.of_this_life.append(tree)
        return tree

    @rule(data=st.data())
    def init(self, data):
        """New trees in free slots, now and then where the former is still open, mixed with inits sent twice."""
        new = data.draw(st.lists(st.tuples(st.sampled_from(self.slots), st.sampled_from(SHAPES)), max_size=4))
        over = data.draw(st.booleans())
        occupied = set() if over else set(self.open_trees())
        arriving = []
        for slot, shape in new:
            if slot not in occupied:
                occupied.add(slot)
                arriving.append(self.fresh(slot, shape))
        if self.of_this_life:
            arriving += data.draw(st.lists(st.sampled_from(self.of_this_life), max_size=3))
        arriving = data.draw(st.permutations(arriving))
        returned = self.ledger.init(column(t.root for t in arriving), column(t.init for t in arriving), self.now)
        complete, taken = [], set()
        for tree in arriving:
            slot = tree.root >> 28 & (SLOTS - 1)
            former = self.last.get(slot)
            if slot in taken or (former is not None and former.use >= tree.use):
                self.counts["late"] += slot in taken or (former is not None and former.use >= tree.use)
                taken.add(slot)
                continue
            taken.add(slot)
            if former is not None and former.root not in self.verdicts:
                self.verdicts[former.root] = "superseded"
                self.counts["lost"] += 1
            self.last[slot] = tree
            tree.deadline = self.now + TIMEOUT
            self.counts["opened"] += 1
            if not tree.toggle(tree.init):
                complete.append(tree)
        self.judged("acked", complete, returned)

    @rule(data=st.data())
    def prolong(self, data):
        """Of any trees ever: the time of those that are open begins anew."""
        if not self.trees:
            return
        picked = data.draw(st.lists(st.sampled_from(self.trees), max_size=4, unique_by=lambda tree: tree.root))
        self.ledger.prolong(np.sort(column(tree.root for tree in picked)), self.now)
        for tree in picked:
            if self.is_open(tree):
                tree.deadline = self.now + TIMEOUT
            else:
                self.counts["late"] += 1

    @rule(data=st.data())
    def ack(self, data):
        """Acks of any tree ever, in any order, some twice in one column, some folded before they are sent."""
        pool = [(tree, edge) for tree in self.trees for edge in range(len(tree.acks))]
        if not pool:
            return
        picks = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=12))
        folded = data.draw(st.booleans())
        entries = [(tree.root, tree.acks[edge]) for tree, edge in picks]
        if folded:
            together = {}
            for root, xor in entries:
                together[root] = together.get(root, 0) ^ xor
            entries = list(together.items())
        returned = self.ledger.ack(column(r for r, _ in entries), column(x for _, x in entries))
        complete = []
        for tree in {id(t): t for t, _ in picks}.values():
            if not self.is_open(tree):
                self.counts["late"] += 1
                continue
            xor = 0
            for other, edge in picks:
                if other is tree:
                    xor ^= tree.acks[edge]
                    tree.applied[edge] += 1
            if not tree.toggle(xor):
                complete.append(tree)
        for tree in complete:
            assert all(tree.applied), "acked although an edge never was"
        self.judged("acked", complete, returned)

    @rule(data=st.data(), verdict=st.sampled_from(["failed", "lost"]))
    def settle(self, data, verdict):
        """Fails and losses of any tree ever, some twice."""
        if not self.trees:
            return
        picks = data.draw(st.lists(st.sampled_from(self.trees), min_size=1, max_size=6))
        act = self.ledger.fail if verdict == "failed" else self.ledger.lose
        returned = act(column(t.root for t in picks))
        once = list({id(t): t for t in picks}.values())
        self.counts["late"] += sum(not self.is_open(t) for t in once)
        self.judged(verdict, [t for t in once if self.is_open(t)], returned)

    @rule(rarely=st.sampled_from([False, False, True]))
    def lose_all(self, rarely):
        if not rarely:
            return
        returned = self.ledger.lose_all()
        self.judged("lost", list(self.open_trees().values()), returned)

    @rule(seconds=st.integers(0, 11))
    def expire(self, seconds):
        """At the deadline, not before."""
        self.now += seconds
        returned = self.ledger.expire(self.now)
        due = [tree for tree in self.open_trees().values() if tree.deadline <= self.now]
        self.judged("timed_out", due, returned)
        left = [tree.deadline for tree in self.open_trees().values()]
        assert self.ledger.next_deadline <= min(left, default=math.inf)

    @rule(rarely=st.sampled_from([False, False, True]))
    def new_life_of_the_spout(self, rarely):
        """Its trees get no verdict; acks of them may still come."""
        if not rarely:
            return
        self.ledger.clear()
        for tree in self.open_trees().values():
            self.verdicts[tree.root] = "forgotten"
        self.life += 1
        self.last.clear()
        self.of_this_life = []
        self.uses = dict.fromkeys(self.slots, 0)

    @invariant()
    def counters_add_up(self):
        if not hasattr(self, "ledger"):
            return
        told = self.ledger.statistics()
        assert told.pending == len(self.open_trees())
        for name in ("opened", "acked", "failed", "lost", "timed_out", "late"):
            assert getattr(told, name) == self.counts[name], name


LedgerMachine.TestCase.settings = settings(max_examples=share(150), stateful_step_count=40)
TestLedger = LedgerMachine.TestCase


def roots_of(slots, generation=5):
    return make_roots(TASK, np.asarray(slots), np.full(len(slots), generation))


def test_a_second_init_after_the_verdict_gets_no_second_verdict():
    """An init that arrives twice is late the second time, whether the tree is open or judged."""
    ledger = Ledger(TASK, TIMEOUT)
    root, xor = roots_of([3]), column([9])
    ledger.init(root, xor, 0.0)
    assert ledger.ack(root, xor).tolist() == root.tolist()
    assert ledger.init(root, xor, 1.0).tolist() == []
    assert ledger.ack(root, xor).tolist() == []
    assert (ledger.statistics().late, ledger.statistics().pending) == (2, 0)


def test_an_init_twice_in_one_column_does_not_complete_its_tree():
    """Folded like acks, two equal inits would be zero: complete."""
    ledger = Ledger(TASK, TIMEOUT)
    root, xor = roots_of([3, 3]), column([9, 9])
    assert ledger.init(root, xor, 0.0).tolist() == []
    assert ledger.ack(root[:1], xor[:1]).tolist() == root[:1].tolist()


def test_a_newer_generation_takes_over_a_slot_that_is_still_open():
    """The spout settled the former by itself when its manager had a new life; a dropped init would hang for ever."""
    ledger = Ledger(TASK, TIMEOUT)
    ledger.init(roots_of([3], 5), column([1]), 0.0)
    ledger.init(roots_of([3], 6), column([2]), 1.0)
    assert ledger.ack(roots_of([3], 5), column([1])).tolist() == []
    assert ledger.expire(TIMEOUT).tolist() == []
    assert ledger.expire(1.0 + TIMEOUT).tolist() == roots_of([3], 6).tolist()
    assert (ledger.statistics().lost, ledger.statistics().timed_out) == (1, 1)


@pytest.mark.parametrize("calls", [[9.999, 10.0], [10.0], [0.0, 5.0, 9.0, 10.0], [9.0, 9.5, 10.0]])
def test_timeouts_are_exact_whatever_the_calls_before(calls):
    """A tree that was judged earlier leaves a deadline behind; it must delay or hasten no other."""
    ledger = Ledger(TASK, 10.0)
    ledger.init(roots_of([0]), column([1]), -5.0)
    ledger.init(roots_of([1]), column([1]), 0.0)
    ledger.ack(roots_of([0]), column([1]))
    assert [ledger.expire(now).tolist() for now in calls[:-1]] == [[]] * (len(calls) - 1)
    assert ledger.next_deadline <= 10.0
    assert ledger.expire(calls[-1]).tolist() == roots_of([1]).tolist()
    assert ledger.next_deadline == math.inf


def test_a_younger_tree_does_not_delay_an_older_one():
    ledger = Ledger(TASK, 10.0)
    ledger.init(roots_of([0]), column([1]), 0.0)
    ledger.init(roots_of([1]), column([1]), 5.0)
    assert ledger.next_deadline == 10.0
    assert ledger.expire(10.0).tolist() == roots_of([0]).tolist()
    assert ledger.next_deadline == 15.0
    assert ledger.expire(15.0).tolist() == roots_of([1]).tolist()


def test_a_tree_that_is_prolonged_has_its_whole_time_again_and_no_other_has():
    ledger = Ledger(TASK, 10.0)
    ledger.init(roots_of([0, 1]), column([1, 1]), 0.0)
    ledger.prolong(roots_of([0]), 9.0)
    assert ledger.expire(10.0).tolist() == roots_of([1]).tolist()
    assert ledger.expire(18.9).tolist() == []
    assert ledger.expire(19.0).tolist() == roots_of([0]).tolist()


def test_prolonged_under_a_shorter_timeout_a_tree_expires_by_that():
    ledger = Ledger(TASK, 100.0)
    ledger.init(roots_of([0]), column([1]), 0.0)
    ledger.timeout = 10.0
    ledger.prolong(roots_of([0]), 5.0)
    assert ledger.next_deadline == 15.0
    assert ledger.expire(15.0).tolist() == roots_of([0]).tolist()


def test_without_timeouts_nothing_ever_expires():
    ledger = Ledger(TASK, math.inf)
    ledger.init(roots_of([0]), column([1]), 0.0)
    assert ledger.expire(1e18).tolist() == []
    assert ledger.next_deadline == math.inf


def test_an_ack_for_a_tree_that_is_complete_stays_without_effect():
    """Zero means complete only while open."""
    ledger = Ledger(TASK, TIMEOUT)
    ledger.init(roots_of([0]), column([1]), 0.0)
    ledger.ack(roots_of([0]), column([1]))
    assert ledger.ack(roots_of([0]), column([0])).tolist() == []
    assert ledger.fail(roots_of([0])).tolist() == []


def traced(act):
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        act()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_twenty_bytes_a_tree_whatever_its_size():
    """The same for a tree of one edge and of a million."""
    count = 1 << 17
    ledger = Ledger(TASK, TIMEOUT)
    roots, ones = roots_of(np.arange(count)), np.ones(count, dtype=np.uint64)
    assert ledger.bytes_per_slot == 20
    assert traced(lambda: ledger.init(roots, ones, 0.0)) == pytest.approx(20 * count, rel=0.01)
    edges = np.arange(2, 1_000_002, dtype=np.uint64)
    before = int(np.bitwise_xor.reduce(edges)) ^ 1

    def million():
        for part in np.split(edges, 10):
            assert ledger.ack(np.full(len(part), roots[0]), part).tolist() == []
        assert ledger.ack(roots[:1], column([before])).tolist() == roots[:1].tolist()

    assert traced(million) < 20_000


def test_acks_for_slots_never_opened_are_not_stored():
    """Late is counted and dropped: it must not grow the table to all of its slots."""
    ledger = Ledger(TASK, TIMEOUT)
    ledger.init(roots_of([0]), column([1]), 0.0)

    def late():
        far = roots_of([0, SLOTS - 1])
        assert ledger.ack(far, column([2, 1])).tolist() == []
        assert ledger.fail(far[1:]).tolist() == ledger.lose(far[1:]).tolist() == []

    assert traced(late) < 20_000
    assert ledger.statistics().late == 3
    assert ledger.ack(roots_of([0]), column([3])).tolist() == roots_of([0]).tolist()

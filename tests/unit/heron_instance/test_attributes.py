"""Attributes of a component are as fast with state as without: nobody asks for its ``__dict__``.

Python keeps them in a place of its own until somebody does.
"""

from __future__ import annotations

import gc

import pytest

from ardea import Bolt, Grouping, KeyedState, ListState, Spout, TaskState, Timers, TopologyBuilder
from tests.unit.heron_instance.bench import Bench


class Numbers(Spout):
    outputs = ("number",)
    position = TaskState(default=0)
    open = ListState()

    def next_tuple(self):
        self.position += 1
        self.open.append(self.position)
        self.emit((self.position,), self.position)


class Sum(Bolt):
    sums = KeyedState(default=0)
    timers = Timers()

    def process(self, tup):
        self.sums[tup.values[0]] += 1

    def on_timer(self, name, key, at):
        pass


def built():
    builder = TopologyBuilder("fast")
    numbers = builder.add_spout("numbers", Numbers)
    builder.add_bolt("sum", Sum, inputs={numbers: Grouping.fields("number")})
    return builder.build()


def has_a_dictionary(component):
    return any(isinstance(each, dict) and "logger" in each for each in gc.get_referents(component))


@pytest.mark.parametrize(("name", "source"), [("numbers", None), ("sum", "numbers")])
def test_a_component_with_state_has_no_dictionary_of_its_attributes(name, source):
    bench = Bench(built(), name, source)
    if source:
        bench.arrives([(1,)])
    bench.turn()
    bench.executor.env.states.freeze()
    assert not has_a_dictionary(bench.component)
    vars(bench.component)
    assert has_a_dictionary(bench.component), "the look finds one where there is one"

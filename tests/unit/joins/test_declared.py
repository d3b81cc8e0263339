"""What an author may not declare, and where a topology may not have it: one message each, that says what to do."""

from __future__ import annotations

import math

import pytest

from ardea import Grouping, KeyedState, Spout, Stream, Timers, Timestamps, Topology
from ardea.errors import TopologyError, UserError
from ardea.joins import LATE, AsOfJoin, IntervalJoin, JoinBolt, TableJoin, WindowJoin
from ardea.keyed import states_of

SIDES = ("orders", "payments")


@pytest.mark.parametrize(("make", "message"), [
    (lambda: IntervalJoin(*SIDES, on="at"), "IntervalJoin: it has no bound"),
    (lambda: IntervalJoin(*SIDES, on="at", before=-1), r"IntervalJoin: before=-1"),
    (lambda: IntervalJoin(*SIDES, on="at", after="-5 min"), r"IntervalJoin: after='-5 min'"),
    (lambda: IntervalJoin(*SIDES, on="at", after=math.inf), r"IntervalJoin: after=inf"),
    (lambda: IntervalJoin(*SIDES, on="at", after=False), r"IntervalJoin: after=False"),
    (lambda: IntervalJoin(*SIDES, on="at", after=1e-9), r"IntervalJoin: after=1e-09"),
    (lambda: IntervalJoin(*SIDES, on="at", after=1, how="full"), r"IntervalJoin: how='full'"),
    (lambda: IntervalJoin(*SIDES, on="at", after=1, unit="m"), r"IntervalJoin: on='at', unit='m': .*unit takes"),
    (lambda: IntervalJoin(*SIDES, on=None, after=1), r"IntervalJoin: on=None"),
    (lambda: IntervalJoin(*SIDES, on=("at", "at", "at"), after=1), r"IntervalJoin: on=\('at', 'at', 'at'\)"),
    (lambda: IntervalJoin(*SIDES, on=("at", 7), after=1), r"IntervalJoin: on=\('at', 7\)"),
    (lambda: IntervalJoin("orders", "orders:default", on="at", after=1), r"left and right are both 'orders'"),
    (lambda: IntervalJoin("orders", None, on="at", after=1), r"IntervalJoin: right=None"),
    (lambda: WindowJoin(*SIDES, on="at", size=0), r"WindowJoin: size=0"),
    (lambda: WindowJoin(*SIDES, on="at", size=None), r"WindowJoin: size=None"),
    (lambda: WindowJoin(*SIDES, on="at", size=1, offset=-1), r"WindowJoin: offset=-1"),
    (lambda: AsOfJoin(*SIDES, on="at", within=None), r"AsOfJoin: within=None"),
    (lambda: AsOfJoin(*SIDES, on="at", within=1, how="right"), r"AsOfJoin: how='right'"),
    (lambda: TableJoin(*SIDES, how="outer"), r"TableJoin: how='outer'"),
    (lambda: TableJoin(*SIDES, ttl=0), r"TableJoin: ttl=0"),
    (lambda: TableJoin(*SIDES, on="at", ttl="1 h"), r"TableJoin: on='at', ttl='1 h'"),
])  # fmt: skip
def test_what_is_no_join_is_refused_where_it_is_written(make, message):
    with pytest.raises(UserError, match=message) as raised:
        make()
    assert "\n" not in raised.value.message


def test_a_bound_may_be_none_at_all_and_one_is_enough():
    span = IntervalJoin(*SIDES, on="at", before=0).machine()
    assert [*span.came([[[5, False, "l"]], [[4, False, "q"]]], 1, [5, False, "r"], 0.0)] == [("l", "r", 5e-06)]


@pytest.mark.parametrize(("body", "message"), [
    ({"process": lambda self, tup: None}, r"Paid is a JoinBolt and has process\(\)"),
    ({"on_timer": lambda self, name, key, at: None}, r"has on_timer\(\)"),
    ({"process_columns": lambda self, columns: None}, r"has process_columns\(\)"),
    ({"timers": Timers()}, r"has timers = Timers\(\)"),
    ({"join": 3}, r"Paid: join is 3"),
])  # fmt: skip
def test_a_class_that_cannot_be_a_join_is_refused_when_it_is_made(body, message):
    with pytest.raises(UserError, match=message):
        type("Paid", (JoinBolt,), {"join": IntervalJoin(*SIDES, on="at", after=1), **body})


def test_a_subclass_may_say_another_join():
    class Timed(JoinBolt):
        join = IntervalJoin(*SIDES, on="at", after=1)

    class Plain(Timed):
        join = TableJoin(*SIDES, ttl="1 h")

    assert [(each.name, each.kind) for each in states_of(Timed)] == [
        ("__join", "KeyedState"), ("__join_timers", "Timers"),
    ]  # fmt: skip
    assert [(each.name, each.ttl) for each in states_of(Plain)] == [("__join", 3600.0)]


class Orders(Spout):
    outputs = ["order", "shop", "at"]
    timestamps = Timestamps("at")

    def next_tuple(self):
        self.finish()


class Payments(Orders):
    outputs = ["number", "shop", "at"]


class Untimed(Payments):
    timestamps = None


class Paid(JoinBolt):
    join = IntervalJoin(*SIDES, on="at", after=1)

    def joined(self, left, right):
        pass


BY = Grouping.fields
ORDER, NUMBER = BY("order"), BY("number")


def problems(bolt=Paid, left=ORDER, right=NUMBER, payments=Payments, **others):
    """Of a topology."""
    members = {"orders": Orders.spec(), "payments": payments.spec(), **others}
    inputs = {members["orders"]: left, members["payments"]: right, **dict.fromkeys(others.values(), ORDER)}
    try:
        type("Shop", (Topology,), {**members, "paid": bolt.spec(par=2, inputs=inputs)}).plan()
    except TopologyError as error:
        return error.problems
    return []


def of(**body):
    return type("Paid", (Paid,), body)


def test_a_join_of_inputs_that_are_grouped_alike_is_none():
    assert problems() == []
    assert problems(left=BY("order", "shop"), right=BY("number", "shop")) == []


@pytest.mark.parametrize(("options", "message"), [
    ({"right": BY("number", "shop")}, "orders:default by fields(order) and payments:default by fields(number, shop)"),
    ({"right": Grouping.SHUFFLE}, "payments:default by shuffle: both have to be grouped by fields"),
    ({"left": Grouping.GLOBAL, "right": Grouping.GLOBAL}, "orders:default by global and payments:default by global"),
    ({"third": Orders.spec()}, "its inputs are [orders:default, payments:default, third:default]; they have to be"),
    ({"bolt": of(join=IntervalJoin("orders", "refunds", on="at", after=1))}, "joins orders:default with refunds"),
    ({"bolt": of(join=IntervalJoin(*SIDES, on="when", after=1))}, "on 'when', which is none of its fields: [order"),
    ({"bolt": of(join=IntervalJoin(*SIDES, on=("at", "by"), after=1))}, "joins payments:default on 'by'"),
    ({"payments": Untimed}, "joins payments:default by event time, and its rows have none"),
    ({"bolt": of(joined=lambda self, left: None)}, "calls joined(left, right), which Paid.joined does not take"),
    ({"bolt": of(outputs=["order", Stream(["order"], "late")])}, "which has [component, stream, values]: write LATE"),
    ({"bolt": of(other=KeyedState(by=1))}, "keyed states with by=1 and by=None"),
    ({"bolt": type("Paid", (JoinBolt,), {"join": Paid.join})}, "Paid has no joined(left, right)"),
    ({"bolt": type("Paid", (JoinBolt,), {})}, "Paid has no join: write join ="),
])  # fmt: skip
def test_a_place_that_a_join_cannot_have_is_refused_when_the_topology_is_built(options, message):
    assert any(message in problem for problem in problems(**options)), problems(**options)


def test_a_generator_in_the_place_of_emits_is_found():
    def joined(self, left, right):
        yield left

    assert any("Paid.joined is a generator" in problem for problem in problems(of(joined=joined)))


def test_tables_without_stamps_need_none_and_late_is_as_it_is_given():
    join = TableJoin(*SIDES)
    assert problems(of(join=join, outputs=["order", LATE]), payments=Untimed) == []

"""Rows that are looked up elsewhere: each key once, for as long as it is remembered."""

from __future__ import annotations

import math

import pytest

from ardea import Spout, Topology
from ardea.errors import TopologyError, UserError
from ardea.joins import LookupBolt, LookupJoin
from ardea.joins.lookup import Cache
from ardea.testing import AckEveryOther, Cluster, FeederSpout, run_bolt


class Priced(LookupBolt):
    outputs = ["product", "price"]
    join = LookupJoin("product", size=3, ttl="10 s")
    asked = []
    broken = 0

    def lookup(self, keys):
        Priced.asked.append(list(keys))
        if Priced.broken:
            Priced.broken -= 1
            raise OSError("no answer")
        return {key: key * 10 for key in keys if key}

    def joined(self, left, right):
        self.emit([left["product"], right])


class All(Priced):
    join = LookupJoin("product", "shop", how="left")

    def lookup(self, keys):
        Priced.asked.append(list(keys))
        return {key: sum(key) for key in keys if key[0]}


@pytest.fixture(autouse=True)
def nothing_asked():
    Priced.asked.clear()


def rows(*products):
    return [{"product": product, "shop": 7} for product in products]


def test_each_key_is_looked_up_once_and_rows_come_in_their_order():
    assert run_bolt(Priced, rows(2, 1, 2, 0)) == [(2, 20), (1, 10), (2, 20)]
    assert sorted(key for keys in Priced.asked for key in keys) == [0, 1, 2]


def test_a_left_join_tells_rows_for_which_nothing_is_found_and_keys_may_have_several_fields():
    assert run_bolt(All, rows(1, 0)) == [(1, 8), (0, None)]
    assert [key for keys in Priced.asked for key in keys] == [(1, 7), (0, 7)]


def fed(bolt):
    """A feeder of products and the lookup."""
    products = FeederSpout.of("product").spec()
    return type("Prices", (Topology,), {"products": products, "priced": bolt.spec(inputs=[products])})


def feed(cluster, *products):
    for product in products:
        cluster.task("products-0", FeederSpout).feed([product], tup_id=repr(product))
    cluster.advance(0.5)


def test_what_is_old_or_was_not_used_for_longest_is_looked_up_again():
    with Cluster(fed(Priced)) as cluster:
        cluster.advance(0.5)
        for product in (1, 2, 0, 1, 0, 3, 1, 2):  # 3 takes the place of 2, and 2 that of 0
            feed(cluster, product)
        assert Priced.asked == [[1], [2], [0], [3], [2]]
        feed(cluster, 1)
        cluster.advance(10.0)
        feed(cluster, 1)
        assert Priced.asked[5:] == [[1]], "ten seconds after it was looked up"
        assert cluster.record.tuples("priced")[-1] == (1, 10)


def test_an_exception_in_lookup_fails_the_rows_and_they_come_again():
    with Cluster(fed(Priced)) as cluster:
        cluster.advance(0.5)
        Priced.broken = 2
        feed(cluster, 1, 2)
        cluster.advance(5.0)
        assert Priced.broken == 0
        assert sorted(cluster.record.acked["products"]) == ["1", "2"]
        assert sorted(cluster.record.tuples("priced")) == [(1, 10), (2, 20)]
        assert {repr(each.error) for each in cluster.record.exceptions} == {"OSError('no answer')"}


def test_a_row_without_a_key_fails_alone(caplog):
    with Cluster(fed(Priced), config={"topology.max.tuple.replays": 1}) as cluster:
        cluster.advance(0.5)
        feed(cluster, 1, {"no": "key"}, 2)
        cluster.advance(5.0)
        assert sorted(cluster.record.tuples("priced")) == [(1, 10), (2, 20)]
        assert sorted(cluster.record.acked["products"]) == ["1", "2"]
        assert {*cluster.record.failed["products"]} == {"{'no': 'key'}"}
    assert sum("as each row without a key" in line for line in caplog.messages) == 1


def test_what_is_emitted_is_anchored_to_its_row_alone():
    products = FeederSpout.of("product").spec()
    priced = Priced.spec(inputs=[products])
    members = {"products": products, "priced": priced, "reader": AckEveryOther.spec(inputs=[priced])}
    prices = type("Prices", (Topology,), {**members, "config": {"topology.message.timeout.secs": 4}})
    with Cluster(prices) as cluster:
        cluster.advance(0.5)
        feed(cluster, 1, 2, 3)
        cluster.run_until(lambda: cluster.record.timed_out["products"], timeout=20)
        assert Priced.asked[0] == [1, 2, 3], "they came together"
        assert (cluster.record.acked["products"], cluster.record.timed_out["products"]) == (["1", "3"], ["2"])


def test_a_dict_is_asked_for():
    class Listed(Priced):
        def lookup(self, keys):
            return list(keys)

    with pytest.raises(UserError, match=r"Listed.lookup\(keys\) returned list"):
        run_bolt(Listed, rows(1))


def test_a_cache_of_none_remembers_nothing():
    cache = Cache(0, math.inf, lambda: 0.0)
    cache.keep({1: "a"})
    assert (len(cache), cache.known([1])) == (0, {})


@pytest.mark.parametrize(("make", "message"), [
    (lambda: LookupJoin(), r"LookupJoin\(\): it takes the names"),
    (lambda: LookupJoin(["a"]), r"LookupJoin\(\['a'\],\): it takes"),
    (lambda: LookupJoin("a", how="outer"), "how='outer'"),
    (lambda: LookupJoin("a", size=-1), "size=-1"),
    (lambda: LookupJoin("a", ttl="soon"), "ttl='soon'"),
    (lambda: type("Priced", (LookupBolt,), {"process": print}), r"has process\(\)"),
    (lambda: type("Priced", (LookupBolt,), {"join": "product"}), "join is 'product'"),
])  # fmt: skip
def test_what_is_no_lookup_is_refused_where_it_is_written(make, message):
    with pytest.raises(UserError, match=message):
        make()


class Products(Spout):
    outputs = ["product"]

    def next_tuple(self):
        self.finish()


@pytest.mark.parametrize(("bolt", "message"), [
    (All, "looks products:default up by [shop], which it does not have"),
    (type("Priced", (LookupBolt,), {}), "Priced has no join"),
    (type("Priced", (LookupBolt,), {"join": Priced.join, "joined": Priced.joined}), "Priced has no lookup(keys)"),
    (type("Priced", (Priced,), {"lookup": lambda self: {}}), "calls lookup(keys), which Priced.lookup does not take"),
])  # fmt: skip
def test_a_place_that_a_lookup_cannot_have_is_refused_when_the_topology_is_built(bolt, message):
    products = Products.spec()
    with pytest.raises(TopologyError) as raised:
        type("Prices", (Topology,), {"products": products, "priced": bolt.spec(inputs=[products])}).plan()
    assert any(message in problem for problem in raised.value.problems), raised.value.problems

"""The example that joins, counts by minute and writes to PostgreSQL: each order once, though processes are killed."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

from tests.process.patience import PatientTopology
from tests.process.postgres.conftest import served

EXAMPLE = Path(__file__).parents[3] / "examples" / "orders_by_minute.py"
COUNTRIES = ("NL", "FR", "PE")
BEGIN = 1_700_000_040  # a minute
ORDERS = [{"user": n % 30, "at": BEGIN + n * 0.4 + (n * 7 % 11) / 4} for n in range(3000)]
PROBES = ({"user": 29, "at": BEGIN - 36_000.0 + 60 * n} for n in itertools.count())
LAST, LATE = {"user": 2, "at": BEGIN + 2500.0}, {"user": 1, "at": BEGIN + 1.0}


def by_minute(orders):
    return Counter((COUNTRIES[order["user"] % 3], order["at"] // 60 * 60) for order in orders)


def test_each_order_is_counted_once_though_processes_are_killed(broker, tmp_path):
    broker.topic(2, "orders")
    broker.topic(1, "users")
    broker.write("users", [json.dumps({"id": n, "country": COUNTRIES[n % 3]}) for n in range(30)])
    config = {"kafka.bootstrap.servers": broker.servers, "topology.stateful.checkpoint.interval.secs": 1.0}
    with served() as database:
        database.ask("CREATE TABLE counts (country text, minute float, orders int, PRIMARY KEY (country, minute))")
        database.ask("CREATE TABLE late (country text, at float)")

        def counted():
            found = database.ask(f"SELECT * FROM counts WHERE minute >= {BEGIN}")
            return {(country, minute): orders for country, minute, orders in found}

        def probed():
            broker.write("orders", [json.dumps(next(PROBES))])
            return database.ask("SELECT * FROM counts WHERE country <> 'unknown'")

        with PatientTopology(str(EXAMPLE), tmp_path, containers=1, config=config | database.config) as topology:
            topology.until(probed, "the table has all users", 60)
            broker.write("orders", [json.dumps(order) for order in ORDERS])
            topology.faults.kill("placed-0")
            topology.until(lambda: len(counted()) > 3, "minutes are counted", 60)
            topology.faults.kill("minutes-0")
            broker.write("orders", [json.dumps(LAST)])
            expected = by_minute(ORDERS)
            topology.until(lambda: counted() == expected, "all minutes are counted", 60)
            broker.write("orders", [json.dumps(LATE)])
            topology.faults.kill("late-0")
            topology.until(lambda: database.ask("TABLE late"), "the late order is written", 60)
            assert database.ask("TABLE late") == [(COUNTRIES[1], LATE["at"])]
            assert counted() == expected

"""Counts orders by country and minute, exactly once: from Kafka, joined with a table of users, into PostgreSQL.

    ardea run examples/orders_by_minute.py --set kafka.bootstrap.servers=localhost:9092 \
        --set postgres.host=localhost --set postgres.dbname=shop

Reads the topics ``orders``, of records like ``{"user": 7, "at": 1700000000.5}``, and ``users``, of records like
``{"id": 7, "country": "NL"}``, until Ctrl-C.  The tables ``counts`` (country, minute, orders; a unique index on the
first two) and ``late`` (country, at) have each order once, whatever dies meanwhile.  An order that comes before its
user counts for the country ``unknown``.  Ctrl-C forgets users and minutes that are open: to go on later, end it with
``ardea kill OrdersByMinute --savepoint --to FOLDER``, and run it with ``--from FOLDER``.  Needs
``pip install 'ardea[kafka,postgres]'``.
"""

import json

from ardea import Grouping, Stream, Timestamps, Topology
from ardea.joins import JoinBolt, TableJoin
from ardea.kafka import KafkaSpout
from ardea.postgres import PostgresSink
from ardea.windows import Count, Tumbling, WindowBolt


def read(topic, fields, **options):
    def row(message):
        return [json.loads(message.value())[field] for field in fields]

    return KafkaSpout(topic, fields, row, **options)


class InCountry(JoinBolt):
    outputs = ["country", "at"]
    join = TableJoin("orders", "users", how="left")

    def joined(self, left, right):
        self.emit(["unknown" if right is None else right["country"], left["at"]])


class ByMinute(WindowBolt):
    outputs = ["country", "minute", "orders", Stream(InCountry.outputs, "late")]
    windows = Tumbling("1 min", on="at", fold=Count(), allowed_lateness="10 min")

    def on_window(self, key, window, value):
        self.emit([key, window.start, value])


class OrdersByMinute(Topology):
    config = {
        "topology.reliability.mode": "EFFECTIVELY_ONCE",
        "heron.resources.instance.cpu": 0.1,
        "topology.container.cpu.padding": 0.2,
    }
    orders = read("orders", ["user", "at"], timestamps=Timestamps("at", lateness="5 s", idle_after="5 s")).spec()
    users = read("users", ["id", "country"], start="earliest").spec()
    placed = InCountry.spec(inputs={orders: Grouping.fields("user"), users: Grouping.fields("id")})
    minutes = ByMinute.spec(inputs={placed: Grouping.fields("country")})
    counts = PostgresSink("counts", ["country", "minute", "orders"], key=["country", "minute"]).spec(inputs=[minutes])
    late = PostgresSink("late", ["country", "at"]).spec(inputs=[minutes["late"]])

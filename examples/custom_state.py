"""A state of your own for Trident: the largest bid for each lot, in SQLite, exactly once.

    ardea run examples/custom_state.py --logs b-0

The largest of some bids stays the largest when a batch comes again, so that the state needs to remember no transaction.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from ardea.trident import FixedBatchSpout, State, StateFactory, StateUpdater, TridentTopology

BIDS = [("clock", 30), ("lamp", 5), ("clock", 45), ("chair", 80), ("lamp", 4), ("chair", 95)]


class Bids(State):
    def __init__(self, path):
        self.connection = sqlite3.connect(path, timeout=30)
        self.connection.execute("CREATE TABLE IF NOT EXISTS bids (lot PRIMARY KEY, bid)")

    def offer(self, rows):
        with self.connection:
            change = "INSERT INTO bids VALUES (?, ?) ON CONFLICT (lot) DO UPDATE SET bid = max(bid, excluded.bid)"
            self.connection.executemany(change, rows)

    def best(self, lots):
        query = f"SELECT lot, bid FROM bids WHERE lot IN ({', '.join('?' * len(lots))})"  # noqa: S608 - only marks
        return list(self.connection.execute(query, lots))

    def close(self):
        self.connection.close()


class BidsFactory(StateFactory):
    def make_state(self, config, partition_index, num_partitions):
        return Bids(Path(tempfile.gettempdir()) / f"ardea-bids-{partition_index}.sqlite")


class Offer(StateUpdater):
    def update_state(self, state, tuples, collector):
        state.offer([tuple(tup) for tup in tuples])
        for row in state.best(sorted({tup["lot"] for tup in tuples})):
            collector.emit(row)


topology = TridentTopology("Auction")
topology.set_config({"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2})  # on a cluster
stored = topology.new_stream("bids", FixedBatchSpout(["lot", "bid"], BIDS, 2)).partition_by("lot")
best = stored.partition_persist(BidsFactory(), ["lot", "bid"], Offer(), ["lot", "best"]).parallelism_hint(2)
best.new_values_stream().peek(lambda tup: print(tup["lot"], tup["best"]))
Auction = topology.build()

"""Says where users were when they visited a page: a database of the author's own as a Trident state.

    mkdir -p /tmp/ardea-locations/moves /tmp/ardea-locations/visits
    ardea run examples/trident_locations.py --logs b-0

Append lines to files there, and see what it prints:

    echo '{"user": "ann", "location": "Oslo"}' >> /tmp/ardea-locations/moves/1.jsonl
    echo '{"user": "ann", "page": "/fish"}' >> /tmp/ardea-locations/visits/1.jsonl

A location replaces the one before it, so that a batch which comes again does no harm: this state needs no transactions.
One that counts does; docs/trident.md says which to take.  The folder is that of Python's ``tempfile.gettempdir()``.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from pathlib import Path

from ardea.trident import JsonLinesSpout, QueryFunction, State, StateFactory, StateUpdater, TridentTopology

FOLDER = Path(tempfile.gettempdir()) / "ardea-locations"


class LocationDB(State):
    """The location of each user; what a task sees of it."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, timeout=30)
        self.connection.execute("CREATE TABLE IF NOT EXISTS locations (user PRIMARY KEY, location)")

    def set_locations(self, locations):
        with self.connection:
            self.connection.executemany("REPLACE INTO locations VALUES (?, ?)", locations)

    def get_locations(self, users):
        query = "SELECT user, location FROM locations WHERE user IN (SELECT value FROM json_each(?))"
        found = dict(self.connection.execute(query, [json.dumps(users)]))
        return [found.get(user) for user in users]

    def close(self):
        self.connection.close()


class LocationDBFactory(StateFactory):
    """Makes one for each task."""

    def make_state(self, config, partition_index, num_partitions):
        return LocationDB(FOLDER / "locations.sqlite")


class LocationUpdater(StateUpdater):
    """Stores a batch's moves by one access; the later of two wins.  Emits them: they are the state's new values."""

    def update_state(self, state, tuples, collector):
        state.set_locations(tuples)
        collector.emit_rows(tuples)


class QueryLocation(QueryFunction):
    """Asks for a batch's users by one access, and appends an answer to each tuple."""

    def batch_retrieve(self, state, tuples):
        return state.get_locations([tup["user"] for tup in tuples])

    def execute(self, tup, location, collector):
        collector.emit([location or "nobody knows where"])


topology = TridentTopology("TridentLocations")
topology.set_config({"topology.trident.batch.emit.interval.millis": 100})
topology.set_config({"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2})  # on a cluster
locations = (
    topology.new_stream("moves", JsonLinesSpout.transactional(FOLDER / "moves", ["user", "location"], follow=True))
    .partition_by("user")
    .partition_persist(LocationDBFactory(), ["user", "location"], LocationUpdater(), ["user", "location"])
    .parallelism_hint(2)
)
locations.new_values_stream().peek(lambda tup: print(f"{tup['user']} is in {tup['location']}"))
(
    topology.new_stream("visits", JsonLinesSpout.transactional(FOLDER / "visits", ["user", "page"], follow=True))
    .partition_by("user")
    .state_query(locations, "user", QueryLocation(), "location")
    .peek(lambda tup: print(f"{tup['user']} reads {tup['page']} in {tup['location']}"))
)
TridentLocations = topology.build()

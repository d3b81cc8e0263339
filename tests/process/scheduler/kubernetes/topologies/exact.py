"""Words of the files beside this one, counted exactly once into SQLite; asked over HTTP."""

from __future__ import annotations

import threading
from pathlib import Path

from ardea.trident import Count, DirectorySpout, MapGet, SqliteState, TridentTopology

PORT = 8080
NEVER = threading.Event()

topology = TridentTopology("Exact")
topology.set_config(
    {
        "topology.stmgrs": 2,
        "topology.max.spout.pending": 3,
        "topology.message.timeout.secs": 20,
        "topology.trident.batch.emit.interval.millis": 250,
        "heron.kubernetes.volumes": [{"name": "counts", "emptyDir": {}, "mountPath": "/counts"}],
    }
)
stored = (
    topology.new_stream("lines", DirectorySpout.transactional(Path(__file__).parent / "in", lines=5, follow=True))
    .each("line", lambda tup: tup["line"].split(), "word")
    .group_by("word")
    .name("count")
    .persistent_aggregate(SqliteState.opaque("/counts/counts.sqlite"), Count(), "count")
    .parallelism_hint(2)
)
stored.new_values_stream().peek(lambda _: NEVER.wait(0.1))  # written and not yet committed: the test strikes in between
(
    topology.new_drpc_stream("counts", host="0.0.0.0", port=PORT)
    .each("args", lambda tup: tup["args"].split(), "word")
    .group_by("word")
    .state_query(stored, "word", MapGet(), "count")
    .project(["word", "count"])
)
Exact = topology.build()

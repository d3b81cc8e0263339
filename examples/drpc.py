"""A function that is asked over HTTP while words are counted: how often each word of a text has come so far.

    ardea run examples/drpc.py
    curl --data "the heron" http://127.0.0.1:8800/drpc/counts

It runs until Ctrl-C.
"""

from __future__ import annotations

from ardea.trident import Count, FixedBatchSpout, MapGet, MemoryMapState, TridentTopology

LINES = [["the heron waits"], ["the heron strikes"], ["the fish is gone"]]
PORT = 8800

topology = TridentTopology("Asked")
topology.set_config({"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2})  # on a cluster
counts = (
    topology.new_stream("lines", FixedBatchSpout(["line"], LINES, 1))
    .each("line", lambda tup: tup["line"].split(), "word")
    .group_by("word")
    .persistent_aggregate(MemoryMapState.transactional(), Count(), "count")
)
(
    topology.new_drpc_stream("counts", host="127.0.0.1", port=PORT)
    .each("args", lambda tup: tup["args"].split(), "word")
    .group_by("word")
    .state_query(counts, "word", MapGet(), "count")
    .project(["word", "count"])
)
Asked = topology.build()

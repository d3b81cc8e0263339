"""Counts the words of a growing directory of files, each exactly once, into an SQLite file, and answers queries.

    mkdir -p /tmp/ardea-words/in
    ardea run examples/trident_word_count.py

Copy text files into that directory, or append lines to them, and ask the running topology (docs/drpc.md) how often some
words have been counted by now, or look into the file:

    python examples/trident_word_count.py the moon
    sqlite3 /tmp/ardea-words/counts.sqlite 'SELECT count(*) FROM entries'

Kill any of its processes, or end it by Ctrl-C and run it again: the counts go on where they were, and are exact.  The
folder is that of Python's ``tempfile.gettempdir()``.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from ardea.drpc import DrpcClient
from ardea.errors import NotFound
from ardea.trident import Count, DirectorySpout, MapGet, SqliteState, TridentTopology

FOLDER = Path(tempfile.gettempdir()) / "ardea-words"
words_in = re.compile(r"\w+").findall

counts = SqliteState.opaque(FOLDER / "counts.sqlite")

topology = TridentTopology("TridentWordCount")
topology.set_config({"topology.max.spout.pending": 3, "topology.trident.batch.emit.interval.millis": 20})
topology.set_config({"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2})  # on a cluster
stored = (
    topology.new_stream("files", DirectorySpout.transactional(FOLDER / "in", follow=True))
    .name("split")
    .each("line", lambda tup: words_in(tup["line"].lower()), "word")
    .group_by("word")
    .name("count")
    .persistent_aggregate(counts, Count(), "count")
    .parallelism_hint(2)
)
(
    topology.new_drpc_stream("counts")
    .name("ask")
    .each("args", lambda tup: words_in(tup["args"].lower()), "word")
    .group_by("word")
    .state_query(stored, "word", MapGet(), "count")
    .project(["word", "count"])
)
TridentWordCount = topology.build()

if __name__ == "__main__":
    home = os.environ.get("ARDEA_STATE") or "~/.ardea"  # as the command has it
    try:
        client = DrpcClient.find(home if "://" in home else f"{home}/state", "TridentWordCount", "counts")
    except NotFound as error:
        sys.exit(f"{error}; if it runs in another one, set ARDEA_STATE as for `ardea run`")
    for word, count in client.execute("counts", " ".join(sys.argv[1:])):
        print(f"{count or 0:9,}  {word}")

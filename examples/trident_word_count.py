"""Counts the words of a growing directory of files, each exactly once, into an SQLite file.

    mkdir -p /tmp/ardea-words/in
    ardea run examples/trident_word_count.py

Copy text files into that directory, or append lines to them, and look at the counts:

    sqlite3 /tmp/ardea-words/counts.sqlite 'SELECT count(*) FROM entries'
    python examples/trident_word_count.py

Kill any of its processes, or end it by Ctrl-C and run it again: the counts go on where they were, and are exact.  The
folder is that of Python's ``tempfile.gettempdir()``.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from ardea.trident import Count, DirectorySpout, SqliteState, TridentTopology

FOLDER = Path(tempfile.gettempdir()) / "ardea-words"
words_in = re.compile(r"\w+").findall

counts = SqliteState.opaque(FOLDER / "counts.sqlite")

topology = TridentTopology("TridentWordCount")
topology.set_config({"topology.max.spout.pending": 3})
(
    topology.new_stream("files", DirectorySpout.transactional(FOLDER / "in", follow=True))
    .name("split")
    .each("line", lambda tup: words_in(tup["line"].lower()), "word")
    .group_by("word")
    .name("count")
    .persistent_aggregate(counts, Count(), "count")
    .parallelism_hint(2)
)
TridentWordCount = topology.build()

if __name__ == "__main__":
    for (word,), count in sorted(counts.items(), key=lambda item: -item[1])[:20]:
        print(f"{count:9,}  {word}")

"""Follows a file as `tail -f` does, and counts its lines by their first word.

    ardea run examples/tail_file.py --set tail.file=/var/log/syslog --logs count

It goes on until Ctrl-C; `--set tail.until_end=true` ends it with the file.  When the spout's process dies, its next
life begins at the first line again.  `SourceSpout(Lines(..., follow=True))` goes on where it was, with
`EFFECTIVELY_ONCE` (docs/sources.md).
"""

from __future__ import annotations

from collections import Counter

from ardea import Bolt, Grouping, Spout, Topology, UserError


class Tail(Spout):
    outputs = ["level", "line"]

    def initialize(self, config, context):
        if not (path := config.get("tail.file")):
            raise UserError("tail.file is not set", hint="--set tail.file=/var/log/syslog")
        self.file = open(path, "rb")  # noqa: PTH123, SIM115 - it stays open
        self.until_end = config.get("tail.until_end", False)

    def next_tuple(self):
        start = self.file.tell()
        line = self.file.readline()
        if line.endswith(b"\n"):
            text = line.decode(errors="replace").rstrip()
            self.emit([text.partition(" ")[0], text], tup_id=start)
        else:
            self.file.seek(start)  # half a line: the rest is not written yet
            if self.until_end:
                self.finish()

    def close(self):
        self.file.close()


class Count(Bolt):
    def initialize(self, config, context):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["level"]] += 1
        print(tup["level"], self.counts[tup["level"]])


class TailFile(Topology):
    tail = Tail.spec()
    count = Count.spec(inputs={tail: Grouping.fields("level")}, par=2)
    config = {"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2}  # on a cluster

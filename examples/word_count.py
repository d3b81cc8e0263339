"""Counts the words of Python's own standard library, some twenty megabytes of real text.

    ardea run examples/word_count.py --containers 2 --logs report

Prints the twenty commonest words, and compares the total with that of a plain Counter over the same files.
"""

from __future__ import annotations

import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ardea import Bolt, Grouping, Spout, Topology, UserError

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
MEGABYTES = 20
words_in = re.compile(r"[A-Za-z_]{2,}").findall


def library_files() -> list[Path]:
    """The same in every process: the library proper, then as many of its tests as make up the twenty megabytes."""
    files = sorted(p for p in LIBRARY.rglob("*.py") if "site-packages" not in p.parts and p.is_file())
    files.sort(key=lambda path: "test" in path.parts or "tests" in path.parts)
    chosen: list[Path] = []
    size = 0
    for path in files:
        if size >= MEGABYTES * 1_000_000:
            break
        chosen.append(path)
        size += path.stat().st_size
    return chosen


def lines_of(files: list[Path]) -> Iterator[str]:
    for path in files:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file


class Lines(Spout):
    """Each task reads its share of the files; a line is a tuple, tracked until all its words are counted."""

    outputs = ["line"]

    def initialize(self, config, context):
        tasks = context.component_tasks(context.this_component_id)
        share = library_files()[context.this_task_index :: len(tasks)]
        self.lines = enumerate(lines_of(share))

    def next_tuple(self):
        some = list(islice(self.lines, 100))
        for number, line in some:
            self.emit((line,), tup_id=number)
        if not some:
            self.finish()


class Split(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit_many(zip(words_in(tup.values[0])))


class Count(Bolt):
    """Equal words meet in one task, which tells what it has counted when all has come."""

    outputs = ["word", "count"]

    def initialize(self, config, context):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup.values[0]] += 1

    def end_of_input(self):
        self.emit_many(self.counts.items())


class Report(Bolt):
    def initialize(self, config, context):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["word"]] = tup["count"]

    def end_of_input(self):
        for word, count in self.counts.most_common(20):
            print(f"{count:9,}  {word}")
        plain = Counter(word for line in lines_of(library_files()) for word in words_in(line))
        print(f"{self.counts.total():9,}  words, {len(self.counts):,} different ones")
        print(f"{plain.total():9,}  words in a plain collections.Counter over the same files")
        if self.counts != plain:
            raise UserError("the topology and the plain Counter differ")
        print("           equal, word by word")


class WordCount(Topology):
    lines = Lines.spec()
    split = Split.spec(inputs=[lines], par=2)
    count = Count.spec(inputs={split: Grouping.fields("word")}, par=2)
    report = Report.spec(inputs={count: Grouping.GLOBAL})
    # What a cluster sets aside: tenths of a core.  A task that finds idle cores uses them none the less.
    config = {"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2}

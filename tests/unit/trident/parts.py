"""What the tests of this folder share."""

from __future__ import annotations

from collections import Counter

from ardea.testing import Cluster
from ardea.trident import Count, DirectorySpout, SqliteState, TridentTopology


def words_of(tup):
    return tup["line"].split()


def write_files(folder, files):
    """``files``: each a list of lines; returns how often each word is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, lines in enumerate(files):
        (folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines))
    return Counter(word for lines in files for line in lines for word in line.split())


def counting(folder, kind="transactional", state="opaque", spout=None):
    """Words of the files in ``folder / "in"``, counted into SQLite; returns the topology and the state."""
    topology = TridentTopology("words")
    make = DirectorySpout.transactional if kind == "transactional" else DirectorySpout.opaque_transactional
    spout = spout or make(folder / "in", lines=3)
    counts = getattr(SqliteState, state)(folder / "counts.sqlite")
    stream = topology.new_stream("files", spout).parallelism_hint(2)
    stream = stream.shuffle().each("line", words_of, "word").parallelism_hint(2)
    stream.group_by("word").persistent_aggregate(counts, Count(), "count").parallelism_hint(3)
    return topology, counts


def counted(state):
    """Word -> count."""
    return {key[0]: value for key, value in state.items()}


def run_through(topology, faults=(), containers=2, seed=0, config=None, timeout=600, cost=None):
    """Runs to the end, with processes killed at times; returns the cluster, closed."""
    with Cluster(topology, containers=containers, seed=seed, config=config or {}, cost=cost or {}) as cluster:
        for time, name in faults:
            cluster.at(time, lambda c, name=name: c.kill(name))
        cluster.run_until(lambda: cluster.over, timeout)
        return cluster

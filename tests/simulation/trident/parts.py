"""What the tests of this folder share."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

from ardea.testing import Cluster
from ardea.trident import Attempt, Count, DirectorySpout, SqliteState, TridentTopology
from ardea.trident.partitioned import _Coordinator, _Emitter
from ardea.trident.store import MemoryStore, StreamStore

AT_ONCE = {"topology.trident.batch.emit.interval.millis": 0}
ONE_TASK = SimpleNamespace(this_component_id="spout", this_task_index=0, component_tasks=lambda _: (1,))
"""The context of a spout's only task."""


def words_of(tup):
    return tup["line"].split()


def write_files(folder, files):
    """``files``: each a list of lines; returns how often each word is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, lines in enumerate(files):
        (folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines))
    return Counter(word for lines in files for line in lines for word in line.split())


def counting(folder, kind="transactional", state="opaque", spout=None, counts=None):
    """Words of the files in ``folder / "in"``, counted into ``counts`` or SQLite; returns topology and state."""
    topology = TridentTopology("words")
    make = DirectorySpout.transactional if kind == "transactional" else DirectorySpout.opaque_transactional
    spout = spout or make(folder / "in", lines=3)
    counts = counts or getattr(SqliteState, state)(folder / "counts.sqlite")
    stream = topology.new_stream("files", spout).parallelism_hint(2)
    stream = stream.shuffle().each("line", words_of, "word").parallelism_hint(2)
    stream.group_by("word").persistent_aggregate(counts, Count(), "count").parallelism_hint(3)
    return topology, counts


def counted(state):
    """Word -> count."""
    return {key[0]: value for key, value in state.items()}


def run_through(topology, faults=(), containers=2, seed=0, config=None, timeout=600, cost=None):
    """Runs to the end, with processes killed at times; returns the cluster, closed."""
    config = AT_ONCE | (config or {})
    with Cluster(topology, containers=containers, seed=seed, config=config, cost=cost or {}) as cluster:
        for time, name in faults:
            cluster.at(time, lambda c, name=name: c.kill(name))
        cluster.run_until(lambda: cluster.over, timeout)
        return cluster


class Emissions:
    """Two emitters of a spout, through attempts and lives, without a topology."""

    def __init__(self, spout):
        self.spout, self.store, self.txid, self.attempt = spout, StreamStore(MemoryStore(), "t", "s"), 1, 0
        self.metadata = None
        self.new_life()

    def new_life(self):
        self.coordinator = _Coordinator(self.spout, self.store)
        self.emitters = [_Emitter(self.spout, self.store, index, 2) for index in (0, 1)]

    def emit(self):
        """An attempt's rows."""
        current = self.store.get(f"meta/{self.txid}")
        previous = self.store.get(f"meta/{self.txid - 1}")
        metadata = self.coordinator.initialize_transaction(self.txid, previous, current)
        self.store.put(f"meta/{self.txid}", metadata)
        rows, self.attempt = [], self.attempt + 1
        kept = type("Kept", (), {"emit": staticmethod(lambda values: rows.append(values[0]))})
        for emitter in self.emitters:
            emitter.emit_batch(Attempt(self.txid, self.attempt), metadata, kept)
        return rows

    def commit(self):
        """The last attempt is committed."""
        for emitter in self.emitters:
            if self.spout.committing:
                emitter.commit(Attempt(self.txid, self.attempt))
            emitter.success(self.txid)
        self.txid += 1


def run_under_kills(topology, rng, seed):
    """To its end, which is a success: a file spout named ``files``, two bolts, and five kills while they work."""
    names = ["b-0-0", "b-1-0", "spout-files-0", "$mastercoord-bg0-0", "$spoutcoord-spout-files-0", "manager-1"]
    with Cluster(topology, containers=2, seed=seed, config=AT_ONCE, cost={"b-0": 0.01, "b-1": 0.01}) as cluster:
        for name in rng.choices(names, k=5):
            cluster.at(rng.uniform(0.02, 1.5), lambda c, name=name: c.kill(name))
        cluster.run_until(lambda: cluster.over, 600)
        assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])

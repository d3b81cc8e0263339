"""Other numbers of tasks: refused while a topology runs, unless all of its tasks start again."""

from __future__ import annotations

import pytest

from ardea.errors import UserError
from ardea.scheduler.next_definition import Change, Version, next_of
from ardea.testing import Cluster
from ardea.trident import Count, DirectorySpout, SqliteState, TridentTopology, compiler
from ardea.trident.store import MemoryStore

from .parts import AT_ONCE, counted, words_of, write_files

LINES = [["a b", "c a"] * 30, ["b"] * 50, ["d a"] * 40]


def words(folder, kind, spouts, splitters, counters):
    make = getattr(DirectorySpout, kind)
    topology = TridentTopology("words")
    stream = topology.new_stream("files", make(folder / "in", lines=3)).parallelism_hint(spouts)
    stream = stream.shuffle().each("line", words_of, "word").parallelism_hint(splitters)
    counts = SqliteState.opaque(folder / "counts.sqlite")
    stream.group_by("word").persistent_aggregate(counts, Count(), "count").parallelism_hint(counters)
    return topology


def commits(cluster):
    return len([step for step in cluster.record.acked["$mastercoord-bg0"] if step.phase == "$commit"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("component", ["$mastercoord-bg0", "$spoutcoord-spout-files", "spout-files", "b-0", "b-1"])
def test_no_component_is_rescaled_under_its_neighbours(tmp_path, component):
    """With spouts that keep their stride next to new ones, lines are read twice."""
    plain = write_files(tmp_path / "in", LINES)
    with Cluster(words(tmp_path, "transactional", 2, 2, 3), config=AT_ONCE) as cluster:
        cluster.run_until(lambda: commits(cluster) >= 3)
        with pytest.raises(UserError, match="count on their number") as refused:
            cluster.update_request(parallelism={component: 4})
        assert refused.value.message.startswith(f"{component}: ")
        assert "submit" in refused.value.hint
        cluster.run_until(lambda: cluster.over, 600)
    assert counted(SqliteState.opaque(tmp_path / "counts.sqlite")) == plain


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["transactional", "opaque_transactional"])
@pytest.mark.parametrize("hints", [(3, 1, 2), (1, 3, 5)])
def test_a_new_version_has_the_numbers_that_it_says(tmp_path, monkeypatch, kind, hints):
    """All tasks start again, and go on where the former ones were: both versions have one memory, as a run's have."""
    memory = MemoryStore()
    monkeypatch.setattr(compiler, "MemoryStore", lambda: memory)
    plain = write_files(tmp_path / "in", LINES)
    with Cluster(words(tmp_path, kind, 2, 2, 3), config=AT_ONCE) as cluster:
        cluster.run_until(lambda: commits(cluster) >= 3)
        next_version = words(tmp_path, kind, *hints)
        present = cluster.update_request(config={"topology.debug": False}).wanted  # one with the present numbers
        change = Change(version=Version(location="next"))
        next_of(present, change, next_version.plan, half_done=False)  # without --moves-keys: no task keeps anything
        progress = cluster.updated(cluster.update_request(next_version))
        assert (progress.step, progress.reason) == ("done", "")
        tasks = cluster.plan.component_tasks
        assert len(tasks["spout-files"]) == hints[0]
        cluster.run_until(lambda: cluster.over, 600)
        assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])
    assert counted(SqliteState.opaque(tmp_path / "counts.sqlite")) == plain


def test_windows_belong_to_their_partitions(tmp_path):
    """With fewer tasks the rows of one would be left behind, and come again with more."""

    def windowed(tasks):
        topology = TridentTopology("windows")
        stream = topology.new_stream("files", DirectorySpout.transactional(tmp_path / "in", lines=3)).shuffle()
        state = SqliteState.opaque(tmp_path / "windows.sqlite")
        stream.tumbling_window(10, Count(), "n", state=state).parallelism_hint(tasks)
        return topology

    write_files(tmp_path / "in", LINES)
    with Cluster(windowed(3), config=AT_ONCE) as cluster:
        cluster.run_until(lambda: commits(cluster) >= 3)
        present = cluster.update_request(config={"topology.debug": False}).wanted
        change = Change(version=Version(location="next"))
        with pytest.raises(UserError, match="b-0: rows are grouped by keys"):
            next_of(present, change, windowed(2).plan, half_done=False)

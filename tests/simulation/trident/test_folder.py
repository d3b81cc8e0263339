"""States in a folder of any file system: their contract, torn files, late writers, and kills."""

from __future__ import annotations

import random

import pytest

from ardea.errors import ConfigError, FailedException, StateError, UserError
from ardea.testing.backing import check_backing_map
from ardea.trident import FolderState, folder

from .parts import counted, counting, run_through, write_files


def plus(number):
    return lambda stored: (stored or 0) + number


def add(state, txid, **counts):
    state.begin_commit(txid)
    state.multi_update([(word,) for word in counts], [plus(count) for count in counts.values()])
    state.commit(txid)


@pytest.mark.parametrize("uri", ["{}", "file://{}"])
def test_the_contract_of_backing_maps(tmp_path, uri, monkeypatch):
    monkeypatch.setattr(folder, "MOST_CHANGES", 2)
    made = FolderState.opaque(uri.format(tmp_path / "x"))
    check_backing_map(lambda partition: made.open(partition, 2))


@pytest.mark.parametrize("kind", ["opaque", "transactional", "non_transactional"])
@pytest.mark.parametrize("most", [1, 3, 200])
def test_values_outlive_their_task(tmp_path, monkeypatch, kind, most):
    monkeypatch.setattr(folder, "MOST_CHANGES", most)
    made = getattr(FolderState, kind)(str(tmp_path))
    for txid in range(1, 9):
        if txid % 3 == 1:
            state = made.make_state({}, 0, 1)
        add(state, txid, a=1, **{f"b{txid}": 2})
    assert dict(made.items()) == {("a",): 8} | {(f"b{txid}",): 2 for txid in range(1, 9)}
    [life] = (tmp_path / "0").iterdir()
    assert len(list(life.iterdir())) <= most + 2, "what is replaced is removed"


def test_who_only_asks_takes_nothing_over_and_sees_all_partitions(tmp_path):
    """As they were when it began."""
    made = FolderState.opaque(str(tmp_path))
    owners = [made.make_state({}, index, 2) for index in (0, 1)]
    add(owners[0], 1, a=2)
    add(owners[1], 1, b=3)
    reader = made.make_reader({}, 2, 3)
    assert reader.multi_get([("a",), ("b",), ("c",)]) == [2, 3, None]
    add(owners[0], 2, a=5)
    assert reader.multi_get([("a",)]) == [2]
    assert made.make_reader({}, 0, 1).multi_get([("a",)]) == [7]
    with pytest.raises(FailedException, match="belong to other processes"):
        add(reader, 3, a=1)


def test_a_late_write_between_the_look_and_the_file_changes_nothing(tmp_path, monkeypatch):
    """The former task has just looked who the owner is, and is frozen."""
    made = FolderState.opaque(str(tmp_path))
    former, now = made.make_state({}, 0, 1), []
    add(former, 1, a=1)
    write = folder._Folder.write

    def late(self, *args):
        if not now:
            now.append(None)
            now[0] = made.make_state({}, 0, 1)
            add(now[0], 2, a=5)
        write(self, *args)

    monkeypatch.setattr(folder._Folder, "write", late)
    add(former, 2, a=100)
    with pytest.raises(FailedException, match="belongs to another process"):
        add(former, 3, a=100)
    again = made.make_state({}, 0, 1)
    assert again.multi_get([("a",)]) == [6]
    assert dict(made.items()) == {("a",): 6}


def test_two_that_take_over_at_the_same_moment_have_different_numbers(tmp_path, monkeypatch):
    made, real, inside = FolderState.opaque(str(tmp_path)), folder._Folder.write, []

    def write(self, name, *args):
        if name.endswith("owner") and not inside:
            inside.append(None)
            inside[0] = made.open(0, 1)
        real(self, name, *args)

    monkeypatch.setattr(folder._Folder, "write", write)
    outer = made.open(0, 1)
    refused = []
    for task in (outer, inside[0]):
        try:
            task.multi_put([("a",)], [(1,)])
        except FailedException:
            refused.append(task)
    assert len(refused) == 1


def test_a_file_that_was_not_written_to_its_end_was_not_acknowledged(tmp_path):
    made = FolderState.opaque(str(tmp_path))
    state = made.make_state({}, 0, 1)
    add(state, 1, a=1)
    add(state, 2, a=1)
    [life] = (tmp_path / "0").iterdir()
    last = max(file for file in life.iterdir() if file.name[0].isdigit())
    last.write_bytes(last.read_bytes()[:-3])
    assert made.make_state({}, 0, 1).multi_get([("a",)]) == [1]


def test_what_cannot_be_written_fails_and_is_repeated(tmp_path, monkeypatch):
    state = FolderState.opaque(str(tmp_path)).make_state({}, 0, 1)
    add(state, 1, a=1)
    with monkeypatch.context() as patch:
        patch.setattr(state._backing._folder, "_system", Refusing())
        with pytest.raises(StateError, match="no space left"):
            add(state, 2, a=1)
    add(state, 2, a=1)
    assert state.multi_get([("a",)]) == [2]


class Refusing:
    def __getattr__(self, name):
        raise OSError("no space left")


@pytest.mark.parametrize("number", [1, 3])
def test_another_number_of_tasks_is_refused(tmp_path, number):
    """A key would be looked for in a partition that does not have it."""
    made = FolderState.opaque(str(tmp_path / "counts"))
    for index in (0, 1):
        add(made.make_state({}, index, 2), 1, **{f"word{index}": 1})
    with pytest.raises(UserError, match=f"counts is divided into 2 partitions, and {number} tasks") as refused:
        made.make_state({}, 0, number)
    assert "parallelism_hint(2)" in refused.value.hint
    add(made.make_state({}, 0, 2), 2, word0=1)
    assert dict(made.items()) == {("word0",): 2, ("word1",): 1}


def test_what_is_no_folder(tmp_path):
    with pytest.raises(ConfigError, match="is no folder for a state"):
        FolderState.opaque("nowhere://x").open(0, 1)


def test_a_file_system_that_cannot_be_reached(monkeypatch):
    """S3 is asked in which region a bucket is."""

    class Unreached:
        @staticmethod
        def from_uri(uri):
            raise OSError(f"when resolving region for {uri}: no route")

    monkeypatch.setattr("pyarrow.fs.FileSystem", Unreached)
    told = "s3://bucket/x: cannot reach its file system: when resolving region for s3://bucket/x: no route"
    for uri in ("s3://bucket/x", "s3://KEY:a%2Fsecret@bucket/x"):
        with pytest.raises(StateError, match=told):
            FolderState.opaque(uri).open(0, 1)


@pytest.mark.parametrize(("spout", "seed"), [("transactional", 1), ("opaque", 2), ("opaque", 3)])
def test_exact_through_kills(tmp_path, monkeypatch, spout, seed):
    monkeypatch.setattr(folder, "MOST_CHANGES", 3)
    plain = write_files(tmp_path / "in", [["a b", "c a"] * 20, ["b"] * 50])
    rng = random.Random(seed)
    victims = ["b-0-0", "b-0-1", "b-0-2", "spout-files-0", "manager-1"]
    faults = sorted((rng.uniform(0.02, 1.5), rng.choice(victims)) for _ in range(5))
    topology, _ = counting(tmp_path, spout, counts=FolderState.opaque(str(tmp_path / "counts")))
    cluster = run_through(topology, faults, seed=seed, cost={"b-0": 0.01, "b-1": 0.02, "spout-files": 0.01})
    assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])
    assert counted(FolderState.opaque(str(tmp_path / "counts"))) == plain

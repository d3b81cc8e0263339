"""The data source `ardea` as Spark calls it, without a JVM: what is refused."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, NullType, StructType

from ardea import TopologyError, UserError
from ardea.spark.index import IndexWriter, Partition, StagedFile
from ardea.spark.source import ArdeaSource, _Written

SCHEMA = StructType().add("n", LongType())


def commit(folder, number, *, overwrite=False):
    """Of one row each."""
    partition = Partition(0, 0, (StagedFile(f"run-1/part-{number}.arrow", 10, "ab", 1, 1),))
    source = ArdeaSource({"path": str(folder), "query": "q"})
    if overwrite:
        source.writer(SCHEMA, overwrite=True).commit([_Written(partition)] * 3)
    else:
        source.streamWriter(SCHEMA, overwrite=False).commit([_Written(partition)], number)


def test_a_stream_that_reads_sees_each_commit_once_and_fails_after_an_overwrite(tmp_path):
    commit(tmp_path, 0)
    reader = ArdeaSource({"path": str(tmp_path)}).streamReader(SCHEMA)
    begin = reader.initialOffset()
    first = reader.latestOffset(begin, None)
    commit(tmp_path, 1)
    second = reader.latestOffset(first, None)
    pieces = [reader.partitions(start, end) for start, end in ((begin, first), (first, second), (second, second))]
    assert [[piece.partition.number for piece in each] for each in pieces] == [[0], [1], []]
    commit(tmp_path, 2, overwrite=True)
    for ask in (
        lambda: reader.latestOffset(second, None),
        lambda: reader.partitions(first, second),
        lambda: reader.partitions(begin, second),
    ):
        with pytest.raises(UserError, match="was overwritten since the query read it"):
            ask()


def test_an_overwrite_of_what_a_sink_wrote_is_noticed_too(tmp_path):
    folder = tmp_path / "sink-0"
    folder.mkdir()
    with IndexWriter(folder) as index:
        index.publish(Partition(0, 0, (StagedFile("run-1/part-0.arrow", 10, "ab", 1, 1),)))
    reader = ArdeaSource({"path": str(tmp_path)}).streamReader(SCHEMA)
    offset = reader.latestOffset(reader.initialOffset(), None)
    commit(tmp_path, 0)
    assert reader.latestOffset(offset, None)["behind"] == {".": 1, "sink-0": 1}
    commit(tmp_path, 1, overwrite=True)
    with pytest.raises(UserError, match="was overwritten"):
        reader.latestOffset(offset, None)


def test_a_query_needs_a_name(tmp_path):
    with pytest.raises(UserError, match=r'takes option\("query", NAME\)'):
        ArdeaSource({"path": str(tmp_path)}).streamWriter(SCHEMA, overwrite=False)


def test_a_query_cannot_overwrite(tmp_path):
    with pytest.raises(UserError, match="cannot overwrite"):
        ArdeaSource({"path": str(tmp_path), "query": "q"}).streamWriter(SCHEMA, overwrite=True)


def test_an_overwrite_that_is_refused_leaves_what_is_there_readable(tmp_path):
    commit(tmp_path, 0)
    source = ArdeaSource({"path": str(tmp_path)})
    with pytest.raises(TopologyError, match="a tuple cannot keep a value of type 'void'"):
        source.writer(StructType().add("n", LongType()).add("x", NullType()), overwrite=True).commit([])
    assert source.schema() == "`n` bigint"


def test_an_overwrite_may_have_other_columns(tmp_path):
    commit(tmp_path, 0)
    source = ArdeaSource({"path": str(tmp_path)})
    source.writer(StructType().add("m", LongType()), overwrite=True).commit([])
    assert source.schema() == "`m` bigint"

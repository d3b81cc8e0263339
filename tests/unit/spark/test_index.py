"""The index: one writer, readers that follow, whatever a dying driver leaves of its last line."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.spark.index import INDEX, IndexReader, IndexWriter, Partition, Reports, StagedFile, write_report


def partition(number, attempt=0, rows=3):
    return Partition(number, attempt, (StagedFile(f"run-1/part-{number}.arrow", 10, "ab", rows, 1),))


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def test_readers_follow(folder):
    reader = IndexReader(folder)
    assert not reader.poll()
    with IndexWriter(folder) as writer:
        assert reader.poll()
        assert not reader.poll()
        assert writer.publish(partition(4))
        assert reader.poll()
        assert not reader.poll()
        assert writer.publish(partition(1, rows=5))
        assert writer.complete().rows == 8
    assert reader.poll()
    assert list(reader.partitions) == [4, 1]
    assert reader.complete is not None
    assert (reader.complete.partitions, reader.complete.rows) == (2, 8)
    with IndexWriter(folder) as writer:
        writer.restart()
        assert reader.poll()  # that there is nothing any more is news
        assert (reader.partitions, reader.complete) == ({}, None)


def test_the_first_report_wins(folder):
    with IndexWriter(folder) as writer:
        assert writer.publish(partition(0, attempt=7))
        assert not writer.publish(partition(0, attempt=3))
        assert writer.known.partitions[0].attempt == 7


@given(st.integers(0, 3), st.integers(0, 400))
def test_a_line_that_was_not_finished_is_cut_off(published, lost):
    """Wherever the bytes end, whole lines count, and the next driver's lines are readable behind them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with IndexWriter(folder) as writer:
            for number in range(published):
                writer.publish(partition(number))
        text = (folder / INDEX).read_bytes()
        text = text[: max(0, len(text) - lost)]
        (folder / INDEX).write_bytes(text)
        whole = text.count(b"\n")
        reader = IndexReader(folder)
        reader.poll()
        assert list(reader.partitions) == list(range(whole))
        with IndexWriter(folder) as writer:
            assert list(writer.known.partitions) == list(range(whole))
            writer.publish(partition(9))
        reader = IndexReader(folder)
        reader.poll()
        assert list(reader.partitions) == [*range(whole), 9]


def test_a_new_beginning_is_noticed(folder):
    reader = IndexReader(folder)
    with IndexWriter(folder) as writer:
        writer.publish(partition(0))
        assert reader.poll()
        writer.restart()
        assert writer.known.partitions == {}
        writer.publish(partition(1))
        assert reader.poll()
        assert list(reader.partitions) == [1]


def test_reports_are_seen_once_and_never_half(folder):
    reports = Reports(folder)
    write_report(folder, partition(2))
    (folder / "reports" / ".3-0.json").write_text("{")
    assert list(reports.new()) == [partition(2)]
    write_report(folder, partition(2, attempt=1))
    assert list(reports.new()) == [partition(2, attempt=1)]
    assert list(reports.new()) == []

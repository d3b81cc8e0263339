"""Sources that are directories: JSON lines, CSV, Parquet, whole, growing and gone for a while."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from ardea import TopologyError, UserError
from ardea.errors import ConfigError
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.trident import Count, CsvSpout, DirectorySpout, JsonLinesSpout, ParquetSpout, SqliteState, TridentTopology
from ardea.trident.spout import Attempt
from tests.sizes import share

from .parts import AT_ONCE, counted, words_of, write_files


class Kept:
    def __init__(self):
        self.rows = []

    def emit(self, values):
        self.rows.append(tuple(values))


def batches(spout, partition, count=100):
    """All batches of a file, each emitted again from its position, too."""
    last, found = None, []
    for txid in range(1, count):
        new, again = Kept(), Kept()
        position = spout.emit_new(Attempt(txid, 0), partition, last, new)
        if position == last or position[0] == position[1]:
            break
        spout.emit_again(Attempt(txid, 1), partition, position, again)
        assert again.rows == new.rows
        found.append(new.rows)
        last = position
    assert spout.finished({partition: last})
    return found


def test_json_lines(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"n": 1, "s": "ä"}\n\n{"s": "x", "other": 0}\n{"n": [1], "s": null}\n')
    spout = JsonLinesSpout.transactional(tmp_path, ["n", "s"], rows=2)
    assert spout.partitions() == ["a.jsonl"]
    assert batches(spout, "a.jsonl") == [[(1, "ä"), (None, "x")], [([1], None)]]


def test_a_file_whose_name_is_no_text_is_named(tmp_path):
    """Transactions are remembered by names of files."""
    write_files(tmp_path, [["a"]])
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("b\n")
    with pytest.raises(UserError, match=rf"{tmp_path} has a file whose name is no UTF-8: caf\\udce9.txt"):
        DirectorySpout.transactional(tmp_path).partitions()


@pytest.mark.parametrize("pattern", ["*/x.txt", "**/*.txt", "/in/*", "**"])
@pytest.mark.parametrize("kind", ["transactional", "opaque_transactional"])
def test_a_pattern_is_of_names_in_the_directory_itself(tmp_path, pattern, kind):
    with pytest.raises(TopologyError, match="JsonLinesSpout: pattern= is of names of files in the directory itself"):
        getattr(JsonLinesSpout, kind)(tmp_path, "n", pattern=pattern)


def test_json_that_is_none(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"n": 1}\nnonsense\n[2]\n{"n": 3}\n')
    with pytest.raises(UserError, match=r"a.jsonl: bytes 9 to 18 are no JSON object: b'nonsense\\n'"):
        batches(JsonLinesSpout.transactional(tmp_path, "n"), "a.jsonl")
    assert batches(JsonLinesSpout.transactional(tmp_path, "n", skip_malformed=True), "a.jsonl") == [[(1,), (3,)]]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"n": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "are no JSON object"),
        (b'{"n": ' + b"[" * 200 + b"]" * 200 + b"}", "have a value that cannot be emitted .list: it is nested more"),
        (b'{"n": "\\ud83d"}', "have a value that cannot be emitted .str: its text is not valid Unicode"),
        (b'{"n": "\xed\xa0\xbd"}', "have a value that cannot be emitted .str: its text is not valid Unicode"),
    ],
    ids=["too deep to read", "too deep", "half a pair", "half a pair as it is"],
)
def test_json_that_no_row_can_have(tmp_path, line, says):
    """The file and the place are said; the same in a field that nobody wants does no harm."""
    whole = b'{"n": "\\ud83d\\ude00"}\n'
    (tmp_path / "a.jsonl").write_bytes(whole + line + b"\n" + '{"n": "ä"}\n'.encode())
    with pytest.raises(UserError, match=f"a.jsonl: bytes {len(whole)} to {len(whole) + len(line) + 1} {says}"):
        batches(JsonLinesSpout.transactional(tmp_path, "n"), "a.jsonl")
    found = batches(JsonLinesSpout.transactional(tmp_path, "n", skip_malformed=True), "a.jsonl")
    assert found == [[("\U0001f600",), ("ä",)]]
    if says != "are no JSON object":
        assert batches(JsonLinesSpout.transactional(tmp_path, "other"), "a.jsonl") == [[(None,)] * 3]


def refused(self, *_):
    raise PermissionError(13, "Permission denied", str(self))


@pytest.mark.parametrize("broken", ["empty", "footer", "page", "closed"])
def test_a_file_that_cannot_be_read_fails_its_batch_and_is_named(tmp_path, monkeypatch, broken):
    """Whether there is more to read is asked in the coordinator, which nobody would start for ever."""
    file = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"n": list(range(1000))}), file)
    data = file.read_bytes()
    damaged = {"empty": b"", "footer": data[:-100], "page": data[:4] + b"\xff" * 400 + data[404:], "closed": data}
    file.write_bytes(damaged[broken])
    if broken == "closed":
        monkeypatch.setattr(Path, "open", refused)
    spout = ParquetSpout.transactional(tmp_path, "n")
    assert spout.is_ready({})
    assert not spout.finished({})
    with pytest.raises(PermissionError if broken == "closed" else UserError, match=str(file)):
        spout.emit_new(Attempt(1, 0), "a.parquet", None, Kept())


def test_without_arrow_no_batch_begins(tmp_path, monkeypatch):
    """The topology ends with the hint; a batch would fail for ever."""
    (tmp_path / "a.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConfigError, match="needs pyarrow"):
        ParquetSpout.transactional(tmp_path, "n").is_ready({})


def test_a_batch_that_needs_a_broken_file_comes_again_until_it_is_whole(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"")
    topology, seen = TridentTopology("parquet"), []
    rows = topology.new_stream("rows", ParquetSpout.transactional(tmp_path, "n"))
    rows.peek(lambda tup: seen.append(tup["n"]))
    with Cluster(topology, config=AT_ONCE) as cluster:
        cluster.run_until(lambda: cluster.record.failed["$mastercoord-bg0"])
        assert f"{tmp_path / 'a.parquet'} cannot be read as Parquet" in Inside(cluster).error("spout-rows-0")
        parquet.write_table(pa.table({"n": [1, 2]}), tmp_path / "a.parquet")
        cluster.run_until(lambda: cluster.over, 600)
        assert (cluster.state, seen) == ("SUCCEEDED", [1, 2])


records = st.lists(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")), min_size=2, max_size=2))


@settings(max_examples=share(50))
@given(records=records, rows=st.integers(1, 3))
def test_csv_whatever_the_values(tmp_path_factory, records, rows):
    folder = tmp_path_factory.mktemp("csv")
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([["b", "a"], *records])
    (folder / "x.csv").write_bytes(text.getvalue().encode())
    found = batches(CsvSpout.transactional(folder, ["a", "b"], rows=rows), "x.csv", 10_000)
    assert [row for batch in found for row in batch] == [(a, b) for b, a in records]
    assert all(len(batch) <= rows for batch in found)


def test_csv_that_grows_and_csv_that_is_wrong(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text('a;b\n1;"two')
    spout, kept = CsvSpout.opaque_transactional(tmp_path, "b", follow=True, delimiter=";"), Kept()
    position = spout.emit_new(Attempt(1, 0), "x.csv", None, kept)
    file.write_text('a;b\n1;"two\nlines"\n2;3')
    position = spout.emit_new(Attempt(2, 0), "x.csv", position, kept)
    file.write_text('a;b\n1;"two\nlines"\n2;3\n')
    spout.emit_new(Attempt(3, 0), "x.csv", position, kept)
    assert kept.rows == [("two\nlines",), ("3",)]
    with pytest.raises(UserError, match="has no column c; it has a, b"):
        batches(CsvSpout.transactional(tmp_path, "c", delimiter=";"), "x.csv")
    file.write_text("a;b\n1\n")
    with pytest.raises(UserError, match="has 1 values, not 2"):
        batches(CsvSpout.transactional(tmp_path, "a", delimiter=";"), "x.csv")


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize(
    ("record", "says"),
    [('"x"y,3', "the record that ends at byte 15 is no CSV: ',' expected after"), ("z" * 200_000, "field larger than")],
)
def test_a_record_that_no_more_lines_can_mend_fails_its_batch(tmp_path, follow, record, says):
    """In a file that is followed, too: the spout would stand still for ever, and nobody knew why."""
    (tmp_path / "x.csv").write_text(f"a,b\n1,2\n{record}\n4,5\n")
    with pytest.raises(UserError, match=says):
        CsvSpout.transactional(tmp_path, "a", follow=follow).emit_new(Attempt(1, 0), "x.csv", None, Kept())


def test_parquet(tmp_path):
    table = pa.table({"n": list(range(25)), "s": [f"s{n}" for n in range(25)], "x": [0] * 25})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    spout = ParquetSpout.transactional(tmp_path, ["s", "n"], rows=7)
    found = batches(spout, "a.parquet")
    assert [len(batch) for batch in found] == [7, 7, 7, 4]
    assert [row for batch in found for row in batch] == [(f"s{n}", n) for n in range(25)]
    with pytest.raises(UserError, match="has no column y"):
        batches(ParquetSpout.transactional(tmp_path, "y"), "a.parquet")


@pytest.mark.parametrize(
    ("make", "written", "more", "rows"),
    [
        (DirectorySpout.transactional, "one\ntw", "o\nthree\n", [("one",), ("tw",)]),
        (lambda path: JsonLinesSpout.transactional(path, "n"), '{"n": 1}\n{"n": 2}', " \n", [(1,), (2,)]),
        (lambda path: CsvSpout.transactional(path, "b"), "a,b\n1,2\n3,4", "5\n6,7\n", [("2",), ("4",)]),
        (lambda path: CsvSpout.transactional(path, "b"), "a,b", ",c\n1,2,3\n", []),
    ],
    ids=["lines", "json", "csv", "header"],
)
def test_a_last_line_that_has_grown_comes_again_as_it_was(tmp_path, make, written, more, rows):
    """Else the batch would fail for ever: no line ends where it has ended."""
    for name in ("x.csv", "x.jsonl"):
        (tmp_path / name).write_text(written)
    spout, new, again = make(tmp_path), Kept(), Kept()
    partition = spout.partitions()[0]
    position = spout.emit_new(Attempt(1, 0), partition, None, new)
    with (tmp_path / partition).open("a") as file:
        file.write(more)
    spout.emit_again(Attempt(1, 1), partition, position, again)
    assert new.rows == again.rows == rows


@pytest.mark.parametrize("seed", range(2))
def test_json_lines_through_kills(tmp_path, seed):
    rng, folder = random.Random(seed), tmp_path / "in"
    folder.mkdir()
    rows = [{"word": rng.choice("abc")} for _ in range(60)]
    for name in (0, 1):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[name::2]))
    topology, counts = TridentTopology("json"), SqliteState.transactional(tmp_path / "counts")
    stream = topology.new_stream("json", JsonLinesSpout.transactional(folder, "word", rows=4)).parallelism_hint(2)
    stream.group_by("word").persistent_aggregate(counts, Count(), "n").parallelism_hint(2)
    with Cluster(topology, containers=2, seed=seed, config=AT_ONCE, cost={"b-0": 0.02}) as cluster:
        for victim in ("spout-json-0", "b-0-0", "$mastercoord-bg0-0"):
            cluster.at(rng.uniform(0.02, 0.6), lambda c, name=victim: c.kill(name))
        cluster.run_until(lambda: cluster.over, 600)
        assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])
    assert sum(counted(counts).values()) == 60


@pytest.mark.parametrize("txid", [1, 2])
@pytest.mark.parametrize(("kind", "state"), [("transactional", "transactional"), ("opaque_transactional", "opaque")])
def test_a_partition_that_vanishes_between_two_attempts(tmp_path, kind, state, txid):
    """The transactional spout waits and says for what; the opaque one commits without it.  Both end up right."""
    plain = write_files(tmp_path / "in", [["a b"] * 4, ["b c"] * 4])
    file, away, left = tmp_path / "in" / "0.txt", tmp_path / "away", [None] * (2 * txid - 1)

    def once(tup):
        if left and tup["line"] == "b c":
            left.pop()
            if not left:
                file.rename(away)
                raise ValueError("and the file is gone")

    topology = TridentTopology("vanish")
    counts = getattr(SqliteState, state)(tmp_path / "counts")
    spout = getattr(DirectorySpout, kind)(tmp_path / "in", lines=2, follow=True)
    stream = topology.new_stream("files", spout).peek(once).each("line", words_of, "word")
    stream.group_by("word").persistent_aggregate(counts, Count(), "n")
    with Cluster(topology, config={**AT_ONCE}) as cluster:
        cluster.run_until(lambda: not left)
        cluster.advance(1.5)
        seen = Counter(counted(counts))
        before = Counter({"a": 2, "b": 4, "c": 2} if txid == 2 else {})
        if kind == "transactional":
            error = Inside(cluster).error("spout-files-0")
            assert f"transaction {txid} needs {8 * txid - 8} to {8 * txid} of partition 0.txt again" in error
            assert seen == before
        else:
            assert seen - before == Counter({"b": 2, "c": 2} if txid == 2 else {"b": 4, "c": 4})
        away.rename(file)
        cluster.run_until(lambda: counted(counts) == plain, 120)

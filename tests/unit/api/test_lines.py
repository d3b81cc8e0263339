"""Files as sources: what is a row, where a reader stands, what is not there any more."""

from __future__ import annotations

import contextlib
import os

import pytest

from ardea import END, JsonLines, Lines, PositionLost
from ardea.errors import TopologyError, UserError
from ardea.testing import check_source


@pytest.fixture
def opened():
    """Opens readers, and closes them."""
    with contextlib.ExitStack() as stack:
        yield lambda source, *where: stack.enter_context(contextlib.closing(source.open(*where)))


def all_of(reader, most=2):
    rows = []
    while (batch := reader.read(most)) is not END and batch:
        assert len(batch) <= most
        rows += batch
    return rows, batch is END


def test_each_file_is_a_partition_and_each_line_a_row(tmp_path, opened):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "a.log").write_bytes("eins\nzwo\r\n\ndrö".encode())
    (tmp_path / "deep" / "er" / "b.log").write_bytes(b"x\n")
    (tmp_path / "other.txt").touch()
    source = Lines([tmp_path / "*.log", tmp_path / "**" / "b.log"])
    names = [str(tmp_path / "a.log"), str(tmp_path / "deep" / "er" / "b.log")]
    assert source.list_partitions() == names
    reader = opened(source, names[0], None)
    assert all_of(reader) == ([("eins",), ("zwo",), ("",), ("drö",)], True)
    assert reader.position() == (tmp_path / "a.log").stat().st_size
    assert check_source(source) == 5


def test_a_bracket_is_a_part_of_the_name(tmp_path):
    (tmp_path / "app[1].log").touch()
    (tmp_path / "app1.log").touch()
    assert Lines(tmp_path / "app[1].*").list_partitions() == [str(tmp_path / "app[1].log")]


def test_json_has_members_and_those_that_are_absent_are_none(tmp_path, opened):
    (tmp_path / "a.jsonl").write_text('{"b": [1], "a": "x"}\n{"a": null}\n' * 40)
    source = JsonLines(tmp_path / "a.jsonl", ["a", "b"])
    reader = opened(source, str(tmp_path / "a.jsonl"), None)
    assert reader.read(3) == [["x", [1]], [None, None], ["x", [1]]]
    assert check_source(source, most=3) == 80


def test_lines_that_are_left_out_are_passed(tmp_path, opened):
    (tmp_path / "a").write_text("".join(f"{number}\n" for number in range(100)))
    source = Lines(tmp_path / "a", ["n"], lambda line: (int(line),) if int(line) % 10 == 0 else None)
    assert all_of(opened(source, str(tmp_path / "a"), None), most=200) == ([(n,) for n in range(0, 100, 10)], True)
    assert check_source(source) == 10


def test_a_file_that_is_followed_gives_whole_lines_and_ends_when_it_is_removed(tmp_path, opened):
    path = tmp_path / "a"
    path.write_bytes(b"one\ntw")
    source = Lines(path, follow=True)
    reader = opened(source, str(path), None)
    assert (reader.read(9), reader.position(), reader.read(9)) == ([("one",)], 4, [])
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    again = opened(source, str(path), 4)
    assert reader.read(9) == again.read(9) == [("two",), ("three",)]
    path.unlink()
    assert reader.read(9) is END


def test_a_file_that_is_removed_is_read_to_its_end(tmp_path, opened, monkeypatch):
    """Also what was appended since the last look at it, and a last line without its end."""
    path = tmp_path / "a"
    path.write_bytes(b"one\n")
    source = Lines(path, follow=True)
    reader = opened(source, str(path), None)
    assert (reader.read(9), reader.read(9)) == ([("one",)], [])
    fstat = os.fstat

    def stands_still(file):
        """As the task may, while others append and remove."""
        monkeypatch.setattr(os, "fstat", fstat)
        with path.open("ab") as appended:
            appended.write(b"two\nthree\nfo")
        path.unlink()
        return fstat(file)

    monkeypatch.setattr(os, "fstat", stands_still)
    assert reader.read(2) == [("two",), ("three",)]
    path.touch()
    assert source.list_partitions() == [str(path)]
    assert (reader.read(2), reader.position(), reader.read(2) is END) == ([("fo",)], 16, True)


def test_what_is_at_a_position_no_more_is_said(tmp_path, opened):
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\n")
    source = Lines(path, follow=True)
    with pytest.raises(PositionLost, match="the file has only 8 bytes"):
        opened(source, str(path), 9)
    reader = opened(source, str(path), 8)
    path.write_bytes(b"")
    with pytest.raises(PositionLost, match="the file has only 0 bytes"):
        reader.read(9)
    path.write_bytes(b"one\ntwo\n")
    reader = opened(source, str(path), 8)
    path.rename(tmp_path / "b")
    path.touch()
    with pytest.raises(PositionLost, match="another file has taken its name"):
        reader.read(9)
    path.unlink()
    with pytest.raises(PositionLost, match="the file is gone"):
        opened(source, str(path), 8)


def test_a_line_that_cannot_be_read_is_named(tmp_path, opened):
    (tmp_path / "a").write_bytes(b'{"a": 1}\n{"a":\n')
    reader = opened(JsonLines(tmp_path / "a", "a"), str(tmp_path / "a"), None)
    with pytest.raises(UserError, match=r"the line at byte 9 of .*/a cannot be emitted: DecodeError: "):
        reader.read(9)
    (tmp_path / "a").write_bytes(b"good\n\xff\n")
    with pytest.raises(UserError, match=r"the line at byte 5 of .*/a cannot be emitted: UnicodeDecodeError: "):
        opened(Lines(tmp_path / "a"), str(tmp_path / "a"), None).read(9)


def test_a_path_is_absolute_and_leads_to_a_file(tmp_path):
    with pytest.raises(TopologyError, match=r"JsonLines: 'orders/\*' is no absolute path"):
        JsonLines(["orders/*", tmp_path], ["a"])
    with pytest.raises(UserError, match=r"there is no file .*/none\*, so that it cannot be read to its end"):
        Lines(tmp_path / "none*").list_partitions()
    assert Lines(tmp_path / "none*", follow=True).list_partitions() == []

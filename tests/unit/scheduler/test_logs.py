"""Log files are found by what people type, and followed across rotations."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import NotFound
from ardea.scheduler import logs
from ardea.scheduler.logs import LocalLogs, Tail, log_files
from ardea.scheduler.schedulers import LogLine
from ardea.supervision.logfile import LogFile


@pytest.fixture
def folder(tmp_path):
    names = ["container-0/logs/topology-master", "logs/supervisor", "logs/container-1"]
    names += ["container-1/logs/stream-manager", "container-1/logs/count-0", "container-2/logs/count-10"]
    names += ["container-2/logs/stream-manager", "container-2/logs/count-2", "container-2/logs/count-er-0"]
    for name in names:
        path = tmp_path / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


@pytest.mark.parametrize(
    ("selection", "labels"),
    [
        ("count", ["count-0", "count-2", "count-10"]),
        ("count:2", ["count-2"]),
        ("count-10", ["count-10"]),
        ("count-er", ["count-er-0"]),
        ("stream-manager", ["container-1/stream-manager", "container-2/stream-manager"]),
        ("supervisor", ["supervisor"]),
    ],
)
def test_selection(folder, selection, labels):
    assert [log.label for log in log_files(folder, selection)] == labels


def test_all_logs(folder):
    assert len(log_files(folder)) == 9


@pytest.mark.parametrize("selection", ["coun", "count:3", "count:", "co.nt"])
def test_unknown_selection_names_what_there_is(folder, selection):
    if selection == "count:":
        assert len(log_files(folder, selection)) == 3
        return
    with pytest.raises(NotFound, match=r"it has .*count, .*stream-manager"):
        log_files(folder, selection)


def test_lines_come_once_and_whole(tmp_path):
    path = tmp_path / "a.log"
    tail = Tail(path)
    assert list(tail.lines()) == []
    path.write_bytes(b"one\ntw")
    assert list(tail.lines()) == ["one"]
    with path.open("ab") as file:
        file.write(b"o\n")
    assert list(tail.lines()) == ["two"]
    assert list(tail.lines()) == []
    tail.close()


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_supervisors_lines_can_be_left_out(tmp_path, form):
    path = tmp_path / "a.log"
    log = LogFile(path, 1 << 20, 2, form)
    log.mark("life 1 started, pid 12")
    log.write(b"hello\n--- a rule ---\n")
    log.mark("in one call of user code for 10.0 s; its stack follows")
    log.mark("life 1 ended: exit 0; not started again")
    log.close()
    with_marks, without = Tail(path), Tail(path, marks=False)
    assert len(list(with_marks.lines())) == 5
    assert list(without.lines()) == ["hello", "--- a rule ---"]
    with_marks.close()
    without.close()


@given(
    writes=st.lists(st.lists(st.text("abc", max_size=8), max_size=4), max_size=30),
    limit=st.integers(10, 60),
    pause=st.integers(1, 20),
)
def test_no_line_is_lost_or_doubled_by_rotation(tmp_path_factory, writes, limit, pause):
    """A reader that looks after each write, or after some, sees every line, in order, whenever the file is rotated."""
    folder = tmp_path_factory.mktemp("rotation")
    log = LogFile(folder / "a.log", limit, 100)
    tail, seldom = Tail(folder / "a.log"), Tail(folder / "a.log")
    seen: list[str] = []
    seen_seldom: list[str] = []
    everything = [line for lines in writes for line in lines]
    for number, line in enumerate(everything):
        log.write(f"{line}\n".encode())
        seen += tail.lines()
        if number % pause == 0:
            seen_seldom += seldom.lines()
    late = Tail(folder / "a.log")
    assert seen == [*seen_seldom, *seldom.lines()] == list(late.lines()) == everything
    for each in (log, tail, seldom, late):
        each.close()


def test_a_reader_that_waits_misses_no_file_from_the_middle(tmp_path):
    """As `ardea logs NAME | less` does: what was there when it began is read, also of files that are gone by then."""
    log = LogFile(tmp_path / "a.log", 3, 3)
    for number in range(10, 13):
        log.write(f"{number}\n".encode())
    tail = Tail(tmp_path / "a.log")
    lines = tail.lines()
    assert next(lines) == "10"
    for number in range(13, 15):
        log.write(f"{number}\n".encode())
    assert list(lines) == ["11", "12", "13", "14"]
    for each in (log, tail):
        each.close()


def test_a_reader_that_was_overtaken_goes_on_with_the_oldest_file(tmp_path):
    """Also with one file, which is no other's successor by its name."""
    for kept, shown in ((3, ["12", "13", "14"]), (1, ["14"])):
        log = LogFile(tmp_path / f"{kept}.log", 3, kept)
        log.write(b"10\n")
        tail = Tail(tmp_path / f"{kept}.log")
        assert list(tail.lines()) == ["10"]
        for number in range(11, 15):
            log.write(f"{number}\n".encode())
        assert list(tail.lines()) == shown
        for each in (log, tail):
            each.close()


@pytest.mark.parametrize("rotations", [1, 2])
def test_a_rotation_while_files_are_opened_doubles_and_drops_none(tmp_path, monkeypatch, rotations):
    log, real = LogFile(tmp_path / "a.log", 3, 9), os.open
    numbers = iter(range(10, 99))
    log.write(f"{next(numbers)}\n".encode())
    log.write(f"{next(numbers)}\n".encode())
    left = [rotations]

    def opened(path, *flags):
        found = real(path, *flags)
        for _ in range(left.pop() if left else 0):
            log.write(f"{next(numbers)}\n".encode())
        return found

    monkeypatch.setattr(logs.os, "open", opened)
    tail = Tail(tmp_path / "a.log")
    assert list(tail.lines()) == [str(number) for number in range(10, 12 + rotations)]
    for each in (log, tail):
        each.close()


def test_lines_can_wait(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(b"".join(b"%06d\n" % number for number in range(50_000)))
    tail, blocks = Tail(path), []
    while block := list(tail.lines(most=100_000)):
        blocks.append(block)
    assert max(map(len, blocks)) < 20_000
    assert [line for block in blocks for line in block] == [f"{number:06}" for number in range(50_000)]
    tail.close()


@given(
    writes=st.lists(st.text("ab\n", min_size=1, max_size=30), max_size=30),
    most=st.integers(0, 12),
    chunk=st.integers(1, 7),
)
def test_the_last_lines_are_those_of_the_whole_log(tmp_path_factory, writes, most, chunk):
    """Whatever was rotated, and however it is read; what is written later comes as if all had been read."""
    folder = tmp_path_factory.mktemp("last")
    log = LogFile(folder / "a.log", 25, 100)
    for text in writes:
        log.write(text.encode())
    whole = Tail(folder / "a.log")
    everything = list(whole.lines())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "_CHUNK", chunk)
        tail = Tail(folder / "a.log")
        last = tail.last(most)
        assert last == (everything[-most:] if most else [])
        log.write(b"\nlater\n")
        later = list(tail.lines())
        log.close()
    assert later == list(whole.lines())
    whole.close()
    tail.close()


def test_since_begins_with_a_record_that_is_young_enough(tmp_path):
    old, young = (time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - ago)) for ago in (3600, 10))
    path = tmp_path / "logs" / "master.log"
    path.parent.mkdir()
    path.write_text(f"{old},000 INFO a: old\nprinted\n{young},000 INFO a: young\nprinted later\n")
    found = [line.text for line in LocalLogs(tmp_path).lines(since=60) if line is not None]
    assert found == [f"{young},000 INFO a: young", "printed later"]
    assert [line.text for line in LocalLogs(tmp_path).lines(tail=1) if line is not None] == ["printed later"]


def test_a_line_that_is_half_written_is_told_whole(tmp_path, monkeypatch):
    """Also where nothing of what is there is asked for."""
    path = tmp_path / "logs" / "master.log"
    path.parent.mkdir()
    path.write_bytes(b"one\ntw")
    monkeypatch.setattr(logs, "is_held", lambda _: True)
    found = LocalLogs(tmp_path, pause=lambda _: path.write_bytes(b"one\ntwo\n")).lines(follow=True, tail=0)
    assert (next(found), next(found)) == (None, LogLine("master", "two"))
    found.close()


@pytest.mark.parametrize(("written", "shown"), [(30, ["printed 2", "printed 3"]), (120, [])])
def test_since_shows_what_a_process_without_young_records_prints(tmp_path, monkeypatch, written, shown):
    """Only if its log was written within that time, and not without an end."""
    monkeypatch.setattr(logs, "MOST_PRINTED", 2)
    old = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - 3600))
    path = tmp_path / "logs" / "count.log"
    path.parent.mkdir()
    path.write_text(f"{old},000 INFO a: old\nprinted 1\nprinted 2\nprinted 3\n")
    os.utime(path, (time.time() - written, time.time() - written))
    assert [line.text for line in LocalLogs(tmp_path).lines(since=60) if line is not None] == shown


@pytest.fixture
def moved(tmp_path):
    """The folder of a topology whose task an update has moved from container 2 to 1."""
    for container, text, at in ((1, "new 1\nnew 2\n", 2000), (2, "old 1\nold 2\n", 1000)):
        path = tmp_path / f"container-{container}" / "logs" / "count-0.log"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        os.utime(path, (at, at))
    return tmp_path


@pytest.mark.parametrize(
    ("tail", "shown"),
    [
        (None, ["old 1", "old 2", "new 1", "new 2"]),
        (0, []),
        (1, ["new 2"]),
        (3, ["old 2", "new 1", "new 2"]),
        (9, ["old 1", "old 2", "new 1", "new 2"]),
    ],
)
def test_a_task_that_has_moved_is_one_process_with_the_lines_of_all_its_places(moved, tail, shown):
    found = LocalLogs(moved)
    assert found.names() == found.names("count:0") == ["count-0"]
    assert list(found.lines("count:0", tail=tail)) == [LogLine("count-0", line) for line in shown]


@pytest.mark.parametrize(
    ("most", "newest"), [(4, b"w 2\n"), (12, b"new 1\nnew 2\n"), (15, b" 2\nnew 1\nnew 2\n"), (99, None)]
)
def test_the_newest_bytes_are_those_of_the_last_place_first(moved, most, newest):
    assert LocalLogs(moved).newest("count-0", most) == (newest or b"old 1\nold 2\nnew 1\nnew 2\n")


def test_a_task_that_moves_is_followed(moved, monkeypatch):
    monkeypatch.setattr(logs, "is_held", lambda _: True)
    other = moved / "container-3" / "logs" / "count-0.log"

    def pause(_seconds):
        other.parent.mkdir(parents=True)
        other.write_text("newer\n")

    found = LocalLogs(moved, pause=pause).lines("count:0", follow=True, tail=1)
    assert [next(found) for _ in range(3)] == [LogLine("count-0", "new 2"), None, LogLine("count-0", "newer")]
    found.close()

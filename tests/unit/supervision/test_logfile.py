"""The log file of a process."""

from __future__ import annotations

import errno
import itertools
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.supervision import logfile
from ardea.supervision.logfile import LogFile, StandardOutput


def kept(path: Path) -> list[bytes]:
    """Contents, oldest first."""
    numbered = sorted(path.parent.glob(f"{path.name}.*"), key=lambda p: -int(p.suffix[1:]))
    return [p.read_bytes() for p in [*numbered, path]]


@given(st.lists(st.lists(st.sampled_from([b"a", b"\n", b"bcdefgh"]), max_size=8).map(b"".join), max_size=12))
def test_nothing_is_lost_no_line_is_cut_no_file_too_long(chunks):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.log"
        log = LogFile(path, limit=20, files=200)
        for chunk in chunks:
            log.write(chunk)
        log.close()
        files = kept(path)
        assert b"".join(files) == b"".join(chunks)
        assert all(text.endswith(b"\n") for text in files[:-1])
        longest = max((len(line) + 1 for line in b"".join(chunks).split(b"\n")), default=0)
        # a line that comes in pieces may have begun near the end of a file
        assert all(len(text) < 20 + longest for text in files)


def test_only_so_many_files_are_kept(tmp_path):
    log = LogFile(tmp_path / "a.log", limit=10, files=3)
    for number in range(10):
        log.write(b"line %04d\n" % number)
    log.close()
    assert kept(tmp_path / "a.log") == [b"line 0007\n", b"line 0008\n", b"line 0009\n"]


def test_a_single_file_starts_over(tmp_path):
    log = LogFile(tmp_path / "a.log", limit=10, files=1)
    log.write(b"line 0000\nline 0001\n")
    log.close()
    assert kept(tmp_path / "a.log") == [b"line 0001\n"]


def test_a_mark_stands_on_its_own_line_also_after_a_restart(tmp_path):
    log = LogFile(tmp_path / "a.log", limit=1000, files=2)
    log.write(b"half")
    log.close()
    log = LogFile(tmp_path / "a.log", limit=1000, files=2)
    log.mark("life 2 started, pid 1")
    log.mark("life 2 ended: exit 0")
    log.close()
    assert kept(tmp_path / "a.log") == [b"half\n--- life 2 started, pid 1 ---\n--- life 2 ended: exit 0 ---\n"]


def test_the_supervisors_lines_as_json(tmp_path):
    log = LogFile(tmp_path / "a.log", limit=1000, files=2, form="json", wall=lambda: 1.5)
    log.write(b"half")
    log.mark("life 2 started, pid 1")
    log.close()
    half, line = kept(tmp_path / "a.log")[0].splitlines()
    assert half == b"half"
    assert json.loads(line)["message"] == "life 2 started, pid 1"


def test_a_full_disk_costs_lines_and_the_log_says_how_many_bytes(tmp_path, monkeypatch):
    room = 10

    def write(fd, data):
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken, room = min(room, len(data)), max(0, room - len(data))
        return real(fd, data[:taken])

    real = os.write
    monkeypatch.setattr(logfile.os, "write", write)
    log = LogFile(tmp_path / "a.log", limit=1000, files=2)
    log.write(b"line 0\nline 1\n")
    log.write(b"line 2\n")
    room = 1000
    log.write(b"line 3\n")
    log.write(b"line 4\n")
    log.close()
    notice = b"--- 11 bytes of output lost: the log could not be written ---"
    assert kept(tmp_path / "a.log") == [b"line 0\nlin\n%s\nline 3\nline 4\n" % notice]


@given(st.lists(st.integers(0, 9).map(lambda n: b"x" * n + b"\n"), max_size=60))
def test_the_last_whole_lines_of_standard_output_are_kept_and_repeated(lines):
    with (
        tempfile.TemporaryDirectory() as folder,
        (Path(folder) / "out").open("w+b") as out,
        pytest.MonkeyPatch.context() as m,
    ):
        m.setattr(logfile, "KEPT", 20)
        log = StandardOutput(Path(folder) / "logs" / "a.log", out.fileno())
        log.repeat()
        for line in lines:
            log.write(line)
        log.keep()
        log.repeat()
        everything, kept_ = b"".join(lines), (Path(folder) / "logs" / "a.log").read_bytes()
        assert (Path(folder) / "out").read_bytes() == everything + kept_
        whole = itertools.accumulate(reversed(lines), lambda after, line: line + after, initial=b"")
        assert kept_ == max((tail for tail in whole if len(tail) <= 20), key=len)

"""Files of a sink's rows say whose they are, and anything else is refused by name."""

from __future__ import annotations

import pytest

from ardea.errors import StateError, UserError
from ardea.snapshots.marks import Mark
from ardea.snapshots.rows_file import FORMAT, encode_rows, head_of, mark_of, rows_of

MARK = Mark("words-1", "sink", 3, 1 << 32 | 7)
FIXTURE = bytes.fromhex(
    "4152444541524f57 01000000 18000000 94a7776f7264732d31a473696e6b03cf0000000100000007"
    "0d000000 9292a56865726f6e0292a16103"
)
"""Of format 1."""


def content():
    return head_of(MARK) + encode_rows([("heron", 2), ("a", 3)], "sink")


def test_what_was_written_is_read():
    assert mark_of(content(), "f") == MARK
    assert mark_of(content()[: len(head_of(MARK)) + 1], "f") == MARK, "the rows need not be there"
    assert list(rows_of(content(), "f")) == [("heron", 2), ("a", 3)]
    assert MARK.owner == "words-1/sink/3"


def test_format_1_is_read_and_written():
    assert (FORMAT, content()) == (1, FIXTURE)


@pytest.mark.parametrize(
    ("bytes_", "said"),
    [
        (b"", "cannot be read"),
        (b"ARDEASNP" + FIXTURE[8:], "is no file of a sink's rows"),
        (FIXTURE[:8] + b"\x09" + FIXTURE[9:], "is of format 9, and this Ardea reads format 1"),
        (FIXTURE[:-3], "ends in the middle of its rows"),
        (FIXTURE[:12], "cannot be read: it does not say whose rows it has"),
        (FIXTURE[:-1] + b"\xc1", "cannot be read"),
    ],
)
def test_what_is_damaged_is_named(bytes_, said):
    with pytest.raises(StateError, match=f"f {said}"):
        list(rows_of(bytes_, "f"))


def test_a_value_that_cannot_be_stored_is_named():
    with pytest.raises(UserError, match="the sink out got a set, as value 1 of a row, which cannot be stored"):
        encode_rows([("heron", {1})], "out")

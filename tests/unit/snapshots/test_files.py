"""What lies in the store of snapshots: every value comes back, and what is damaged is named."""

from __future__ import annotations

import datetime as dt
import queue
import uuid
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from xxhash import xxh3_64_intdigest

from ardea.backends.values import Packed
from ardea.errors import StateError, UserError
from ardea.heron_instance.storage import Storage
from ardea.snapshots.folder import Folder
from ardea.snapshots.manifest import (
    FORMAT,
    FORMATS,
    File,
    Manifest,
    Part,
    decode_manifest,
    encode_manifest,
    manifest_name,
)
from ardea.snapshots.pieces import HEAD, Heads, Kind, Stored, pack
from ardea.snapshots.state_file import Content, Piece, decode_state, encode_piece

FIXTURES = Path(__file__).parent / "fixtures"
PIECES = [
    Piece("counts", Kind.PUT, range(3, 9), [("heron", 3), (("a", 1), b"\x00")]),
    Piece("counts", Kind.PACKED, range(3, 9), [(None, Packed.of({"sum": 2.5, "seen": [1, 2]}))]),
    Piece("counts", Kind.GONE, range(3, 9), [("egret",), (("a", 2),)]),
    Piece("position", Kind.ONE, range(0), [(41,)]),
    Piece("typed", Kind.PUT, range(3, 9), [(dt.datetime(2026, 11, 27, tzinfo=dt.UTC), Decimal("1.50"))]),
    Piece("typed", Kind.PUT, range(3, 9), [(uuid.UUID(int=7), dt.timedelta(days=1))]),
]
STATE = HEAD + b"".join(map(encode_piece, PIECES))
SINCE_2 = [
    Piece("aged", Kind.PUT, range(3, 9), [("heron", 3)], 1795838400.5),
    Piece("orders", Kind.PACKED, range(3, 9), [("a", b"m" + msgspec.msgpack.encode({"item": "a", "amount": 2}))]),
]
"""What format 1 does not have."""
LISTED = Manifest(
    number=(2 << 32) + 5,
    timeline=3,
    parts={1: Part("count", 0, (File("t1/2.3/1-4.base", 99, 12), File("t3/2.5/1-4.delta", 98, 11)))},
)


def test_all_that_a_state_may_hold_comes_back():
    found = list(decode_state(STATE, "f"))
    assert [piece[:3] for piece in found] == [piece[:3] for piece in PIECES]
    assert [piece.rows for piece in found[3:]] == [piece.rows for piece in PIECES[3:]]
    assert found[0].rows == [("heron", 3), (["a", 1], b"\x00")]
    assert Packed(found[1].rows[0][1]).unpacked() == {"sum": 2.5, "seen": [1, 2]}


@pytest.mark.parametrize(
    ("wanted", "all_there"), [((0, 3), False), ((0, 4), True), ((8, 20), True), ((9, 20), False), ((5, 6), True)]
)
def test_pieces_of_other_key_groups_are_passed_over(wanted, all_there):
    found = {piece.state for piece in decode_state(STATE, "f", range(*wanted))}
    assert found == ({"counts", "typed", "position"} if all_there else {"position"})


def test_a_pickle_is_never_stored():
    with pytest.raises(UserError, match="state 'counts' holds at 'a' a object, which cannot be stored"):
        encode_piece(Piece("counts", Kind.PUT, range(720), [("a", object())]))


DAMAGED = [b"", b"ARDEA", b"x" * 40, STATE[:-3], HEAD + b"z", HEAD + b"\1\0\0\0z"]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_named(content):
    with pytest.raises(StateError, match="t1/f"):
        list(decode_state(content, "t1/f"))


NAMES = ["counts", "ü" * 20, "a" * 300]
"""Whose lengths msgpack writes in three ways."""


def in_parts(content, size):
    return [content[place : place + size] for place in range(0, len(content), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 1000, 100_000])
def test_the_states_of_a_file_that_passes_by_are_known_however_it_is_cut(size):
    named = HEAD + b"".join(encode_piece(Piece(name, Kind.ONE, range(0), [("x" * 500,)])) for name in NAMES)
    files = [STATE, HEAD, named, *((FIXTURES / f"format-{number}" / "1-4.base").read_bytes() for number in FORMATS)]
    for content in files:
        heads = Heads("f")
        assert b"".join(heads.passing(in_parts(content, size))) == content
        assert heads.found == {piece.state: piece.kind for piece in decode_state(content, "f")}


@pytest.mark.parametrize("size", [1, 3, 100_000])
@pytest.mark.parametrize("content", [*DAMAGED, STATE[:-200], HEAD + pack(Stored("a", 9, 0, 0, b""))])
def test_a_damaged_file_that_passes_by_is_named_when_all_of_it_has_passed(content, size):
    parts = iter(in_parts(content, size))
    with pytest.raises(StateError, match="t1/f"):
        list(Heads("t1/f").passing(parts))
    assert list(parts) == []


def test_a_file_of_another_format_says_which():
    with pytest.raises(StateError, match=f"format 9, and this Ardea reads formats up to {FORMAT}"):
        list(decode_state(HEAD[:8] + (9).to_bytes(4, "little"), "f"))
    with pytest.raises(StateError, match=f"format 9, and this Ardea reads formats up to {FORMAT}"):
        list(Heads("f").passing([HEAD[:8], (9).to_bytes(4, "little")]))


def test_what_was_written_is_counted_and_has_a_checksum():
    content = Content([b"he", b"ron"])
    assert b"".join(content) == b"heron"
    assert (content.bytes, content.checksum) == (5, xxh3_64_intdigest(b"heron"))


def test_a_manifest_comes_back():
    for listed in (LISTED, msgspec.structs.replace(LISTED, final=True)):
        assert decode_manifest(encode_manifest(listed), LISTED.number) == listed


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cannot be read"),
        (encode_manifest(LISTED)[:-30], "cannot be read"),
        (encode_manifest(LISTED)[:-4], "cut or damaged"),
        (encode_manifest(LISTED).partition(b"\n")[0], "cut or damaged"),
        (encode_manifest(LISTED).replace(b'"format":3', b'"format":2'), "cut or damaged"),
        (encode_manifest(LISTED).replace(b'"format":3', b'"format":9'), "format 9"),
        (encode_manifest(Manifest(number=7, timeline=1, parts={})), "is of another one, 0.7.manifest"),
    ],
)
def test_a_manifest_that_is_none_is_named(content, says):
    with pytest.raises(StateError, match=r"2\.5\.manifest") as caught:
        decode_manifest(content, LISTED.number)
    assert says in caught.value.message


def test_a_manifest_in_which_a_bit_has_flipped_is_never_taken_for_whole():
    """A name of another component would be one that begins anew."""
    content = bytearray(encode_manifest(LISTED))
    for bit in range(8 * (len(content) - 1)):  # the last byte ends the line of the checksum
        content[bit // 8] ^= 1 << bit % 8
        with pytest.raises(StateError):
            decode_manifest(bytes(content), LISTED.number)
        content[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize("number", FORMATS)
def test_files_of_each_format_can_be_read(number):
    """What this format's first version has written: a change that cannot read it raises the number."""
    folder = FIXTURES / f"format-{number}"
    manifest = decode_manifest((folder / manifest_name(LISTED.number)).read_bytes(), LISTED.number)
    assert manifest == msgspec.structs.replace(LISTED, format=number)
    pieces = [*PIECES, *SINCE_2] if number > 1 else PIECES
    expected = decode_state(HEAD + b"".join(map(encode_piece, pieces)), "f")
    assert list(decode_state((folder / "1-4.base").read_bytes(), "f")) == list(expected)


def test_a_folder_keeps_what_was_written(tmp_path):
    folder = Folder.beside(str(tmp_path), "words-1")
    folder.write("t1/0.1/1-1.state", [b"con", b"tent"])
    assert folder.read("t1/0.1/1-1.state") == b"content"
    assert folder.names() == ["t1/0.1/1-1.state"]
    with pytest.raises(FileNotFoundError):
        folder.read("t1/0.1/2-1.state")


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "t1").write_text("a file where a folder would be")
    with pytest.raises(OSError, match="t1"):
        Folder(tmp_path).write("t1/0.1/1-1.state", [b"content"])
    assert [path.name for path in tmp_path.rglob("*")] == ["t1"]


def test_two_may_write_the_same_file_and_it_is_whole_whoever_ends_first(tmp_path):
    """As two masters do that copy one savepoint; in two pods they may have the same pid."""
    folder, seen = Folder(tmp_path), []

    def content():
        yield b"con"
        folder.write("a", [b"con", b"tent"])
        seen.append(folder.read("a"))
        yield b"tent"

    folder.write("a", content())
    assert (seen, folder.read("a"), folder.names()) == ([b"content"], b"content", ["a"])


def test_what_is_deleted_leaves_no_empty_folder(tmp_path):
    folder = Folder(tmp_path)
    for name in ("t1/0.1/1-1.base", "t1/0.2/1-1.delta", "t2/0.3/1-1.delta", "0.1.manifest"):
        folder.write(name, [b"content"])
    folder.delete(["t1/0.1/1-1.base", "t2/0.3/1-1.delta", "0.1.manifest", "t9/0.1/none"])
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "t1",
        "t1/0.2",
        "t1/0.2/1-1.delta",
    ]


def test_a_folder_that_is_not_there_holds_nothing_and_one_that_is_none_cannot_be_listed(tmp_path):
    assert Folder(tmp_path / "none").names() == []
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(NotADirectoryError):
        Folder(tmp_path / "file").names()


def test_a_task_hears_from_the_writing_thread_what_became_of_its_file(tmp_path):
    said = queue.SimpleQueue()
    storage = Storage(lambda: Folder(tmp_path))
    (tmp_path / "t2").write_text("a file where a folder would be")

    def refused():
        yield b"begun"
        raise UserError("a value cannot be stored")

    storage.write("t1/a", [b"content"], said.put)
    storage.write("t2/b", [b"content"], said.put)
    storage.write("t1/c", refused(), said.put)
    assert said.get(timeout=10.0) is None
    assert isinstance(said.get(timeout=10.0), OSError)
    assert said.get(timeout=10.0).message == "a value cannot be stored"
    assert storage.read("t1/a") == b"content"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "t1", "t2"]

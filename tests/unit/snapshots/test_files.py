"""What lies in the store of snapshots: every value comes back, and what is damaged is named."""

from __future__ import annotations

import datetime as dt
import queue
import uuid
from decimal import Decimal
from pathlib import Path

import pytest

from ardea.errors import EncodingError, StateError
from ardea.heron_instance.storage import FolderStorage
from ardea.snapshots.folder import Folder
from ardea.snapshots.manifest import (
    FORMAT,
    File,
    Manifest,
    decode_manifest,
    encode_manifest,
    manifest_name,
)
from ardea.snapshots.state_file import decode_state, encode_state

FIXTURES = Path(__file__).parent / "fixtures"
TABLES = {
    "counts": [("heron", 3), (("a", 1), {"sum": 2.5, "seen": [1, 2]}), (None, b"\x00")],
    "position": [(41,)],
    "typed": [(dt.datetime(2026, 11, 27, tzinfo=dt.UTC), Decimal("1.50")), (uuid.UUID(int=7), dt.timedelta(days=1))],
}
LISTED = Manifest(number=(2 << 32) + 5, timeline=3, files={1: File("t3/2.5/1-4.state", 99, 12)})


def test_all_that_a_state_may_hold_comes_back():
    tables = decode_state(encode_state(TABLES), "f")
    assert tables["position"] == [(41,)]
    assert tables["typed"] == TABLES["typed"]
    assert tables["counts"][1] == (["a", 1], {"sum": 2.5, "seen": [1, 2]})


def test_a_pickle_is_never_stored():
    with pytest.raises(EncodingError, match="object"):
        encode_state({"counts": [("a", object())]})


@pytest.mark.parametrize("content", [b"", b"ARDEA", b"x" * 40, encode_state(TABLES)[:-3], encode_state({})[:12] + b"z"])
def test_a_damaged_file_is_named(content):
    with pytest.raises(StateError, match="t1/f"):
        decode_state(content, "t1/f")


def test_a_file_of_another_format_says_which():
    content = encode_state({})
    with pytest.raises(StateError, match=f"format 9, and this Ardea reads format {FORMAT}"):
        decode_state(content[:8] + (9).to_bytes(4, "little") + content[12:], "f")


def test_a_manifest_comes_back():
    assert decode_manifest(encode_manifest(LISTED), LISTED.number) == LISTED


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cannot be read"),
        (encode_manifest(LISTED)[:-4], "cannot be read"),
        (encode_manifest(LISTED).replace(b'"format":1', b'"format":9'), "format 9"),
        (encode_manifest(Manifest(number=7, timeline=1, files={})), "is of another one, 0.7.manifest"),
    ],
)
def test_a_manifest_that_is_none_is_named(content, says):
    with pytest.raises(StateError, match=r"2\.5\.manifest") as caught:
        decode_manifest(content, LISTED.number)
    assert says in caught.value.message


def test_files_of_each_format_can_be_read():
    """What this format's first version has written: a change that cannot read it raises the number."""
    folder = FIXTURES / f"format-{FORMAT}"
    manifest = decode_manifest((folder / manifest_name(LISTED.number)).read_bytes(), LISTED.number)
    assert manifest == LISTED
    assert decode_state((folder / "1-4.state").read_bytes(), "f") == decode_state(encode_state(TABLES), "f")


def test_a_folder_keeps_what_was_written(tmp_path):
    folder = Folder.beside(str(tmp_path), "words-1")
    folder.write("t1/0.1/1-1.state", b"content")
    assert folder.read("t1/0.1/1-1.state") == b"content"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["1-1.state"]
    with pytest.raises(FileNotFoundError):
        folder.read("t1/0.1/2-1.state")


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "t1").write_text("a file where a folder would be")
    with pytest.raises(OSError, match="t1"):
        Folder(tmp_path).write("t1/0.1/1-1.state", b"content")
    assert [path.name for path in tmp_path.rglob("*")] == ["t1"]


def test_a_task_hears_from_the_writing_thread_what_became_of_its_file(tmp_path):
    said = queue.SimpleQueue()
    storage = FolderStorage(Folder(tmp_path))
    (tmp_path / "t2").write_text("a file where a folder would be")
    storage.write("t1/a", b"content", said.put)
    storage.write("t2/b", b"content", said.put)
    assert said.get(timeout=10.0) == ""
    assert said.get(timeout=10.0).startswith("t2/b cannot be stored: ")
    assert storage.read("t1/a") == b"content"

"""Where snapshots are kept: a folder, or a file system of pyarrow; what cannot be used is said in one sentence."""

import contextlib
import os
import queue
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow import fs

from ardea.errors import UserError
from ardea.heron_instance.storage import Storage
from ardea.snapshots import objects
from ardea.snapshots.folder import Folder
from ardea.snapshots.objects import AT_ONCE, Objects
from ardea.snapshots.place import check, check_named, check_shown, files_at


@pytest.fixture(params=["folder", "file system of pyarrow"])
def files(request, tmp_path):
    return (
        Folder.under(str(tmp_path), "words-1")
        if request.param == "folder"
        else Objects(f"file://{tmp_path}", "words-1")
    )


def test_what_was_written_is_listed_read_and_deleted(files, tmp_path):
    """Two topologies in one place do not see one another."""
    Folder.under(str(tmp_path), "words-2").write("0.1.manifest", [b"another's"])
    assert files.names() == []
    for name in ("t1/0.1/1-1.base", "t1/0.2/1-1.delta", "0.1.manifest"):
        files.write(name, [b"con", b"tent"])
    assert sorted(files.names()) == ["0.1.manifest", "t1/0.1/1-1.base", "t1/0.2/1-1.delta"]
    assert files.read("t1/0.1/1-1.base") == b"content"
    assert (files.read("t1/0.1/1-1.base", 3), files.read("t1/0.1/1-1.base", 100)) == (b"con", b"content")
    assert list(files.parts("t1/0.1/1-1.base", 3)) == [b"con", b"ten", b"t"]
    files.delete(["t1/0.1/1-1.base", "0.1.manifest", "t9/none"], over=True)
    assert files.names() == ["t1/0.2/1-1.delta"]
    assert not (tmp_path / "words-1" / "t1" / "0.1").exists()
    with pytest.raises(FileNotFoundError):
        files.read("t1/0.1/1-1.base")
    with pytest.raises(FileNotFoundError):
        list(files.parts("t1/0.1/1-1.base", 3))


class Slow:
    """A store with so many files; what one deletes waits for others, and is gone by then."""

    type_name = "s3"

    def __init__(self, together):
        self.together, self.asked = threading.Barrier(together), []

    def get_file_info(self, what):
        return SimpleNamespace(type=fs.FileType.File) if isinstance(what, str) else [what]

    def delete_file(self, path):
        self.asked.append(path)
        self.together.wait(timeout=20.0)
        raise FileNotFoundError(path)


def test_of_what_is_written_only_so_much_waits_to_be_sent(tmp_path, monkeypatch):
    """A stream of pyarrow sends in the background, and keeps what it is given until that is sent."""

    class Stream(contextlib.nullcontext):
        waits, most, written = 0, 0, 0

        def write(self, part):
            self.waits, self.written = self.waits + len(part), self.written + len(part)
            self.most = max(self.most, self.waits)

        def flush(self):
            self.waits = 0

    stream = Stream()
    stream.enter_result = stream
    monkeypatch.setattr(objects, "UNSENT", 10)
    files = Objects(f"file://{tmp_path}", "words-1")
    files._system = SimpleNamespace(type_name="s3", open_output_stream=lambda _: stream)
    files.write("large", (b"four" for _ in range(50)))
    assert (stream.written, stream.most) == (200, 12)


def test_files_are_deleted_many_at_a_time_and_one_that_is_gone_meanwhile_is_as_good_as_deleted(tmp_path):
    objects = Objects(f"file://{tmp_path}", "words-1")
    objects._system = Slow(AT_ONCE)
    names = [f"t1/0.1/{number}-1.base" for number in range(3 * AT_ONCE)]
    objects.delete(names)
    assert sorted(objects._system.asked) == sorted(f"{tmp_path}/words-1/{name}" for name in names)


class Bucket:
    """What is in a folder of it has come there since the folder was listed: it was on its way."""

    type_name = "s3"

    def __init__(self):
        self._system = fs.LocalFileSystem()

    def __getattr__(self, name):
        return getattr(self._system, name)

    def get_file_info(self, what):
        of_a_folder = isinstance(what, fs.FileSelector) and not what.recursive
        return [] if of_a_folder else self._system.get_file_info(what)


def test_a_file_that_comes_into_a_folder_as_it_is_emptied_stays(tmp_path):
    """To delete a folder of a bucket is to delete whatever is in it by then."""
    objects = Objects(f"file://{tmp_path}", "words-1")
    for name in ("t1/0.1/1-1.base", "t1/0.1/2-1.base"):
        objects.write(name, [b"content"])
    objects._system = Bucket()
    objects.delete(["t1/0.1/1-1.base"])
    assert objects.names() == ["t1/0.1/2-1.base"]


def test_what_was_written_is_on_disk_with_each_folder_above_it(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    place = tmp_path / "words-1"
    for name in ("t5/1.40/count-0.base", "t5/1.40/count-1.base", "1.40.manifest"):
        synced.clear()
        Folder.under(str(tmp_path), "words-1").write(name, [b"some"])
        parents = [place / parent for parent in Path(name).parents]
        assert synced == [each.stat().st_ino for each in (place / name, *parents)]


def test_a_place_that_works_is_left_as_it_was(files):
    check(files)
    assert files.names() == []


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "words-1").write_text("a file where a folder would be")
    with pytest.raises(
        UserError, match=rf"snapshots cannot be kept at {tmp_path}/words-1: a file could not be written"
    ):
        check(Folder.under(str(tmp_path), "words-1"))


class Forgetful(Folder):
    def names(self):
        return []


def test_a_place_that_does_not_show_what_was_written_cannot_be_used(tmp_path):
    with pytest.raises(UserError, match="is not listed"):
        check(Forgetful(tmp_path))


@pytest.mark.parametrize(
    ("storage", "state", "is_folder"),
    [
        (None, "file:///state", True),
        ("/snapshots", "zookeeper://zk:2181", True),
        ("file:///snapshots", "file:///state", True),
        ("mock://snapshots", "zookeeper://zk:2181", False),
    ],
)
def test_by_default_snapshots_lie_beside_a_state_in_a_folder(storage, state, is_folder):
    assert isinstance(files_at(storage, state, "words-1"), Folder) == is_folder


def test_a_state_manager_that_keeps_no_files_needs_a_place_by_name():
    with pytest.raises(
        UserError, match=r"topology\.stateful\.storage is not set, and the state lies at zookeeper://zk"
    ):
        check_named(None, "zookeeper://zk:2181")


@pytest.mark.parametrize("user", ["AKID:SECRET", "AKID:SE/CR+ET", ":SECRET", "container:SECRET", "u:"])
def test_a_password_does_not_belong_in_an_address(user):
    with pytest.raises(UserError, match="--to has a password") as raised:
        check_shown(f"s3://{user}@bucket/folder", "--to")
    assert user not in str(raised.value)
    assert "heron.kubernetes.env.from" in raised.value.hint


@pytest.mark.parametrize(
    "address",
    [
        None,
        "/a:b@c",
        "file:///a:b@c",
        "s3://bucket/a:b@c?endpoint_override=u:p@h",
        "abfs://container@account.dfs.core.windows.net/folder",
        "hdfs://me@namenode:8020/folder/a@b",
        "hdfs://namenode:8020/a@b",
        "gs://anonymous@bucket/folder",
    ],
)
def test_a_user_alone_may_be_named(address):
    check_shown(address, "--to")


@pytest.mark.parametrize("address", ["nonsense://there", "://"])
def test_an_address_of_no_file_system_is_refused(address):
    with pytest.raises(UserError, match=r"topology\.stateful\.storage = .* cannot be used"):
        files_at(address, "file:///state", "words-1")


def test_a_store_that_cannot_be_reached_as_it_is_opened_is_opened_by_a_later_call(tmp_path, monkeypatch):
    """A bucket without a region is asked for it then; a task goes on once the network is there."""
    answers = [OSError("no network"), OSError("no network"), (fs.LocalFileSystem(), str(tmp_path))]

    def from_uri(_):
        if isinstance(answer := answers.pop(0), OSError):
            raise answer
        return answer

    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=from_uri))
    storage, said = Storage(lambda: files_at("s3://bucket/folder", "file:///state", "words-1")), queue.SimpleQueue()
    with pytest.raises(OSError, match="no network"):
        storage.read("t1/a")
    for _ in range(2):
        storage.write("t1/a", [b"content"], said.put)
    assert isinstance(said.get(timeout=10.0), OSError)
    assert said.get(timeout=10.0) is None
    assert storage.read("t1/a") == b"content"


def test_without_pyarrow_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="needs pyarrow") as caught:
        files_at("s3://bucket/folder", "file:///state", "words-1")
    assert "ardea[arrow]" in caught.value.hint

"""The driver's folder over HTTP: real sockets, no Spark."""

from __future__ import annotations

import contextlib
import functools
import http.client
import socket
import time
from types import SimpleNamespace

import pyarrow as pa
import pytest
import xxhash

import ardea.spark.link
from ardea.component import install
from ardea.errors import ClusterError, UserError
from ardea.spark import SparkSpout
from ardea.spark.access import Access, RefusedError
from ardea.spark.depot import Depot
from ardea.spark.index import IndexReader, IndexWriter, Partition, Reports, StagedFile
from ardea.spark.link import Acknowledger, Callers, Link, tell
from ardea.spark.reading import FetchedFiles, SharedFiles, batches_of, served_pieces, uri_pieces
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Served, Uri, remove
from tests.process.waiting import eventually

HOST = "127.0.0.1"


def load(spark):
    return spark.range(3)


@pytest.fixture
def driver(tmp_path):
    """A driver's folder with an open depot, and the reports of one run."""
    folder = tmp_path / "driver"
    folder.mkdir()
    with IndexWriter(folder) as index:
        depot = Depot(folder, HOST, HOST)
        reports = Reports(folder / "run-1")
        yield SimpleNamespace(folder=folder, index=index, access=depot.access, reports=reports, depot=depot)
        depot.close()


def batches(*sizes):
    return [pa.record_batch({"n": pa.array(range(size), pa.int64())}) for size in sizes]


def read(files, partition, first=0):
    """All batches from the first on, however long they are on their way."""
    reader = batches_of(files, partition, first)
    found = []
    while (step := next(reader, "end")) != "end":
        if step is not None:
            found.append(step)
    return found


@contextlib.contextmanager
def fetching(scratch, pieces, patience=None):
    scratch.mkdir(exist_ok=True)
    files = FetchedFiles(scratch, pieces, patience, lambda: None)
    yield files
    files.close()


def served(driver, file_bytes=1):
    storage = Served(driver.access)
    partition = staged(storage, driver, file_bytes, 10, 20, 30)
    storage.report("run-1", partition)
    return partition


def staged(storage, driver, file_bytes, *sizes):
    """Partition 4; nothing is left where it was drafted."""
    drafts = driver.folder.parent / "drafts"
    drafts.mkdir(exist_ok=True)
    partition = write_partition(Run(storage, "run-1", file_bytes, frozenset()), 4, 7, batches(*sizes), drafts)
    assert list(drafts.iterdir()) == []
    return partition


@pytest.mark.parametrize("file_bytes", [1, 1 << 20])
def test_what_is_uploaded_is_reported_and_fetched(driver, tmp_path, file_bytes):
    partition = served(driver, file_bytes)
    assert list(driver.reports.new()) == [partition]
    expected = list(enumerate(batches(10, 20, 30)))
    with fetching(tmp_path / "scratch", served_pieces(lambda: driver.access)) as files:
        assert read(files, partition) == expected
        assert read(files, partition, 2) == expected[2:]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_file_in_a_pyarrow_file_system(driver, tmp_path):
    uri = f"file://{tmp_path}/there/topology/spout"
    storage = Uri(uri, driver.access)
    partition = staged(storage, driver, 1, 10, 20)
    storage.report("run-1", partition)
    assert list(driver.reports.new()) == [partition]
    with fetching(tmp_path / "scratch", uri_pieces(uri), 2) as files:
        assert read(files, partition) == list(enumerate(batches(10, 20)))
        remove(uri)
        assert not (tmp_path / "there/topology/spout").exists()
        with pytest.raises(ClusterError, match="is gone"):
            read(files, partition)
    remove(uri)


def test_a_stranger_is_refused(driver):
    stranger = Access(driver.access.address, "guessed")
    partition = served(driver)
    with pytest.raises(RefusedError, match="wrong token"):
        list(stranger.read(partition.files[0].path, 0))
    with pytest.raises(RefusedError, match="wrong token"):
        stranger.write("run-1/part-0-0-0.arrow", b"", 0, "")
    with pytest.raises(RefusedError, match="wrong token"), stranger.request("GET", "/index"):
        pass
    assert [path.name for path in (driver.folder / "run-1").glob("part-0-*")] == []


@pytest.mark.parametrize("path", ["index.jsonl", "run-1/../index.jsonl", "run-1/..%2f..%2fsecret", "run-1/x", "/etc/x"])
def test_nothing_but_staged_files_is_there(driver, path):
    with pytest.raises(RefusedError) as refusal:
        list(driver.access.read(path, 0))
    assert refusal.value.status == http.client.NOT_FOUND


def test_an_upload_that_was_damaged_is_not_there(driver):
    with pytest.raises(RefusedError, match="damaged"):
        driver.access.write("run-1/part-0-0-0.arrow", b"abc", 3, xxhash.xxh3_64_hexdigest(b"abd"))
    assert [path.name for path in (driver.folder / "run-1").iterdir()] == ["reports"]


def test_a_driver_without_room_says_so(driver, tmp_path, monkeypatch):
    """A full device, which Linux has."""
    monkeypatch.setattr("secrets.token_hex", lambda _: "full")
    (driver.folder / "run-1" / ".part-00004-7-0.arrow-full").symlink_to("/dev/full")
    with pytest.raises(RefusedError, match="No space left on device") as refusal:
        served(driver)
    assert refusal.value.status == http.client.INSUFFICIENT_STORAGE


def damaged(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def shortened(path):
    path.write_bytes(path.read_bytes()[:-8])


@pytest.mark.parametrize("harm", [damaged, shortened])
def test_a_file_that_has_changed_is_refused(driver, tmp_path, harm):
    partition = served(driver)
    harm(driver.folder / partition.files[1].path)
    pieces, told = served_pieces(lambda: driver.access), "has changed since Spark wrote it"
    with fetching(tmp_path / "scratch", pieces) as files, pytest.raises(ClusterError, match=told):
        read(files, partition)


def test_a_lost_connection_goes_on_where_it_was(tmp_path):
    """Pieces come a few bytes at a time and break off after each."""
    data = b"0123456789" * 10
    file = StagedFile("run-1/part-0-0-0.arrow", len(data), xxhash.xxh3_64_hexdigest(data), 1, 1)
    asked = []

    def pieces(path, start):
        asked.append(start)
        if len(asked) == 3:
            raise ConnectionError("nobody there")
        yield data[start : start + 30]
        raise ConnectionError("broken off")

    with fetching(tmp_path, pieces) as files:
        path = eventually(lambda: files.local(file))
        assert path.read_bytes() == data
    assert asked == [0, 30, 60, 0, 30, 60, 90]


def test_a_file_system_that_never_answers_is_an_error_and_tried_as_often_when_it_is_asked_again(tmp_path):
    asked = []

    def pieces(path, start):
        asked.append(start)
        raise OSError("no route")
        yield

    file = StagedFile("run-1/part-0-0-0.arrow", 1, "", 1, 1)
    with fetching(tmp_path, pieces, 3) as files:
        for tries in (4, 8):
            with pytest.raises(ClusterError, match="cannot be read: no route"):
                eventually(lambda: files.local(file))
            assert len(asked) == tries


def test_a_file_system_that_cannot_be_reached_is_named_without_its_key_and_asked_again(monkeypatch):
    def unreached(uri):
        raise OSError(f"when resolving region for {uri}: no route")

    monkeypatch.setattr("ardea.spark.reading.file_system", unreached)
    with pytest.raises(RuntimeError, match="s3://bucket/x cannot be reached: when resolving") as refused:
        uri_pieces("s3://KEY:a%2Fsecret@bucket/x")
    assert "secret" not in str(refused.value)
    assert refused.value.__suppress_context__  # its text has the key


def test_a_scratch_without_room_is_told(tmp_path):
    (tmp_path / "run-1-part-0-0-0.arrow").symlink_to("/dev/full")
    file = StagedFile("run-1/part-0-0-0.arrow", 1 << 20, "", 1, 1)
    told = r"cannot be kept at .* No space left on device"
    with fetching(tmp_path, lambda path, start: iter([bytes(1 << 20)])) as files, pytest.raises(UserError, match=told):
        eventually(lambda: files.local(file))


@contextlib.contextmanager
def bait(folder):
    """A depot of somebody else's, with an index that nobody shall read."""
    folder.mkdir()
    with IndexWriter(folder) as index:
        index.publish(Partition(99, 0, ()))
        depot = Depot(folder, HOST, HOST)
        yield depot.access
        depot.close()


def test_the_index_is_mirrored_whatever_becomes_of_the_driver(driver, tmp_path):
    first, second = Partition(1, 0, ()), Partition(2, 0, ())
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    link = Link(HOST, mirror)
    reader = IndexReader(mirror)

    def known(*numbers):
        eventually(lambda: (reader.poll(), sorted(reader.partitions) == [*numbers])[1], 10, "the index is there")

    driver.index.publish(first)
    with bait(tmp_path / "bait") as access:
        tell(Access(link.own.address, "guessed"), access)
        tell(link.own, driver.access)
        known(1)
    known(1)
    assert link.driver == driver.access
    driver.index.publish(second)
    known(1, 2)
    driver.index.restart()
    known()
    driver.index.publish(second)
    known(2)
    driver.depot.close()
    eventually(lambda: link.driver is None, 10, "the driver is missed")
    again = Depot(driver.folder, HOST, HOST)
    driver.index.publish(first)
    tell(link.own, again.access)
    known(1, 2)
    link.close()
    again.close()
    with pytest.raises(OSError, match="refused"):
        tell(link.own, driver.access)


def connected(link):
    host, _, port = link.own.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


NO_ANSWERS = (
    b'{"token":"\xc3\xa9","driver":{"address":"a","token":"b"}}',
    b'{"token":"","of":' + b"[" * 3000,
    b'{"token":7}',
    b"\xff",
    b"",
    b"x" * 5000,
)


def test_a_strangers_line_ends_neither_the_link_nor_its_task(driver, tmp_path):
    link = Link(HOST, tmp_path)
    for line in NO_ANSWERS:
        with connected(link) as stranger, contextlib.suppress(ConnectionError):
            stranger.sendall(line + b"\n")
            assert stranger.recv(1) == b"", "it is heard no longer"
    tell(link.own, driver.access)
    eventually(lambda: link.driver == driver.access, 10, "the driver is heard")
    assert link.failure is None
    link.close()


def test_a_line_that_does_not_end_holds_nobody_up(driver, tmp_path, monkeypatch):
    """The driver is heard before anybody's time is over, however many are there before it."""
    monkeypatch.setattr(ardea.spark.link, "Callers", functools.partial(Callers, within=600.0))
    link = Link(HOST, tmp_path)
    with contextlib.ExitStack() as crowd:
        for _ in range(200):
            crowd.enter_context(connected(link)).sendall(b'{"token":')
        tell(link.own, driver.access)
        eventually(lambda: link.driver == driver.access, 20, "the driver is heard")
    link.close()


def test_a_caller_has_one_deadline_for_its_whole_line():
    """A byte now and then does not make it longer."""
    server = socket.create_server((HOST, 0))
    callers = Callers(server, 0.2)
    with socket.create_connection(server.getsockname(), timeout=10) as slow:
        slow.settimeout(0.01)
        until = time.monotonic() + 10
        with contextlib.suppress(ConnectionError):
            heard = None
            while heard != b"" and time.monotonic() < until:
                slow.send(b"x")
                assert callers.lines(0) == []
                with contextlib.suppress(TimeoutError):
                    heard = slow.recv(1)
        assert time.monotonic() < until, "it was closed"
    callers.close()


def test_a_link_whose_thread_dies_ends_its_task(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))
    task = SparkSpout(load, "n bigint", storage="serve").spec("s").cls()
    install(task, "s", SimpleNamespace(emit=lambda *_: None))
    context = SimpleNamespace(
        this_component_id="s", topology_id="t", clock=float, this_task_index=0, component_tasks=lambda name: range(1)
    )
    task.initialize({}, context)
    tell(task._link.own, Access("127.0.0.1:no-port", ""))
    eventually(lambda: task._link.failure, 10, "the link has failed")
    task._link.settle()  # waits for nobody
    with pytest.raises(RuntimeError, match="the link to the Spark driver failed: InvalidURL: nonnumeric port"):
        task.next_tuple()
    task.close()


def test_an_acknowledger_whose_thread_dies_ends_its_task(tmp_path):
    link = Link(HOST, tmp_path)
    link.driver = Access("127.0.0.1:no-port", "")
    acknowledger = Acknowledger(link)
    acknowledger.tell(0, 1)
    assert "InvalidURL" in str(eventually(lambda: link.failure, 10, "the link has failed"))
    acknowledger.close()
    link.close()


def test_shared_files_stay(tmp_path):
    files = SharedFiles(tmp_path)
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-1/a").write_bytes(b"abc")
    path = files.local(StagedFile("run-1/a", 3, xxhash.xxh3_64_hexdigest(b"abc"), 1, 1))
    files.done(path)
    assert path.exists()

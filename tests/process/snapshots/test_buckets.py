"""Snapshots in a bucket, of a server that speaks S3: written, read after a loss, deleted when nobody needs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from ardea.errors import UserError
from ardea.snapshots.place import check, files_at
from tests.process.snapshots.test_effectively import WORDS, Counted

pytestmark = pytest.mark.thorough
BUCKET = "state"


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of a folder in an empty bucket."""
    for name, value in {"ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "secret", "EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        where = f"scheme=http&region=us-east-1&endpoint_override={host}%3A{port}"
        fs.FileSystem.from_uri(f"s3://{BUCKET}?{where}&allow_bucket_creation=true")[0].create_dir(BUCKET)
        yield f"s3://{BUCKET}/ardea?{where}"
    finally:
        server.stop()


def test_a_bucket_keeps_what_was_written_and_nothing_else(address):
    files = files_at(address, "zookeeper://zk:2181", "words-1")
    check(files)
    for name in ("t1/0.1/1-1.base", "t1/0.1/2-1.base", "0.1.manifest"):
        files.write(name, [b"con", b"tent"])
    assert sorted(files.names()) == ["0.1.manifest", "t1/0.1/1-1.base", "t1/0.1/2-1.base"]
    assert files.read("t1/0.1/1-1.base") == b"content"
    files.delete(["t1/0.1/1-1.base", "t1/0.1/2-1.base"], over=True)
    assert files.names() == ["0.1.manifest"]
    system, path = fs.FileSystem.from_uri(address)
    left = [each.path for each in system.get_file_info(fs.FileSelector(path, recursive=True))]
    assert left == [f"{path}/words-1", f"{path}/words-1/0.1.manifest"], "no object stands for a folder that is empty"
    with pytest.raises(FileNotFoundError):
        files.read("t1/0.1/1-1.base")


def test_a_bucket_that_is_not_there_is_named(address):
    with pytest.raises(UserError, match="cannot be kept at s3://nobodys/ardea/words-1: a file could not be written"):
        check(files_at(address.replace(BUCKET, "nobodys"), "zookeeper://zk:2181", "words-1"))


def test_counts_are_exact_with_snapshots_in_a_bucket(address, tmp_path):
    with Counted(tmp_path, storage=address) as topology:
        topology.running()
        topology.until(lambda: min(topology.check()) > 0, "a snapshot has words")
        for name in ("count-1", "topology-master"):
            topology.returned(name, topology.kill(name))
            topology.goes_on()
        topology.until(lambda: topology.check() == [WORDS, WORDS], "all words are counted")
        topology.until(lambda: topology.superfluous() == [], "what no snapshot needs is deleted")

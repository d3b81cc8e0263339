"""Whatever files are called, they are unpacked inside of one folder."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ardea.scheduler.archive import Archive, safe

PARTS = st.one_of(
    st.sampled_from(["..", ".", "", "a", "A", "a.log", "logs", "~", "C:", "\x00", "-rf"]), st.text(max_size=8)
)
NAMES = st.lists(PARTS, max_size=5).map("/".join)


def packed(folder: str, files: list[tuple[str, bytes]]) -> tuple[bytes, list[str]]:
    out = io.BytesIO()
    with Archive(out, folder, clock=lambda: 1e9) as archive:
        chosen = [archive.add(name, data) for name, data in files]
    return out.getvalue(), chosen


@given(NAMES, st.lists(st.tuples(NAMES, st.binary(max_size=9)), max_size=8))
def test_hostile_names_stay_in_their_folder(folder, files):
    data, chosen = packed(folder, files)
    with tempfile.TemporaryDirectory() as place, tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
        assert all(member.isreg() for member in members)
        inside = Path(place) / "inside"
        inside.mkdir()
        tar.extractall(inside, filter="fully_trusted")  # nothing but the names protects who unpacks it
        assert [path.name for path in Path(place).iterdir()] == ["inside"]
        assert len(list(inside.iterdir())) == bool(files)
        found = sorted(path.read_bytes() for path in inside.rglob("*") if path.is_file())
    assert found == sorted(data for _, data in files), "none takes another's place"
    assert len({name.lower() for name in chosen}) == len(files)


def test_plain_names_stay_as_they_are():
    assert safe("logs/container-1.stream-manager.log") == "logs/container-1.stream-manager.log"
    data, _ = packed("WordCount-1e388172-bundle", [("logs/count-0.log", b"\xff\n")])
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        (member,) = tar.getmembers()
        assert (member.name, member.mode) == ("WordCount-1e388172-bundle/logs/count-0.log", 0o600)
        assert tar.extractfile(member).read() == b"\xff\n"


def test_equal_names_get_numbers():
    assert packed("x", [("a.log", b"1"), ("A.log", b"2"), ("a.log/b", b"3")])[1] == ["a.log", "A-2.log", "a.log-b"]
    assert packed("x", [("a.log/b", b"1"), ("a.log", b"2"), ("a.log/b", b"3")])[1] == [
        "a.log/b", "a-2.log", "a.log/b-2",
    ]  # fmt: skip

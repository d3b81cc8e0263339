"""Which snapshot is the newest of a store."""

import pytest

from ardea.errors import StateError
from ardea.snapshots.folder import Folder
from ardea.snapshots.manifest import File, Manifest, Part, encode_manifest, manifest_name
from ardea.snapshots.survey import newest


def written(folder, number, name):
    part = Part("count", 0, (File(name, 1, 4),))
    manifest = Manifest(number=number, timeline=2, parts={1: part})
    folder.write(manifest_name(number), [encode_manifest(manifest)])
    return manifest


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_an_empty_store_has_none(folder):
    assert newest(folder) is None


def test_the_highest_number_is_the_newest(folder):
    """By term and counter, not by the text."""
    folder.write("t2/0.1/1-1.base", [b"base"])
    written(folder, 9 << 32 | 1, "t2/0.1/1-1.base")
    expected = written(folder, 10 << 32 | 2, "t2/0.1/1-1.base")
    written(folder, 10 << 32 | 1, "t2/0.1/1-1.base")
    assert newest(folder) == expected


def test_a_snapshot_that_is_not_whole_is_no_place_to_begin_from(folder):
    written(folder, 3, "t2/0.3/1-1.base")
    with pytest.raises(StateError, match=r"of the snapshot 0\.3\.manifest t2/0\.3/1-1\.base is missing in"):
        newest(folder)


def test_a_list_that_was_cut_is_named(folder):
    folder.write(manifest_name(4), [b"{"])
    with pytest.raises(StateError, match=r"0\.4\.manifest cannot be read"):
        newest(folder)

"""What a bolt was processing survives its process; whatever else is in the file blames nobody."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.heron_instance.current_tuple import FIRST_BYTES, CurrentTuple
from ardea.heron_instance.input_batch import InputTrees


class Batch:
    """The parts of an input batch that the file of the current tuple reads."""

    def __init__(self, roots_of_rows):
        self.rows = [()] * len(roots_of_rows)
        flat = [root for roots in roots_of_rows for root in roots]
        roots = np.array(flat, dtype=np.uint64)
        one_each = all(len(of_row) == 1 for of_row in roots_of_rows)
        counts = None if one_each else np.array([len(of_row) for of_row in roots_of_rows], dtype=np.intp)
        self.trees = InputTrees(roots, roots, counts)
        self.tracked = bool(flat)


root = st.integers(1, 2**64 - 1)
batches = st.lists(st.lists(root, max_size=3), min_size=1, max_size=8)


@given(st.lists(batches, min_size=1, max_size=3), st.data())
def test_the_tuple_being_processed_is_blamed(tmp_path_factory, history, data):
    """Of the newest batch, whatever came before."""
    path = tmp_path_factory.mktemp("box") / "current"
    box = CurrentTuple(path)
    for rows in history:
        box.begin(Batch(rows))
        index = data.draw(st.integers(0, len(rows) - 1))
        box.enter(index)
    assert CurrentTuple.left(path).tolist() == history[-1][index]
    box.clear()
    assert CurrentTuple.left(path).tolist() == []
    box.close()
    assert not path.exists()


def test_a_large_batch_grows_the_file(tmp_path):
    """Beyond the first pages."""
    path = tmp_path / "current"
    box = CurrentTuple(path)
    box.begin(Batch([[n] for n in range(1, FIRST_BYTES // 4)]))
    box.enter(FIRST_BYTES // 4 - 2)
    assert CurrentTuple.left(path).tolist() == [FIRST_BYTES // 4 - 1]
    box.close()


def test_its_pages_are_on_the_disk_before_it_writes_to_them(tmp_path):
    """Else the first one that a full disk has no room for ends the process with SIGBUS."""
    box = CurrentTuple(tmp_path / "current")
    assert (tmp_path / "current").stat().st_blocks * 512 >= FIRST_BYTES
    box.close()


def test_a_full_disk_ends_nobody(tmp_path, monkeypatch):
    """From then on the next life hears of no tuple."""
    path = tmp_path / "current"
    (tmp_path / "full").symlink_to("/dev/full")
    CurrentTuple(tmp_path / "full").begin(Batch([[1]]))
    box = CurrentTuple(path)
    box.begin(Batch([[1]]))
    box.enter(0)
    path.unlink()
    path.symlink_to("/dev/full")
    box.begin(Batch([[n] for n in range(1, FIRST_BYTES // 4)]))
    box.enter(5)
    path.unlink()
    assert CurrentTuple.left(path).tolist() == []
    box.close()


@pytest.mark.parametrize("content", [b"", b"\1", struct.pack("=II", 5, 3), struct.pack("=II", 2**32 - 1, 2**32 - 1)])
def test_a_torn_file_blames_nobody(tmp_path, content):
    """The process died while it wrote, or it is something else's file."""
    path = tmp_path / "current"
    path.write_bytes(content + b"\xff" * 7 * bool(content))
    assert CurrentTuple.left(path).tolist() == []
    assert CurrentTuple.left(tmp_path / "none").tolist() == []

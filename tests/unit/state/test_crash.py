"""A writer that dies at any step leaves all of its transaction or nothing."""

from __future__ import annotations

import itertools
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea.errors import StateError
from ardea.state import Create, Delete, FileState, Set, Versioned
from ardea.state.disk import Disk
from tests.sizes import share

A, B, C = "/topologies/wc-1", "/pplans/wc-1", "/deep/wc-1/er/node"
BEFORE = {A: Versioned(b"old", 1), C: Versioned(b"gone", 1)}
AFTER = {A: Versioned(b"new", 2), B: Versioned(b"made", 1)}
WRITES = [Set(A, b"new", 1), Create(B, b"made"), Delete(C)]


class Crash(BaseException):
    """The process dies: no handler of errors runs, only the kernel's (locks go with their files)."""


class CrashingDisk(Disk):
    """Dies before its ``at``-th step (from 0; never below); a file that is being written is then half there."""

    def __init__(self, at):
        self.left = at

    def _step(self):
        if self.left == 0:
            raise Crash
        self.left -= 1

    def make_directory(self, path):
        self._step()
        super().make_directory(path)

    def write(self, path, contents):
        if self.left == 0:
            path.write_bytes(contents[: len(contents) // 2])
        self._step()
        super().write(path, contents)

    def rename(self, source, target):
        self._step()
        super().rename(source, target)

    def remove(self, path):
        self._step()
        super().remove(path)

    def sync_directory(self, path):
        self._step()
        super().sync_directory(path)


def prepare(root: Path) -> None:
    with FileState(root) as state:
        for path, node in BEFORE.items():
            state.create(path, node.data)


def contents(root: Path) -> dict[str, Versioned]:
    with FileState(root) as state:
        return {path: state.get(path) for path in (A, B, C) if state.exists(path)}


def housekeeping(root: Path) -> set[str]:
    return {str(file.relative_to(root / ".ardea")) for file in (root / ".ardea").rglob("*") if file.is_file()}


def crash_at(root: Path, step: int, writes=WRITES) -> bool:
    try:
        FileState(root, disk=CrashingDisk(step)).transaction(writes)
    except Crash:
        return True
    return False


def test_a_transaction_that_dies_at_any_step_is_whole_or_not_there(tmp_path):
    seen = []
    for step in itertools.count():
        root = tmp_path / str(step)
        prepare(root)
        crashed = crash_at(root, step)
        seen.append(contents(root))
        assert seen[-1] in (BEFORE, AFTER)
        with FileState(root) as state:
            state.set(A, b"more", seen[-1][A].version)
        assert housekeeping(root) == {"wc-1/lock"}, "leftovers are swept by the next writer"
        if not crashed:
            break
    assert seen[0] == BEFORE
    assert seen[-1] == AFTER
    assert len(seen) > 12
    assert seen == sorted(seen, key=lambda found: found == AFTER), "once decided, it stays decided"


def test_recovery_that_dies_at_any_step_is_taken_up_again(tmp_path):
    for first, second in itertools.product(range(8, 16), range(12)):
        root = tmp_path / f"{first}-{second}"
        prepare(root)
        assert crash_at(root, first)
        decided = (root / ".ardea/wc-1/journal").exists()
        crash_at(root, second, writes=[Create("/other/wc-1", b"")])
        found = contents(root)
        assert found in (BEFORE, AFTER)
        assert found == AFTER or not decided


def test_a_reader_never_sees_half_of_a_decided_transaction(tmp_path):
    """The journal of a writer that died mid-way is finished by whoever reads first."""
    for step in itertools.count():
        root = tmp_path / str(step)
        prepare(root)
        crashed = crash_at(root, step)
        with FileState(root) as state:
            assert (state.get(A).version == 2) == state.exists(B) == (not state.exists(C))
        if not crashed:
            return


def test_a_lease_that_dies_at_any_step_of_being_taken_blocks_nobody(tmp_path):
    for step in itertools.count():
        root, disk = tmp_path / str(step), CrashingDisk(step)
        try:
            dead = FileState(root, disk=disk).lease(A, b"dead")
        except Crash:
            pass
        else:
            disk.left = -1
            dead.release()
            return
        with FileState(root) as state:
            assert not state.exists(A)
            with state.lease(A, b"living"):
                assert state.get(A).data == b"living"
        assert housekeeping(root) == set(), "nothing is left of a domain without nodes"


PATHS = st.sampled_from(["/t/a", "/u/a", "/v/a"])
OPERATIONS = st.tuples(
    st.lists(st.tuples(PATHS, st.none() | st.binary(max_size=4)), min_size=1, max_size=3, unique_by=lambda w: w[0]),
    st.none() | st.integers(0, 20),
)


@settings(max_examples=share(80), deadline=None)
@given(st.lists(OPERATIONS, max_size=8))
def test_any_history_with_crashes_equals_a_dictionary(tmp_path_factory, history):
    root, model = tmp_path_factory.mktemp("state"), {}
    for changes, crash in history:
        writes, new = [], dict(model)
        for path, data in changes:
            old = model.get(path)
            if data is None and old is not None:
                writes.append(Delete(path, old.version))
                del new[path]
            elif data is not None:
                writes.append(Set(path, data, old.version) if old else Create(path, data))
                new[path] = Versioned(data, old.version + 1 if old else 1)
        if not writes:
            continue
        state = FileState(root, disk=Disk() if crash is None else CrashingDisk(crash))
        try:
            state.transaction(writes)
            allowed = [new]
        except Crash:
            allowed = [model, new]
        reader = FileState(root)
        model = {path: reader.get(path) for path in ("/t/a", "/u/a", "/v/a") if reader.exists(path)}
        assert model in allowed


KILLED_AT_STEP = """
import os, signal, sys
from pathlib import Path
from ardea.state import Create, Delete, FileState, Set
from ardea.state.disk import Disk

left = int(sys.argv[2])

def dying(method):
    def step(self, *args):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return method(self, *args)
    return step

for name in ("make_directory", "write", "rename", "remove", "sync_directory"):
    setattr(Disk, name, dying(getattr(Disk, name)))
FileState(Path(sys.argv[1])).transaction(
    [Set("/topologies/wc-1", b"new", 1), Create("/pplans/wc-1", b"made"), Delete("/deep/wc-1/er/node")]
)
"""


@pytest.mark.parametrize("step", [3, 6, 8, 9, 10, 11, 12, 13])
def test_a_process_killed_at_a_step_leaves_all_or_nothing(tmp_path, run_python, step):
    prepare(tmp_path)
    assert run_python(KILLED_AT_STEP, tmp_path, step).wait() == -signal.SIGKILL
    decided = (tmp_path / ".ardea/wc-1/journal").exists()
    assert contents(tmp_path) == (AFTER if decided or step > 11 else BEFORE)
    assert not (tmp_path / ".ardea/wc-1/journal").exists()


def test_a_damaged_journal_says_what_to_remove(tmp_path):
    prepare(tmp_path)
    journal = tmp_path / ".ardea/wc-1/journal"
    journal.write_bytes(b"nonsense")
    with FileState(tmp_path) as state:
        with pytest.raises(StateError, match=str(journal)) as caught:
            state.get(A)
        assert f"rm {journal}" in caught.value.hint
        state.create("/topologies/wc-2", b"")
        journal.unlink()
        assert state.get(A) == BEFORE[A]

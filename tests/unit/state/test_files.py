"""What only files can do wrong: damage, full and forbidden disks, frozen writers, races of processes."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import Conflict, NotFound, StateError
from ardea.state import Create, Delete, FileState, Set, Versioned, topologies
from ardea.state.disk import Disk
from ardea.state.domain import Busy
from ardea.state.envelope import Damaged, Node, seal, unseal
from ardea.state.records import TopologyRecord

A, B = "/topologies/wc-1", "/pplans/wc-1"


@pytest.fixture
def state(tmp_path):
    with FileState(tmp_path / "state") as state:
        yield state


def everything(state):
    return {str(file.relative_to(state.root)): file.read_bytes() for file in state.root.rglob("*") if file.is_file()}


@given(st.binary(max_size=64), st.integers(1, 10**12), st.booleans())
def test_an_envelope_gives_back_what_was_sealed(data, version, ephemeral):
    node = Node(data, version, ephemeral)
    assert unseal(seal(node), "here") == node


@given(st.binary(max_size=32), st.data())
def test_every_changed_byte_and_every_cut_is_noticed(data, draw):
    sealed = bytearray(seal(Node(data, 3)))
    place = draw.draw(st.integers(0, len(sealed) - 1))
    with pytest.raises(Damaged, match="here"):
        unseal(bytes(sealed[:place]), "here")
    sealed[place] ^= draw.draw(st.integers(1, 255))
    with pytest.raises(Damaged, match="here"):
        unseal(bytes(sealed), "here")


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        (b"", "not written by Ardea"),
        (b'{"topology": "somebody else\'s"}', "not written by Ardea"),
        (seal(Node(b"data", 1))[:-1], "3 bytes of data where 4"),
        (seal(Node(b"data", 1))[:-1] + b"A", "checksum"),
        (b"ardea-state 1 x\n", "header"),
        (seal(Node(b"data", 1)).replace(b"ardea-state 1", b"ardea-state 0"), "header"),
        (b"ardea-state 2 whatever\n", "format 2, this Ardea reads up to 1"),
    ],
)
def test_damage_names_the_file_and_the_way_out(state, contents, says):
    state.create(A, b"data")
    file = state.root / "topologies/wc-1.node"
    file.write_bytes(contents)
    for act in (lambda: state.get(A), lambda: state.set(A, b"", 1), lambda: state.delete(A, 1)):
        with pytest.raises(StateError, match=says) as caught:
            act()
        assert str(file) in caught.value.message
        assert caught.value.hint
    assert state.exists(A)
    state.delete(A)
    assert state.create(A, b"again") == 1


def test_a_folder_in_place_of_a_node_is_the_damage_of_that_one(state):
    state.create(B, b"data")
    file = state.root / "topologies/wc-1.node"
    file.mkdir(parents=True)
    with pytest.raises(Damaged, match="is a directory") as caught:
        state.get(A)
    assert str(file) in caught.value.message
    assert (state.exists(A), state.children("/topologies"), state.get(B).data) == (True, ("wc-1",), b"data")
    (file / "something").touch()
    with pytest.raises(StateError, match="not empty"):
        state.delete(A)
    (file / "something").unlink()
    state.delete(A)
    assert state.children("/topologies") == ()


def test_foreign_files_in_the_directory_disturb_nobody(state):
    state.create(A, b"")
    for name in ("README", ".DS_Store", "a b.node", ".x.node"):
        (state.root / "topologies" / name).write_text("foreign")
    (state.root / "notes.txt").write_text("foreign")
    assert state.children("/topologies") == ("wc-1",)
    state.delete(A)
    assert state.children("/topologies") == ()


def test_leftovers_are_ignored_and_swept_by_the_next_write(state):
    state.create(A, b"")
    home = state.root / ".ardea/wc-1"
    for name in ("0", "7", "draft"):
        (home / name).write_bytes(b"half a fi")
    assert state.get(A).version == 1
    state.set(A, b"", 1)
    assert [file.name for file in home.iterdir()] == ["lock"]


def test_nothing_is_left_of_a_topology_that_is_gone(state):
    state.create(A, b"")
    lease = state.lease(B, b"")
    state.create("/deep/wc-1/er", b"")
    state.delete(A)
    state.delete("/deep/wc-1/er")
    lease.release()
    with pytest.raises(NotFound):
        state.delete(A)
    assert everything(state) == {}
    assert list((state.root / ".ardea").iterdir()) == []


def test_reading_makes_no_directory(state):
    assert state.children("/topologies") == ()
    assert not state.exists(A)
    assert not state.root.exists()


class FailingDisk(Disk):
    """Fails with ``code`` at the ``at``-th of the calls of ``method`` (from 0), and at all later ones."""

    def __init__(self, code, method, at=0):
        self.code, self.method, self.left = code, method, at

    def _step(self, method):
        if method == self.method:
            self.left -= 1
            if self.left < 0:
                raise OSError(self.code, os.strerror(self.code))

    def make_directory(self, path):
        self._step("make_directory")
        super().make_directory(path)

    def write(self, path, contents):
        try:
            self._step("write")
        except OSError:
            path.write_bytes(contents[:3])
            raise
        super().write(path, contents)

    def rename(self, source, target):
        self._step("rename")
        super().rename(source, target)


@pytest.mark.parametrize("method", ["make_directory", "write"])
@pytest.mark.parametrize(
    ("code", "reason", "advice"),
    [
        (errno.ENOSPC, "No space left", "free some space"),
        (errno.EDQUOT, "quota", "free some space"),
        (errno.EACCES, "Permission denied", "writable"),
        (errno.EROFS, "Read-only", "writable"),
        (errno.ENOTDIR, "Not a directory", "a file lies where"),
        (errno.EIO, "Input/output error", "that disk"),
    ],
)
def test_a_disk_that_refuses_changes_nothing_and_says_what_to_do(state, code, reason, advice, method):
    state.create(A, b"kept")
    before = everything(state)
    for at in range(2):
        failing = FileState(state.root, disk=FailingDisk(code, method, at))
        with pytest.raises(StateError, match=reason) as caught:
            failing.transaction([Create(B, b"lost"), Set(A, b"lost", 1)])
        assert str(state.root) in caught.value.message
        assert "nothing was changed" in caught.value.message
        assert advice in caught.value.hint
        assert "--state DIR" in caught.value.hint
        assert everything(state) == before
    assert state.set(A, b"goes on", 1) == 2


def test_contents_are_on_the_disk_before_the_journal_and_that_before_the_first_file_moves(state):
    state.transaction([Create(A, b""), Create("/gone/wc-1", b"")])
    steps = []

    class Recording(Disk):
        def write(self, path, contents):
            steps.append(f"write {path.name}")
            super().write(path, contents)

        def rename(self, source, target):
            steps.append(f"rename {target.name}")
            super().rename(source, target)

        def remove(self, path):
            steps.append(f"remove {path.name}")
            super().remove(path)

        def sync_directory(self, path):
            steps.append(f"sync_directory {path.name}")
            super().sync_directory(path)

    FileState(state.root, disk=Recording()).transaction([Set(A, b"", 1), Delete("/gone/wc-1")])
    assert steps == [
        "write 0",
        "write draft",
        "sync_directory wc-1",
        "rename journal",
        "sync_directory wc-1",
        "rename wc-1.node",
        "remove wc-1.node",
        "sync_directory gone",
        "sync_directory topologies",
        "remove journal",
        "sync_directory wc-1",
    ]


def test_a_file_and_a_directory_are_synced_before_the_step_is_over(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    disk = Disk()
    disk.make_directory(tmp_path / "a" / "b")
    disk.write(tmp_path / "file", b"x")
    assert synced == [p.stat().st_ino for p in (tmp_path, tmp_path / "a", tmp_path / "file")]


def test_a_disk_that_refuses_after_the_decision_does_not_claim_that_nothing_changed(state):
    state.create(A, b"old")
    failing = FileState(state.root, disk=FailingDisk(errno.EIO, "rename", at=1))
    with pytest.raises(StateError, match="may or may not be in force"):
        failing.transaction([Set(A, b"new", 1), Create(B, b"new")])
    assert state.get(A) == Versioned(b"new", 2)
    assert state.get(B) == Versioned(b"new", 1)


def test_a_lease_on_a_full_disk_is_not_held(state):
    with pytest.raises(StateError, match="No space left"):
        FileState(state.root, disk=FailingDisk(errno.ENOSPC, "write")).lease(A, b"")
    assert not state.exists(A)
    state.lease(A, b"")


def test_a_dead_lease_is_gone_for_readers_of_a_full_disk(state):
    lease = state.lease(A, b"")
    os.close(lease._fd)  # what the kernel does when its process dies
    lease._fd = None
    failing = FileState(state.root, disk=FailingDisk(errno.ENOSPC, "write"))
    assert not failing.exists(A)
    with pytest.raises(NotFound):
        failing.get(A)
    state.lease(A, b"").release()
    assert not state.exists(A)


def test_a_full_disk_takes_removals(state):
    state.create(A, b"")
    state.create(B, b"")
    lease = FileState(state.root, disk=(full := FailingDisk(errno.ENOSPC, "write", at=1))).lease("/c/wc-1", b"")
    with pytest.raises(StateError, match="nothing was changed"):
        FileState(state.root, disk=full).transaction([Delete(A), Set(B, b"new", 1)])
    assert state.exists(A)
    lease.release()
    FileState(state.root, disk=full).transaction([Delete(A), Delete(B)])
    assert everything(state) == {}


@pytest.mark.parametrize("room", range(4))
def test_a_topology_that_cannot_be_registered_for_want_of_room_is_not_there(state, room):
    """Two records and the journal are written first, then the name."""
    record = TopologyRecord(
        id="wc-00000001", name="wc", location="w.py", topology_class="W", config={}, submitted_by="u",
        submitted_at=datetime.now(UTC), submitted_from="h", ardea_version="0", digest="0", components={},
    )  # fmt: skip
    full = FileState(state.root, disk=FailingDisk(errno.ENOSPC, "write", at=room))
    with pytest.raises(StateError, match="No space left on device; nothing was changed"):
        topologies.register(full, record)
    assert topologies.listing(state) == []
    assert everything(state) == {}


def test_a_file_where_the_directory_should_be_is_reported(tmp_path):
    (tmp_path / "state").write_text("a file")
    with pytest.raises(StateError, match=r"Not a directory|File exists") as caught:
        FileState(tmp_path / "state").create(A, b"")
    assert "a file lies where a directory should be" in caught.value.hint


LIMITED = """
import resource, sys
from pathlib import Path
from ardea.errors import StateError
from ardea.state import Create, FileState

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    FileState(Path(sys.argv[1])).transaction([Create("/t/wc-1", b"small"), Create("/u/wc-1", b"x" * 10_000)])
except StateError as error:
    print(error.message, "--", error.hint)
"""


def test_a_real_limit_on_the_disk_gives_the_same_message(state, run_python):
    state.create(A, b"kept")
    before = everything(state)
    said, _ = run_python(LIMITED, state.root).communicate()
    assert "File too large; nothing was changed -- free some space" in said
    assert everything(state) == before


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def frozen_writer(state):
    """Somebody who keeps the lock of wc-1, and has a lease there."""
    state.lease(B, b"")
    state.create(A, b"here")
    fd = os.open(state.root / ".ardea/wc-1/lock", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield
    os.close(fd)


def test_a_frozen_writer_blocks_nobody_for_ever(state, frozen_writer):
    clock = Clock()
    patient = FileState(state.root, clock=clock, sleep=clock.sleep, patience=10.0)
    for act in (lambda: patient.set(A, b"", 1), lambda: patient.get(B), lambda: patient.lease("/x/wc-1", b"")):
        start = clock.now
        with pytest.raises(Busy, match=r"for 10 s; nothing was changed") as caught:
            act()
        assert 10.0 <= clock.now - start < 10.1
        assert "fuser" in caught.value.hint
    assert patient.get(A).data == b"here", "plain reads take no lock"
    assert patient.create("/topologies/wc-2", b"") == 1, "another topology is not held up"


def test_a_lock_file_that_was_replaced_between_open_and_lock_protects_nothing(state, monkeypatch):
    """The domain is retired and made anew by another writer just as we open its lock."""
    state.create(A, b"")
    lock, others = state.root / ".ardea/wc-1/lock", []

    def flock(fd, operation):
        if not others:
            lock.unlink()
            others.append(os.open(lock, os.O_RDWR | os.O_CREAT))
            real(others[0], fcntl.LOCK_EX)
        real(fd, operation)

    real, clock = fcntl.flock, Clock()
    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(Busy):
        FileState(state.root, clock=clock, sleep=clock.sleep).set(A, b"", 1)
    os.close(others[0])
    assert state.set(A, b"", 1) == 2


def test_poll_waits_for_nobody(state, frozen_writer):
    seen = []
    impatient = FileState(state.root, sleep=lambda seconds: pytest.fail("poll slept"))
    impatient.watch(B, lambda now: seen.append(B))
    impatient.watch(A, lambda now: seen.append(A))
    impatient.poll()
    assert seen == [A]


def test_one_damaged_node_holds_up_no_other_watch(state):
    seen = []
    state.create(A, b"")
    (state.root / "topologies/wc-1.node").write_bytes(b"nonsense")
    state.watch(A, seen.append)
    state.watch(B, seen.append)
    with pytest.raises(Damaged):
        state.poll()
    assert seen == [None]


RACER = """
import sys
from pathlib import Path
from ardea.errors import Conflict
from ardea.state import FileState

state = FileState(Path(sys.argv[1]))
for line in sys.stdin:
    try:
        state.set("/t/race", sys.argv[2].encode(), int(line))
        print("won", flush=True)
    except Conflict:
        print("lost", flush=True)
"""


def test_of_two_processes_that_write_the_same_version_one_wins(state, run_python):
    state.create("/t/race", b"")
    racers = [run_python(RACER, state.root, name) for name in "ab"]
    for version in range(1, 31):
        for racer in racers:
            racer.stdin.write(f"{version}\n")
            racer.stdin.flush()
        results = [racer.stdout.readline().strip() for racer in racers]
        assert sorted(results) == ["lost", "won"]
        assert state.get("/t/race") == Versioned(b"ab"[(w := results.index("won")) : w + 1], version + 1)


COUNTER = """
import sys
from pathlib import Path
from ardea.errors import Conflict
from ardea.state import FileState, Set, Create, Delete

state, done = FileState(Path(sys.argv[1])), 0
while done < 40:
    a, b = state.get("/t/sum"), state.get("/u/sum")
    try:
        state.transaction([Set("/t/sum", b"%d" % (int(a.data) + 1), a.version),
                           Set("/u/sum", b"%d" % (int(b.data) + 1), b.version)])
        done += 1
    except Conflict:
        pass
"""


def test_no_increment_of_several_processes_is_lost_and_readers_see_whole_transactions(state, run_python):
    state.transaction([Create("/t/sum", b"0"), Create("/u/sum", b"0")])
    counters = [run_python(COUNTER, state.root) for _ in range(3)]
    while any(counter.poll() is None for counter in counters):
        first, second = state.get("/t/sum"), state.get("/u/sum")
        assert first.version <= second.version, "who has seen one write sees the others"
        assert int(first.data) == first.version - 1
    assert [counter.returncode for counter in counters] == [0, 0, 0]
    assert state.get("/t/sum") == state.get("/u/sum") == Versioned(b"120", 121)


HOLDER = """
import subprocess, sys
from pathlib import Path
from ardea.state import FileState

state = FileState(Path(sys.argv[1]))
lease = state.lease("/tmasters/wc-1", b"nobody yet")
state.set(lease.path, b"holder", 1)
child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_a_lease_goes_with_its_process_and_not_with_its_children(state, run_python, poll_until, leaks, sign):
    path, seen = "/tmasters/wc-1", []
    holder: subprocess.Popen[str] = run_python(HOLDER, state.root)
    child = int(holder.stdout.readline())
    try:
        state.watch(path, seen.append)
        state.poll()
        with pytest.raises(Conflict):
            state.lease(path, b"mine")
        holder.send_signal(sign)
        holder.wait()
        poll_until(state, lambda: seen == [Versioned(b"holder", 2), None])
        with pytest.raises(NotFound):
            state.get(path)
        assert state.children("/tmasters") == ()
        assert state.lease(path, b"mine").held
    finally:
        os.kill(child, signal.SIGKILL)
        poll_until(state, lambda: child not in leaks.processes())

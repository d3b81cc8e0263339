"""Who gets in over TCP, on real sockets."""

from __future__ import annotations

import contextlib
import errno
import stat
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
import zmq

from ardea import Topology
from ardea.errors import ConfigError
from ardea.scheduler import keys
from ardea.scheduler.submission import Submission
from ardea.testing import CollectBolt, RowsSpout
from ardea.transport import CALLERS, KEY_FILE, Bound, Dialled, Door, Keyring, Poller, context, holder, pair

NAMES = (CALLERS, holder(0), holder(1), holder(2))


class Words(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec(par=2)
    count = CollectBolt.spec(inputs=[words], par=2)


class Issued:
    """Pairs for a topology with a master and two containers."""

    def __init__(self) -> None:
        pairs = {name: pair() for name in NAMES}
        self.public = {name: public for name, (public, _) in pairs.items()}
        self.secret = {name: secret for name, (_, secret) in pairs.items()}

    def ring(self, name: str) -> Keyring:
        return Keyring(self.secret[name], self.public)


class Listener:
    """Container 1's port."""

    def __init__(self, issued: Issued, *, callers: bool = False, answers: bool = True) -> None:
        self.keys = issued.ring(holder(1))
        self._undo = contextlib.ExitStack()
        self._ctx = context()
        self._undo.callback(self._ctx.destroy, linger=0)
        self.poller = Poller()
        self._undo.callback(self.poller.close)
        self.door = Door(self._ctx, self.keys, callers=callers)
        if answers:
            self.poller.keep(self.door)
        self.bound = Bound(self._ctx, self.door)
        self.address = f"tcp://127.0.0.1:{self.bound.bind('tcp://127.0.0.1:0')}"
        self.poller.watch(self.bound)
        for end in (self.door, self.bound):
            self._undo.callback(end.close)

    def dial(self, identity: bytes, ring: Keyring | None = None, peer: str = holder(1)) -> None:
        """Says its name, and goes on trying."""
        dialled = Dialled(self._ctx, identity, self.address, ring, peer)
        self._undo.callback(dialled.close)
        dialled.send([b"I am " + identity])

    def heard(self, deadline, *expected: bytes, refused: int = 0) -> set[bytes]:
        """All that has come a second after what is expected has, and after so many were refused."""
        found: set[bytes] = set()

        def listened() -> bool:
            self.poller.wait(0.01)
            found.update(frames[0] for _, frames in self.bound.receive(100))
            return found.issuperset(expected) and self.door.refused >= refused

        deadline(listened, f"{expected} come, and {refused} are refused")
        for _ in range(100):
            listened()
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()


def test_only_containers_of_the_topology_get_in(deadline):
    ours, theirs = Issued(), Issued()
    made_up = Keyring(pair()[1], ours.public)
    with Listener(ours) as listener:
        listener.dial(b"m2", ours.ring(holder(2)))
        listener.dial(b"m3")  # without a key
        listener.dial(b"m4", made_up)  # it knows all public keys
        listener.dial(b"m5", Keyring(theirs.secret[holder(2)], ours.public))  # another topology's
        listener.dial(b"m6", theirs.ring(holder(2)))  # that takes us for its own
        listener.dial(b"m7", ours.ring(CALLERS))
        assert listener.heard(deadline, b"I am m2", refused=3) == {b"I am m2"}


def test_callers_get_in_where_they_may(deadline):
    ours = Issued()
    with Listener(ours, callers=True) as listener:
        listener.dial(b"c1", ours.ring(CALLERS))
        listener.dial(b"c2", Keyring(pair()[1], ours.public))
        assert listener.heard(deadline, b"I am c1", refused=1) == {b"I am c1"}


def test_nobody_gets_in_while_nobody_answers_the_door(deadline):
    ours = Issued()
    with Listener(ours, answers=False) as listener:
        listener.dial(b"m2", ours.ring(holder(2)))
        assert listener.heard(deadline) == set()


def test_who_dials_reaches_the_holder_of_the_key_and_nobody_else(deadline):
    ours = Issued()
    with Listener(ours) as listener:
        listener.dial(b"m2", ours.ring(holder(2)), peer=holder(0))
        assert listener.heard(deadline) == set()


def test_a_container_that_becomes_known_gets_in_without_dialling_again(deadline):
    ours, public = Issued(), {}
    new, public[holder(3)] = Keyring((fresh := pair())[1], {**ours.public, holder(3): fresh[0]}), fresh[0]
    with Listener(ours) as listener:
        listener.dial(b"m3", new)
        assert listener.heard(deadline, refused=1) == set()
        listener.keys.learn({**ours.public, **public})
        assert listener.heard(deadline, b"I am m3") == {b"I am m3"}


def test_nothing_that_is_said_can_be_read_on_the_way(deadline):
    """A word that travels, and what a tap between the two sees."""
    ours = Issued()
    seen = bytearray()
    with Listener(ours) as listener, _tap(listener.address, seen) as tapped:
        listener.address = tapped
        listener.dial(b"m2", ours.ring(holder(2)))
        assert listener.heard(deadline, b"I am m2") == {b"I am m2"}
    assert b"CURVE" in seen
    assert b"I am m2" not in seen


@contextlib.contextmanager
def _tap(address, seen):
    """A TCP forwarder that keeps what it passes on."""
    import socket
    import threading

    host, port = address.removeprefix("tcp://").split(":")
    server = socket.create_server(("127.0.0.1", 0))
    ends: list[socket.socket] = []

    def copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                seen.extend(data)
                target.sendall(data)

    def accept():
        with contextlib.suppress(OSError):
            here, _ = server.accept()
            there = socket.create_connection((host, int(port)))
            ends.extend((here, there))
            back = threading.Thread(target=copy, args=(there, here))
            back.start()
            copy(here, there)
            back.join()

    thread = threading.Thread(target=accept)
    thread.start()
    yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
    for end in (server, *ends):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
    thread.join()


def test_a_process_without_its_key_says_so(tmp_path):
    ours, theirs = Issued(), Issued()
    assert Keyring.read(None, {}) is None
    with pytest.raises(ConfigError, match="--keys FOLDER is missing"):
        Keyring.read(None, ours.public)
    with pytest.raises(ConfigError, match=f"{KEY_FILE} cannot be read"):
        Keyring.read(tmp_path, ours.public)
    for text, says in (("", "cannot be read"), ("x" * 39, "cannot be read"), (theirs.secret[CALLERS], "is none of")):
        (tmp_path / KEY_FILE).write_text(text)
        with pytest.raises(ConfigError, match=says):
            Keyring.read(tmp_path, ours.public)
    (tmp_path / KEY_FILE).write_text(f"{ours.secret[CALLERS]}\n")
    assert Keyring.read(tmp_path, ours.public).public == zmq.curve_public(ours.secret[CALLERS].encode())


def test_each_container_gets_a_pair_once_and_only_its_owner_reads_it(tmp_path):
    submitted = Submission.of(f"{__file__}:Words", {"topology.stmgrs": 2}, str(tmp_path)).definition
    issued, secrets = keys.issue(submitted)
    assert set(issued.keys) == set(secrets) == set(NAMES)
    assert len({*issued.keys.values(), *secrets.values()}) == 2 * len(NAMES)
    assert keys.issue(issued) == (issued, {})
    keys.write(tmp_path, secrets)
    files = {path.relative_to(tmp_path): path for path in tmp_path.rglob(KEY_FILE)}
    assert sorted(map(str, files)) == [
        "container-0/keys/secret.key", "container-1/keys/secret.key", "container-2/keys/secret.key", "keys/secret.key",
    ]  # fmt: skip
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
    assert Keyring.read(tmp_path / "container-2" / "keys", issued.keys).public.decode() == issued.keys[holder(2)]
    assert keys.read(tmp_path, [*NAMES, "container-3"]) == secrets


def test_an_update_that_is_repeated_has_the_same_keys(tmp_path):
    """Else the master would take it for another one, and the first one's secret key would be gone."""
    issued, _ = keys.issue(Submission.of(f"{__file__}:Words", {"topology.stmgrs": 1}, str(tmp_path)).definition)
    more = Submission.of(f"{__file__}:Words", {"topology.stmgrs": 3}, str(tmp_path)).definition
    wanted = msgspec.structs.replace(more, keys=issued.keys)
    assert keys.lacking(wanted) == [holder(2), holder(3)]
    first, fresh = keys.issue(wanted)
    keys.write(tmp_path, {holder(2): fresh[holder(2)]})
    again, missing = keys.issue(wanted, keys.read(tmp_path, keys.lacking(wanted)))
    assert again.keys[holder(2)] == first.keys[holder(2)]
    assert set(missing) == {holder(3)}


def test_what_is_no_key_is_passed_over_and_a_key_that_is_there_stays(tmp_path):
    """A write that broke off has left one file empty; another verb has made a key in the place of the other."""
    ours, theirs = Issued(), Issued()
    for name, text in ((holder(1), ""), (holder(2), f"{theirs.secret[holder(2)]}\n")):
        (tmp_path / name / "keys").mkdir(parents=True)
        (tmp_path / name / "keys" / KEY_FILE).write_text(text)
    assert keys.read(tmp_path, NAMES) == {holder(2): theirs.secret[holder(2)]}
    keys.write(tmp_path, {name: ours.secret[name] for name in (holder(1), holder(2))})
    assert keys.read(tmp_path, NAMES) == {holder(1): ours.secret[holder(1)], holder(2): theirs.secret[holder(2)]}
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [KEY_FILE] * 2


def test_a_full_disk_leaves_no_part_of_a_key(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "write_text", Mock(side_effect=OSError(errno.ENOSPC, "no space")))
    with pytest.raises(OSError, match="no space"):
        keys.write(tmp_path, Issued().secret)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_topology_may_do_without(tmp_path):
    config = {"heron.streammgr.curve": False}
    submitted = Submission.of(f"{__file__}:Words", config, str(tmp_path)).definition
    assert keys.issue(submitted) == (submitted, {})

"""One real server that speaks TLS and SASL, and clients that have, or lack, what it wants to see."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from ardea.errors import StateError
from ardea.state.address import SECRETS, Address
from ardea.state.manager import Unavailable
from ardea.state.zookeeper import ZooKeeperState
from tests.process.ports import free_ports
from tests.process.state.ensemble import Server
from tests.process.state.guarded import CONFIG, USERS, certificates
from tests.process.waiting import eventually

pytestmark = pytest.mark.zookeeper
NODE = "/topologies/wc-1"


class Guarded:
    """A server with a port for TLS and one for plain text, both with SASL."""

    def __init__(self, folder: Path, more: str = "") -> None:
        folder.mkdir()
        certificates(folder)
        plain, self.secure = free_ports(2)
        self.folder, self.plain = folder, plain
        self.server = Server(
            folder / "zk", plain, CONFIG.format(port=self.secure, address="127.0.0.1", folder=folder, more=more)
        )
        self.server.options = [f"-Djava.security.auth.login.config={folder}/users"]
        self.knows("s3cr3t")

    def knows(self, password: str) -> None:
        """From its next start on."""
        (self.folder / "users").write_text(USERS.format(password))

    def start(self) -> None:
        self.server.start()
        eventually(lambda: self.server.mode, 60, self.server.log)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    if shutil.which("openssl") is None:
        pytest.fail("no openssl here: install it, it makes the certificates")
    made = Guarded(tmp_path_factory.mktemp("guarded") / "it")
    try:
        made.start()
        yield made
    finally:
        made.server.kill()


@pytest.fixture
def folder(guarded: Guarded, tmp_path: Path) -> Path:
    """With all that the server wants to see."""
    made = tmp_path / "secrets"
    made.mkdir()
    shutil.copy(guarded.folder / "ca.crt", made)
    for end in ("crt", "key"):
        shutil.copy(guarded.folder / f"client.{end}", made / f"tls.{end}")
    (made / "sasl").write_text("ardea:s3cr3t\n")
    return made


Opens = Callable[..., ZooKeeperState]


@pytest.fixture
def opens(root: str) -> Iterator[Opens]:
    """``opens(url, folder, credential, patience=seconds)``: a client below the test's root."""
    with contextlib.ExitStack() as stack:

        def opens(where: str, folder: Path, credential: str = "", *, patience: float = 20.0) -> ZooKeeperState:
            address = Address.parse(f"{where}{root}", {SECRETS: str(folder)}, credential)
            return stack.enter_context(ZooKeeperState(address, patience=patience))

        yield opens


@pytest.mark.parametrize("tls", [True, False])
def test_who_shows_all_is_let_in_and_owns_what_it_writes(guarded, folder, opens, tls, caplog):
    where = f"zookeeper+tls://127.0.0.1:{guarded.secure}" if tls else f"zookeeper://127.0.0.1:{guarded.plain}"
    mine = opens(where, folder)
    mine.create(NODE, b"data")
    assert opens(where, folder).get(NODE).data == b"data"
    (folder / "sasl").write_text("other:o")
    with pytest.raises(StateError, match="does not allow it"):
        opens(where, folder).get(NODE)
    (folder / "sasl").write_text("ardea:s3cr3t")
    owned = opens(where, folder, "wc:word")
    owned.create("/topologies/wc-2", b"")
    with pytest.raises(StateError, match="does not allow it"):
        mine.get("/topologies/wc-2")
    assert "s3cr3t" not in caplog.text + repr(mine.session.address)


@pytest.mark.parametrize(
    ("lacks", "says"),
    [
        ("ca.crt", "TLS: the server's certificate: unable to get local issuer certificate"),
        ("tls", "TLS: the server does not accept this client's certificate, or wants one"),
        ("sasl", ""),
        ("password", "SASL: the servers do not accept this user and password"),
        ("name", "TLS: the server's certificate: Hostname mismatch"),
        ("port", "TLS: the server breaks off; its port may not be one for TLS"),
    ],
)
def test_who_lacks_something_is_told_what(guarded, folder, opens, lacks, says):
    where = f"zookeeper+tls://127.0.0.1:{guarded.secure}"
    if lacks == "password":
        (folder / "sasl").write_text("ardea:guess")
    elif lacks == "name":
        where = f"zookeeper+tls://localhost:{guarded.secure}"
    elif lacks == "port":
        where = f"zookeeper+tls://127.0.0.1:{guarded.plain}"
    else:
        for file in folder.glob(f"{lacks}*"):
            file.unlink()
    if not says:
        opens(where, folder).create(NODE, b"")
        return
    error = refused(opens(where, folder, patience=1.0), f"lets nobody in: {says}")
    assert "nothing was changed" in error.message
    assert SECRETS in (error.hint or "")


def test_files_that_are_put_right_let_in_whoever_waits(guarded, folder, opens):
    """A certificate and a password, both of which were wrong when the client began."""
    away = folder.parent / "away"
    away.mkdir()
    certificates(away, "another CA")
    right = (folder / "ca.crt").read_bytes()
    shutil.copy(away / "ca.crt", folder)
    (folder / "sasl").write_text("ardea:old")
    mine = opens(f"zookeeper+tls://127.0.0.1:{guarded.secure}", folder, patience=1.0)
    refused(mine, "TLS")
    (folder / "ca.crt").write_bytes(right)
    refused(mine, "SASL")
    (folder / "sasl").write_text("ardea:s3cr3t")
    eventually(lambda: refusal(mine) is None, 20, "it is let in")


def refusal(state: ZooKeeperState) -> Unavailable | None:
    """What a write is answered with; None: it is let in."""
    try:
        state.create(f"/topologies/{uuid4().hex}", b"")
    except Unavailable as error:
        return error
    return None


def refused(state: ZooKeeperState, says: str) -> Unavailable:
    """The refusal that says so, which is known once the servers have been asked."""
    told: list[Unavailable | None] = []

    def asked() -> bool:
        told.append(refusal(state))
        return says in getattr(told[-1], "message", "")

    eventually(asked, 60, lambda: f"{says}: {told[-1]}")
    assert told[-1] is not None
    return told[-1]


@pytest.mark.thorough
def test_servers_that_let_in_nobody_without_sasl(tmp_path, opens, caplog):
    """They take the connection, and drop it at the first question; a lease goes on when they start again."""
    made = Guarded(tmp_path / "it", "enforce.auth.enabled=true\nenforce.auth.schemes=sasl\nssl.clientAuth=none")
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    shutil.copy(made.folder / "ca.crt", secrets)
    where = f"zookeeper+tls://127.0.0.1:{made.secure}"
    try:
        made.start()
        refused(opens(where, secrets, patience=1.0), "drops each connection before it answers: it may ask for SASL")
        assert caplog.text.count("is lost") <= 1
        assert caplog.text.count("drops each connection") == 1
        (secrets / "sasl").write_text("ardea:s3cr3t")
        mine = opens(where, secrets)
        lease = mine.lease(NODE, b"")
        made.server.kill()
        made.start()
        eventually(lambda: refusal(mine) is None, 20, "it is let in again")
        assert lease.held
    finally:
        made.server.kill()

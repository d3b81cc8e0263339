"""The state manager: where processes find one another, and what survives them.  See docs/state.md."""

from __future__ import annotations

from ardea.errors import UserError
from ardea.state import address
from ardea.state.files import FileState
from ardea.state.manager import (
    POLL_SECONDS,
    Check,
    Create,
    Delete,
    Lease,
    Set,
    StateManager,
    Unavailable,
    Versioned,
    Watch,
    Write,
)
from ardea.state.master_watch import MasterWatch
from ardea.state.term import Fenced, Term

__all__ = [
    "POLL_SECONDS",
    "Check",
    "Create",
    "Delete",
    "Fenced",
    "FileState",
    "Lease",
    "MasterWatch",
    "Set",
    "StateManager",
    "Term",
    "Unavailable",
    "Versioned",
    "Watch",
    "Write",
    "open_state",
]

_PACKAGES = {"kazoo": "kazoo", "tenacity": "kazoo", "puresasl": "pure-sasl"}


def open_state(url: str, credential: str = "") -> StateManager:
    """The state manager at ``url``.  Nothing is touched before the first call.

    Args:
        url: a directory (``~`` is the user's home), ``file:///absolute/path``, or
            ``zookeeper://host:port,host:port/root``, with ``zookeeper+tls:`` encrypted.
        credential: ``user:password`` for ZooKeeper; by default that of the environment (``ARDEA_ZOOKEEPER_AUTH``).

    Raises:
        UserError: the address cannot be understood, or kazoo is not installed.
    """
    folder = address.folder_of(url)
    if folder is None:
        return _zookeeper(address.Address.parse(url, credential=credential))
    return FileState(folder.expanduser())


def _zookeeper(where: address.Address) -> StateManager:
    try:
        from ardea.state.zookeeper import ZooKeeperState  # kazoo is optional, and others do without its threads

        if where.secrets and where.secrets.sasl:
            import puresasl  # noqa: F401  # kazoo would give up without it
    except ModuleNotFoundError as error:
        package = _PACKAGES.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        raise UserError(
            f"ZooKeeper needs the package {package}, which is not installed", hint="pip install 'ardea[zookeeper]'"
        ) from error
    return ZooKeeperState(where)

"""Where a topology keeps its snapshots, and whether that place can be used."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from typing import Protocol

from ardea.errors import UserError
from ardea.snapshots.folder import Folder, path_of
from ardea.snapshots.objects import Objects

_PASSWORD = re.compile(r"[^:/]+://[^/?#@]*:(?!\d*/)[^?#]*@")
"""``scheme://user:password@``; a slash of the password may be written as it is."""


class Files(Protocol):
    """A store; all its methods wait."""

    def write(self, name: str, content: Iterable[bytes]) -> None:
        """Durable when it returns.

        Raises:
            OSError: it was not written; as for whatever reading the content raises.
        """

    def names(self) -> list[str]:
        """Of all files, and of what was begun and is not finished.

        Raises:
            OSError: they cannot be listed.
        """

    def delete(self, names: Iterable[str], *, over: bool = False) -> None:
        """Those that are there, and folders that hold nothing any more.

        ``over``: nobody writes into these folders any more.  Else they stay where none can be deleted unless with what
        has come into it meanwhile.

        Raises:
            OSError: one could not be deleted.
        """

    def read(self, name: str, most: int | None = None) -> bytes:
        """Its first bytes, ``most`` of them; None: all of it.

        Raises:
            FileNotFoundError: there is none.
            OSError: it cannot be read.
        """

    def parts(self, name: str, most: int) -> Iterator[bytes]:
        """All of it, in order, ``most`` bytes at a time.

        Raises:
            FileNotFoundError, OSError: as for :meth:`read`.
        """

    def written(self, name: str) -> float:
        """When that file was, in Unix seconds.

        Raises:
            OSError: that cannot be found out.
        """

    def remove(self) -> None:
        """All of the store.

        Raises:
            OSError: something of it is left.
        """


def files_at(storage: str | None, state: str, topology: str) -> Files:
    """Of that topology, by ``topology.stateful.storage`` and the address of the state manager.

    Raises:
        UserError: it names a place that cannot be used.
        OSError: it cannot be reached at present.
    """
    check_named(storage, state)
    if storage is None:
        return Folder.beside(state, topology)
    return Folder.under(storage, topology) if _is_folder(storage) else Objects(storage, topology)


def store_at(storage: str | None, state: str, topology: str) -> str:
    """The address of that topology's store, as :func:`files_at` opens it."""
    return str(Folder.beside(state, topology)) if storage is None else within(storage, topology)


def place_at(address: str) -> Files:
    """A folder that a person names, by its path or its address.

    Raises:
        UserError: it cannot be used.
        OSError: it cannot be reached at present.
    """
    return Folder.at(address) if _is_folder(address) else Objects(address)


def absolute(address: str) -> str:
    """The same folder, for processes that work elsewhere on this machine."""
    return str(Folder.at(address)) if _is_folder(address) else address


def savepoints_at(storage: str | None, state: str, topology: str = "", name: str = "") -> str:
    """The address of where savepoints lie by default; of a topology, or of one of its own, if these are given.

    Raises:
        UserError: there is no such place.
    """
    check_named(storage, state)
    return within(state if storage is None else storage, "/".join(filter(None, ("savepoints", topology, name))))


def within(address: str, name: str) -> str:
    """The address of what is called so in that folder."""
    path, mark, query = address.partition("?")
    return f"{path.rstrip('/')}/{name}{mark}{query}"


def check_named(storage: str | None, state: str) -> None:
    """Whether there is a place at all; it is not looked at.

    Raises:
        UserError: there is none.
    """
    if storage is None and not _is_folder(state):
        raise UserError(
            f"topology.stateful.storage is not set, and the state lies at {state}, which does not keep snapshots",
            hint="name a place that all processes reach: s3://bucket/folder, or a folder of a volume of all pods",
        )


def check_chosen(storage: str | None, state: str) -> None:
    """Whether a topology that is submitted can keep its snapshots there; the place is not looked at.

    Raises:
        UserError: there is none, or it is another one in each working folder.
    """
    check_named(storage, state)
    if storage is not None and _is_folder(storage) and not _is_absolute(storage):
        raise UserError(
            f"topology.stateful.storage = {storage!r} is no absolute path: each process, and each verb, would look for "
            "it in its own working folder",
            hint="give the whole path, which begins with / or ~/",
        )


def check_shown(address: str | None, what: str) -> None:
    """Whether it has nothing secret: roots, events and messages show it; ``what`` names it.

    Raises:
        UserError: it has a password.
    """
    if address is not None and _PASSWORD.match(address):
        raise UserError(
            f"{what} has a password, and everybody who may look at the topology would read it",
            hint="give it to the processes in their environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; on "
            "Kubernetes name a Secret with them in heron.kubernetes.env.from",
        )


def _is_absolute(folder: str) -> bool:
    try:
        return path_of(folder).is_absolute()
    except RuntimeError:  # there is no such user
        return False


def _is_folder(address: str) -> bool:
    return "://" not in address or address.startswith("file://")


def check(files: Files) -> None:
    """Writes, reads, lists and deletes a file there.

    Raises:
        UserError: one of them fails.
    """
    name = f"check-{secrets.token_hex(4)}"
    step = "written"
    try:
        files.write(name, [name.encode()])
        step = "read"
        same = files.read(name) == name.encode()
        step = "listed"
        listed = name in files.names()
        step = "deleted"
        files.delete([name])
    except OSError as error:
        raise UserError(
            f"snapshots cannot be kept at {files}: a file could not be {step}: {error}",
            hint="topology.stateful.storage names the place; all processes of the topology must be able to write there",
        ) from error
    if not (same and listed):
        raise UserError(
            f"snapshots cannot be kept at {files}: a file written there is not {'listed' if same else 'the same'}",
            hint="topology.stateful.storage must name a place whose files are seen as soon as they are written",
        )

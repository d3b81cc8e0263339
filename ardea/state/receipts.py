"""Transactions that happen once, though their answers are lost.

A *receipt* is an ephemeral node of this session whose version counts its transactions.  Each transaction raises it by
one, from the version that the last one left; so a transaction whose answer was lost can be sent again: ZooKeeper itself
finds out whether the first one was in force (decision 12).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, RolledBackError, RuntimeInconsistency
from kazoo.security import ACL, make_acl, make_digest_acl_credential

from ardea.state.address import MOST_AT_ONCE, Address
from ardea.state.manager import TooLarge, Unavailable
from ardea.state.session import Session

FOLDER = b"ardea-folder\n"
"""What a node that has children holds; those of Ardea's nodes that have data begin otherwise."""

_WRITERS = ".ardea/writers"
_SHARED = make_acl("world", "anyone", read=True, create=True, delete=True)
"""Of folders that topologies with credentials of their own share; what is not empty cannot be deleted."""

Operation = tuple[str, dict[str, Any]]
"""A method of kazoo's transaction, and its arguments."""


class Raced(Exception):  # noqa: N818
    """Somebody changed what a transaction was built upon.  Nothing was changed by it; the cause says what it met."""


class _Unsure(Exception):  # noqa: N818
    """Whether the transaction is in force cannot be known."""


@dataclass(slots=True)
class _Receipt:
    path: str
    generation: int
    version: int = 0


def _owner(address: Address) -> tuple[str, str]:
    """Whom nodes belong to, as an ACL has it."""
    if address.credential:
        return "digest", make_digest_acl_credential(*address.credential.split(":", 1))
    if address.secrets and (found := address.secrets.sasl):
        return "sasl", found[0]
    return "world", "anyone"


class Transactions:
    """Those of one process, one at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._writing = threading.Lock()
        self._receipt: _Receipt | None = None
        grant = functools.partial(make_acl, *_owner(session.address))
        self.folder_acl: list[ACL] = [grant(all=True)]
        # Without CREATE: ZooKeeper itself keeps children away from a node that has data.
        self.node_acl: list[ACL] = [grant(read=True, write=True, admin=True)]

    def commit(self, operations: Sequence[Operation], what: str) -> tuple[int, int]:
        """All of them or none, once.

        Returns:
            The transaction's zxid, and the generation of the session in which it was made.

        Raises:
            Raced: an operation does not fit what is there.
            Unavailable: nobody answers.
            TooLarge: ZooKeeper does not take so much at once.
            StateError: not allowed, or the session expired before the answer.
        """
        size = sum(len(arguments.get("value", b"")) + 200 for _, arguments in operations)
        if size > MOST_AT_ONCE:
            raise TooLarge(
                f"cannot {what}: {size:,} bytes in one transaction, ZooKeeper takes {MOST_AT_ONCE:,}; "
                "nothing was changed",
                hint="a smaller topology, or less in its configuration",
            )
        with self._writing:
            while True:
                receipt = self._receipt = self._receipt or self._make_receipt(what)
                try:
                    zxid = self._commit(receipt, operations, what)
                except _Unsure:
                    self._receipt = None
                    raise Unavailable(
                        f"cannot {what}: the session with ZooKeeper expired before the answer came; the change may or "
                        "may not be in force: read it again before relying on it",
                        hint="repeat the command: each one can be",
                    ) from None
                except Raced:
                    raise
                except BaseException:
                    self._receipt = None  # the transaction may still come into force, on the old receipt
                    raise
                if zxid is not None:
                    receipt.version += 1
                    return zxid, receipt.generation
                self._receipt = None

    def _commit(self, receipt: _Receipt, operations: Sequence[Operation], what: str) -> int | None:
        """The zxid; None if the receipt is gone, with the session, and nothing was changed."""
        attempts = 0

        def send(client: Any) -> list[Any]:
            nonlocal attempts
            attempts += 1
            transaction = client.transaction()
            transaction.set_data(receipt.path, b"", receipt.version)
            for method, arguments in operations:
                getattr(transaction, method)(**arguments)
            return [transaction.commit_async()]

        (results,) = self._session.call(send, what)
        if isinstance(results, Exception):
            raise self._session.refusal(results, what)
        failure = next((r for r in results if _failed(r)), None)
        if failure is None:
            return int(results[0].mzxid)
        if failure is results[0] and isinstance(failure, BadVersionError) and attempts > 1:
            return self._read_receipt(receipt, what)
        if failure is results[0]:
            if attempts > 1:
                raise _Unsure
            return None
        raise Raced(failure) from failure

    def _make_receipt(self, what: str) -> _Receipt:
        while True:
            generation = self._session.generation
            answer = self._create(f"{self._session.address.root}/{_WRITERS}/", b"", self.node_acl, what, receipt=True)
            if isinstance(answer, NoNodeError):
                self.make_folders(_WRITERS, what)
            elif isinstance(answer, Exception):
                raise self._session.refusal(answer, what)
            elif generation == self._session.generation:
                return _Receipt(answer, generation)

    def _read_receipt(self, receipt: _Receipt, what: str) -> int:
        """The zxid of the transaction that raised the receipt last."""
        root, path = self._session.address.root, receipt.path
        _, found = self._session.call(lambda client: [client.sync_async(root), client.exists_async(path)], what)
        if found is None or isinstance(found, Exception):
            raise _Unsure
        return int(found.mzxid)

    def _create(self, path: str, value: bytes, acl: list[ACL], what: str, *, receipt: bool = False) -> Any:
        def send(client: Any) -> list[Any]:
            return [client.create_async(path, value, acl, ephemeral=receipt, sequence=receipt)]

        return self._session.call(send, what)[0]

    def make_folders(self, path: str, what: str) -> None:
        """The folders of ``root/path``, where they are missing; those above the root are anybody's."""
        root = self._session.address.root
        whole = f"{root}/{path}"
        for end in [place for place, letter in enumerate(whole) if letter == "/" and place] + [len(whole)]:
            acl = self.folder_acl if end >= len(root) else [_SHARED]
            answer = self._create(whole[:end], FOLDER, acl, what)
            if isinstance(answer, Exception) and not isinstance(answer, NodeExistsError):
                raise self._session.refusal(answer, what)


def _failed(result: Any) -> bool:
    """Whether this is the operation for whose sake the transaction was refused."""
    return isinstance(result, Exception) and not isinstance(result, RolledBackError | RuntimeInconsistency)

"""What the control topic says about a state's transactions.  Pure.

A record for each partition of a state, the newest of which counts: key ``[name, partition]``, value
``[txid, partitions]``, both JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ardea.errors import FailedException, UserError


class Committed(NamedTuple):
    """The last transaction of a partition, and of how many partitions the state was."""

    txid: int
    partitions: int


def encode(name: str, partition: int, committed: Committed) -> tuple[bytes, bytes]:
    """Key and value."""
    return msgspec.json.encode([name, partition]), msgspec.json.encode(list(committed))


def decode(name: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> dict[int, Committed]:
    """By partition, of one state; records in the order of the topic.  Others' are passed over."""
    found: dict[int, Committed] = {}
    for key, value in records:
        if key is None or value is None:
            continue
        try:
            owner, partition = msgspec.json.decode(key, type=tuple[str, int])
            if owner == name:
                found[partition] = Committed(*msgspec.json.decode(value, type=tuple[int, int]))
        except ValueError:
            continue
    return found


def resume(name: str, found: dict[int, Committed], partition: int, partitions: int) -> int:
    """The last transaction that this partition has committed; 0: none.

    Raises:
        UserError: the state had another number of partitions, and not all have committed the same transaction: the
            tuples of the next one would be shared out differently.
    """
    newest = max(found.values(), default=None)
    if newest is None:
        return 0
    if newest.partitions == partitions:
        return found[partition].txid if partition in found else 0
    last = {number: found[number].txid if number in found else 0 for number in range(newest.partitions)}
    if len(set(last.values())) > 1:
        raise UserError(
            f"state {name} had {newest.partitions} partitions, has {partitions} now, and some have not committed"
            f" transaction {newest.txid}",
            hint=f"Start it once with {newest.partitions} tasks, and change the number when all is committed.",
        )
    return newest.txid


def is_committed(name: str, txid: int, last: int) -> bool:
    """Whether there is nothing to write, ``last`` being the last transaction of the partition.

    Raises:
        FailedException: the state is ahead of the topology.
    """
    if txid < last:
        raise FailedException(
            f"state {name} has committed transaction {last}, and {txid} comes now: its topology was renamed, or its"
            " transactions were removed; give the state another name, or keep those"
        )
    return txid == last

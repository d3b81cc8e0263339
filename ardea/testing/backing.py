"""What every backing map of ardea.trident must do: for the tests of whoever writes one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ardea.errors import FailedException
from ardea.trident import BackingMap, OpaqueValue
from ardea.trident.keys import as_keys

Key = tuple[Any, ...]
ODD_KEYS: list[Key] = [(math.nan,), ("a", math.nan), ((1, ("b", None)),)]
KEYS: list[Key] = [("a",), ("a", 1), (b"a",), ("ä", None), (2.5, "x" * 300), ("new\nline and space",), *ODD_KEYS]


def check_backing_map(make: Callable[[int], BackingMap], *, outlives: bool = True) -> None:
    """Runs a backing map through its contract.

    Args:
        make: opens a partition, empty at first, whose values are ``OpaqueValue``; called again for the same one it is
            what a task's next life gets.
        outlives: whether values outlive the life of a task; else the other half is left out.

    Raises:
        AssertionError: it does something else; the message says what.
    """
    values = [OpaqueValue(1, [number, "text", None], number or None) for number in range(len(KEYS))]
    first = make(0)
    _expect("of an empty map", first.multi_get(KEYS), [None] * len(KEYS))
    _expect("of no keys", first.multi_get([]), [])
    first.multi_put(KEYS, values)
    _expect("after a put", first.multi_get(KEYS), values)
    _expect("in another order, with a missing key", first.multi_get([KEYS[1], ("b",), KEYS[0]])[1], None)
    later = OpaqueValue(2, {"deep": [1]}, values[0].current)
    first.multi_put(KEYS[:1], [later])
    first.multi_put(KEYS[1:2], [later])
    _expect("after two more puts", first.multi_get(KEYS[:3]), [later, later, values[2]])
    many: list[Key] = [("many", number) for number in range(2000)]
    first.multi_put(many, [OpaqueValue(3, number, None) for number, _ in enumerate(many)])
    _expect("of many keys", [value.current for value in first.multi_get(many)], list(range(2000)))
    if not outlives:
        first.close()
        return
    second = make(0)
    _expect("in the next life", second.multi_get(KEYS[1:3]), [later, values[2]])
    _expect("keys_of the last transaction", sorted(second.keys_of(3)), many)
    _expect("keys_of a transaction that wrote nothing", second.keys_of(4), [])
    _expect("a write of a task that was replaced", _refused(first, OpaqueValue(4, "late", None)), True)
    _expect("after that", second.multi_get(KEYS[:1]), [later])
    _expect("a key that nobody had touched since", _refused(first, OpaqueValue(4, "late", None), ("untouched",)), True)
    _expect("after that, too", second.multi_get([("untouched",)]), [None])
    second.multi_put(KEYS[:1], [OpaqueValue(4, "new", None)])
    _expect("after a write of the new owner", second.multi_get(KEYS[:1])[0].current, "new")
    _expect("keys_of its transaction", second.keys_of(4), KEYS[:1])
    second.multi_put(ODD_KEYS, [OpaqueValue(5, "odd", None)] * len(ODD_KEYS))
    _expect("keys_of with NaN and tuples in keys", set(as_keys(second.keys_of(5))), set(ODD_KEYS))
    second.multi_put(KEYS[:1], [OpaqueValue(6, "new", None)])
    other = make(1)
    other.multi_put([("other",)], [OpaqueValue(6, 1, None)])
    _expect("keys_of with another partition beside it", second.keys_of(6), KEYS[:1])
    for backing in (first, second, other):
        backing.close()


def _refused(backing: BackingMap, value: OpaqueValue, key: Key = KEYS[0]) -> bool:
    try:
        backing.multi_put([key], [value])
    except FailedException:
        return True
    return False


def _expect(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise AssertionError(f"{what}: {_short(found)} where {_short(expected)} was expected")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:300]}..."

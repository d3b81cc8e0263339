"""Whether a state backend keeps what it is given: for every kind of key, and when other tasks read its snapshots."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import random
import tempfile
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from ardea.backends.bases import MemoryBackend
from ardea.backends.contract import PARTS, Backend, Base
from ardea.backends.memory import KeyedTable, Lower
from ardea.backends.values import SCALARS, Packed, Values
from ardea.protocol.dict_keys import as_key
from ardea.snapshots.key_groups import Keys
from ardea.snapshots.pieces import HEAD
from ardea.snapshots.state_file import decode_state, encode_piece

GROUPS = 24
TTL = 80.0
ONE = Keys("checked", 0, 1, GROUPS, 1)
ZONE = dt.timezone(dt.timedelta(hours=2))
INSTANT = dt.datetime(2020, 2, 29, 12, tzinfo=dt.UTC)
LOCAL = INSTANT.replace(tzinfo=None)

EQUAL: list[list[Any]] = [
    [1, 1.0, True, Decimal("1.00")], [0, -0.0, False, Decimal(0)], [-1], [(1 << 63) - 1], [1 << 63, float(1 << 63)],
    [1e300], [1 << 70, float(1 << 70)], [-(1 << 63), float(-(1 << 63))], [0.5, Decimal("0.5")], [0.1], [Decimal("0.1")],
    [Decimal("1e999999")], [math.inf], [-math.inf], [float("nan"), Decimal("nan"), math.nan],
    [None], [""], ["heron"], ["Ardea cinérea"], ["a\0"], [b""], [b"heron", bytearray(b"heron"), memoryview(b"heron")],
    [(), []], [("a", "bc"), ["a", "bc"]], [["ab", "c"]], [[1, [2, None]], (True, (2.0, None))], [("user", 42)],
    [("a", (1, float("nan"))), ["a", [1.0, math.nan]]],
    [dt.date(2020, 2, 29)], [LOCAL], [LOCAL.replace(microsecond=1)], [INSTANT, INSTANT.astimezone(ZONE)],
    [dt.time(12, 30)], [dt.time(14, 30, tzinfo=ZONE)], [dt.timedelta(days=-1, microseconds=7)],
    [uuid.UUID("12345678-1234-5678-1234-567812345678")],
]  # fmt: skip
"""Keys of docs/keys.md: those of one list are one key."""
VALUES: list[Any] = [
    0, -1, 1 << 70, 1.5, -0.0, math.inf, True, None, "", "text", b"\0bytes", Decimal("1.20"), dt.date(2026, 1, 2),
    LOCAL, INSTANT, dt.time(1, 2), dt.timedelta(1, 2, 3), uuid.UUID(int=1), [1, ["x"]], (1, "x"), {"a": [1]},
    "x" * 100_000,
]  # fmt: skip


def check_state_backend(make: Callable[[Path], Backend], *, steps: int = 300, seed: int = 0) -> None:
    """Has a state backend do what the engine does; each check that fails says what an author has to mend.

    Args:
        make: makes one of a folder that is not there yet: the class that ``topology.stateful.backend`` is to name.
        steps: random ones, in each of the checks that take some.
        seed: decides which.

    Raises:
        AssertionError: a base loses a key, keeps one too long, or gives another value.
    """
    check = _Check(make, random.Random(seed), steps)
    for step in (
        check.states_are_apart, check.equal_keys_are_one, check.values_come_back, check.it_is_a_dict,
        check.values_live_as_long_as_they_should, check.values_wait_for_a_time, check.snapshots_move,
        check.nothing_is_left,
    ):  # fmt: skip
        step()


class _Check:
    def __init__(self, make: Callable[[Path], Backend], chance: random.Random, steps: int) -> None:
        self._make, self._chance, self._steps = make, chance, steps

    def equal_keys_are_one(self) -> None:
        """As docs/keys.md says."""
        with _backend_of(self._make) as backend:
            for place, forms in enumerate(EQUAL):
                base = backend.base(f"state-{place}", ONE, None, float)
                for number, form in enumerate(forms):
                    base.add([(as_key(form), number)], 0.0)
                    found = [base.get(as_key(other)) for other in forms]
                    assert found == [number] * len(forms), f"{forms} are one key (docs/keys.md), and read as {found}"
                assert len(base) == 1, f"{forms} are one key, and len() is {len(base)}"
                assert as_key(forms[-1]) in base, f"{forms[-1]!r} was added, and is not in the base"
        with _backend_of(self._make) as backend:
            base = backend.base("state", ONE, None, float)
            base.add([(as_key(forms[0]), number) for number, forms in enumerate(EQUAL)], 0.0)
            assert len(base) == len(EQUAL), "keys that are not equal were taken for one: use the canonical bytes"
            for number, forms in enumerate(EQUAL):
                assert base.get(as_key(forms[-1])) == number, f"{forms[-1]!r} reads as another key's value"
            _see_chunks(base, {as_key(forms[0]): number for number, forms in enumerate(EQUAL)})

    def values_come_back(self) -> None:
        """Of all types that are kept, those that could be changed in place packed."""
        kept = [Values().kept(value) for value in VALUES]
        kept.append(Packed(b"m" + bytes(range(256))))
        with _backend_of(self._make) as backend:
            base = backend.base("state", ONE, None, float)
            base.add(list(enumerate(kept)), 0.0)
            for number, value in enumerate(kept):
                found = base.get(number)
                assert (type(found), found) == (type(value), value), f"{value!r} was added, and {found!r} is read"
            assert base.get("missing", "none") == "none", "get() of a missing key does not give the default"
            assert base.get("missing") is None, "get() of a missing key gives something"

    def it_is_a_dict(self) -> None:
        """Whatever is added and removed."""
        with _backend_of(self._make) as backend:
            base, plain = backend.base("state", ONE, None, float), dict[Any, Any]()
            for _ in range(self._steps):
                rows = {self._key(): self._value() for _ in range(self._chance.choice((0, 1, 3, 20)))}
                gone = [self._key() for _ in range(self._chance.choice((0, 1, 10)))]
                base.add(rows.items(), 0.0)
                base.remove(gone)
                plain.update(rows)
                for key in gone:
                    plain.pop(key, None)
                key = self._key()
                assert base.get(key, "none") == plain.get(key, "none"), f"{key!r} is read wrongly"
                assert (key in base) == (key in plain), f"{key!r} in base is wrong"
                assert len(base) == len(plain), f"len() is {len(base)}, and there are {len(plain)} keys"
            found = list(base)
            assert len(found) == len(set(found)), "iterating gives a key twice"
            assert set(found) == plain.keys(), "iterating does not give all keys"
            _see_chunks(base, plain)

    def states_are_apart(self) -> None:
        """One backend has all states of a task."""
        with _backend_of(self._make) as backend:
            bases = [backend.base(name, ONE, ttl, lambda: 0.0) for name, ttl in (("a", None), ("b", TTL), ("c", None))]
            for number, base in enumerate(bases):
                base.add([("key", number), (number, number)], 0.0)
            bases[2].remove(["key", 0, 1])
            for number, base in enumerate(bases):
                expected = {number: number} if number == 2 else {"key": number, number: number}
                found = {key: base.get(key) for key in base}
                assert found == expected, f"{found}, not {expected}: do states of a task see one another's keys?"

    def values_live_as_long_as_they_should(self) -> None:
        """All of their time, and an eighth of it longer at most."""
        now = 1000.0
        with _backend_of(self._make) as backend:
            base, plain = backend.base("state", ONE, TTL, lambda: now), dict[Any, tuple[Any, float]]()
            for _ in range(self._steps):
                now += self._chance.choice((0.0, 1.0, 5.0, 30.0))
                rows = {key: self._value() for key in self._chance.sample(range(40), self._chance.choice((0, 1, 5)))}
                base.add(rows.items(), now)
                plain.update({key: (value, now) for key, value in rows.items()})
                if self._chance.random() < 0.2:
                    gone = self._chance.randrange(40)
                    base.remove([gone])
                    plain.pop(gone, None)
                if self._chance.random() < 0.3:
                    base.prune()
                held = _see_lives(base, plain, now)
                written = {row[0]: chunk.written for chunk in base.chunks() for row in chunk.rows}
                assert written.keys() == held, "chunks() has other keys than iterating"
                for key, stamp in written.items():
                    late = stamp - plain[key][1]
                    assert 0 <= late <= TTL / PARTS, f"chunks() says that {key!r} was written {late} s after it was"

    def values_wait_for_a_time(self) -> None:
        """What was written before there is a time counts from when there is one."""
        now = -math.inf
        with _backend_of(self._make) as backend:
            base = backend.base("state", ONE, TTL, lambda: now)
            base.add([("early", 1), ("later", 1)], 0.0)
            base.prune()
            assert set(base) == {"early", "later"}, "values that were written at no time are gone before there is one"
            now = 5000.0
            assert not base.expired(0.0), "what was written at no time is gone"
            base.prune()
            base.add([("later", 2)], now + TTL / 2)
            assert {row[0]: chunk.written for chunk in base.chunks() for row in chunk.rows} == {
                "early": now,
                "later": now + TTL / 2,
            }, "values that were written at no time do not count from the first prune() at which there is one"
            now += TTL
            assert dict.fromkeys(base) == {"later": None}, "values without a time have none after there is one"

    def snapshots_move(self) -> None:
        """Bases and deltas of some tasks are read by more and by fewer, of this backend and of memory."""
        makes: list[Callable[[Path], Backend]] = [self._make, MemoryBackend]
        content: dict[Any, Any] = {}
        files: list[bytes] = []
        for tasks, make in zip((1, 3, 2, 1), (makes[0], makes[1], makes[0], makes[0]), strict=True):
            former, files = files, []
            found: dict[Any, Any] = {}
            for index in range(tasks):
                with _backend_of(make) as backend:
                    keys = Keys("checked", index, tasks, GROUPS, 1)
                    files += self._lived(backend, keys, former, content, found)
            assert found == content, f"{len(content)} keys were stored, and {tasks} tasks have {len(found)} of them"

    def _lived(
        self, backend: Backend, keys: Keys, files: list[bytes], content: dict[Any, Any], found: dict[Any, Any]
    ) -> list[bytes]:
        """A task reads, and writes a base and a delta; what it has and writes are noted."""
        lower = Lower("state", keys, base=backend.base("state", keys, None, float))
        table = KeyedTable(lambda: 0, lower)
        for file in files:
            for piece in decode_state(file, "the file of a former task", keys.owned):
                lower.load(piece)
        written = []
        for full in (True, False):
            for _ in range(100):
                key = self._key()
                if keys.group(key) in keys.owned:
                    self._change(table, content, key)
            table.freeze()
            written.append(HEAD + b"".join(map(encode_piece, lower.pieces(full=full))))
            lower.stored()
            while not lower.settle():
                pass
        found |= table.copy()
        return written

    def _change(self, table: KeyedTable, content: dict[Any, Any], key: Any) -> None:
        if self._chance.random() < 0.3:
            table.pop(key, None)
            content.pop(key, None)
        elif isinstance(content.get(key), list):  # in place
            table[key].append(1)
            content[key] = [*content[key], 1]
        else:
            value = self._chance.choice(([0], 1, "x", [("y",)]))
            table[key] = list(value) if isinstance(value, list) else value
            content[key] = [["y"]] if value == [("y",)] else value

    def nothing_is_left(self) -> None:
        """A backend begins empty.  One that is closed while it is read may raise, but does not hang."""
        with tempfile.TemporaryDirectory(prefix="ardea-check-", ignore_cleanup_errors=True) as folder:
            for life in ("1", "2"):
                backend = self._make(Path(folder) / life)
                base = backend.base("state", ONE, None, float)
                assert len(base) == len(list(base)) == 0, "a new backend has keys of a former one"
                base.add([(number, number) for number in range(3000)], 0.0)
                chunks = base.chunks()
                next(chunks)
                backend.close()
                with contextlib.suppress(Exception):
                    list(chunks)

    def _key(self) -> Any:
        return as_key(self._chance.choice((self._chance.randrange(200), self._chance.choice(EQUAL)[0])))

    def _value(self) -> Any:
        value = self._chance.choice(VALUES[:-1])
        return value if type(value) in SCALARS else Packed.of(value)


@contextlib.contextmanager
def _backend_of(make: Callable[[Path], Backend]) -> Iterator[Backend]:
    with tempfile.TemporaryDirectory(prefix="ardea-check-", ignore_cleanup_errors=True) as folder:
        backend = make(Path(folder) / "1")
        try:
            yield backend
        finally:
            backend.close()


def _see_chunks(base: Base, plain: dict[Any, Any]) -> None:
    chunks = list(base.chunks())
    rows = [row for chunk in chunks for row in chunk.rows]
    assert len(rows) == len(plain), "chunks() does not give each key once"
    assert dict(rows) == plain, "chunks() gives other keys or values than were added"
    for chunk in chunks:
        groups = {ONE.group(key) for key, _ in chunk.rows}
        assert groups <= {chunk.group}, f"a chunk of group {chunk.group} has keys of {groups}"
    for _, some in groupby(chunks, lambda chunk: chunk.written):
        assert all(a.group <= b.group for a, b in pairwise(some)), "chunks() is not in the order of groups"


def _see_lives(base: Base, plain: dict[Any, tuple[Any, float]], now: float) -> set[Any]:
    held = set(base)
    assert len(base) == len(held), f"len() is {len(base)}, and iterating gives {len(held)} keys that are not gone"
    for key, (value, written) in plain.items():
        assert (key in base) == (key in held), f"{key!r} is there for one who iterates, or for `in`, and not for both"
        assert base.get(key, "none") == (value if key in held else "none"), f"{key!r} reads wrongly"
        assert key in held or now >= written + TTL, f"{key!r} is gone {now - written} s after it was written, of {TTL}"
        assert key not in held or now < written + TTL + TTL / PARTS, f"{key!r} is there {now - written} s after"
    assert held <= plain.keys(), "a key that was removed is there"
    return held

"""Values of configuration keys: what is accepted, and what it becomes.

Each function takes what an author or operator wrote and returns the normal form, or raises ValueError with what was
expected ("a number of bytes ...").
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

from ardea.errors import is_text

N = TypeVar("N", int, float)

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B\s*", re.IGNORECASE)
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)\s*", re.IGNORECASE)
_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


_MOST = (1 << 63) - 1
_DEEPEST = 50
_PLAIN = frozenset((type(None), bool, int, float, str, bytes))
_shown = reprlib.Repr()
_shown.maxlevel, _shown.maxstring, _shown.maxother, _shown.maxlong = 4, 200, 200, 200
_shown.maxdict = _shown.maxlist = _shown.maxtuple = 20


def size(value: Any) -> int:
    """Bytes: an int, or a text with a unit.  KB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return _bounded(value)
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None or (match[3] and not match[2]):
        raise ValueError("a number of bytes, or a text like '256MB' (millions) or '512MiB' (2^20)")
    base = 1024.0 if match[3] else 1000.0
    return round(_bounded(float(match[1]) * base ** _POWERS[match[2].upper()]))


def integer(value: Any) -> int:
    """A whole number, not below zero."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a whole number, 0 or more")
    return _bounded(value)


def count(value: Any) -> int:
    """A whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("a whole number, 1 or more")
    return _bounded(value)


def number(value: Any) -> float:
    """A finite number, not below zero."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError("a number, 0 or more")
    return float(_bounded(value))


def share(value: Any) -> float:
    """A part of the whole, from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return float(value)


def positive(value: Any) -> float:
    """A finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError("a number above 0")
    return float(_bounded(value))


def duration(value: Any) -> float:
    """Seconds above zero: a number, or a text with a unit: ms, s, min, h, d."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        value = float(match[1]) * _SECONDS[match[2].lower()]
    try:
        return positive(value)
    except ValueError:
        raise ValueError("a number of seconds above 0, or a text like '30 s', '15 min', '1 h' or '7 d'") from None


def seconds_or_never(value: Any) -> float | None:
    """A finite number, not below zero; None and ``never``: there is no end."""
    if value is None or value == "never":
        return None
    try:
        return number(value)
    except ValueError as error:
        raise ValueError(f"{error}, or never") from None


def boolean(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return _exact(value)


def texts(value: Any) -> list[str]:
    """A list of texts; one text with commas is split."""
    parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) and part for part in parts):
        raise ValueError("a list of texts")
    return [_exact(part) for part in parts]


def slots(value: Any) -> int | list[int]:
    """A number of slots, or their ports."""
    if isinstance(value, list | tuple) and value:
        return [count(port) for port in value]
    return count(value)


def choice(*options: str) -> Callable[[Any], str]:
    """One of the options."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in options:
            raise ValueError("one of " + ", ".join(options))
        return _exact(value)

    return check


def choice_or_class(*options: str) -> Callable[[Any], str]:
    """One of the options, or a class as ``package.module:Class``."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or not (value in options or _CLASS.fullmatch(value)):
            raise ValueError(f"one of {', '.join(options)}, or a class as package.module:Class")
        return _exact(value)

    return check


def mapping(unit: Callable[[Any], Any], example: str) -> Callable[[Any], dict[str, Any]]:
    """Component -> value, as a dict or as ``"split:2,count:0.5"``."""

    def check(value: Any) -> dict[str, Any]:
        try:
            if isinstance(value, str):
                entries = [entry.rpartition(":") for entry in value.split(",")]
                pairs = {text(name.strip()): unit(_plain(amount.strip())) for name, _, amount in entries}
            elif isinstance(value, Mapping):
                pairs = {text(name): unit(amount) for name, amount in value.items()}
            else:
                raise ValueError
        except ValueError:
            raise ValueError(f"component to value, as a dict or as a text like {example!r}") from None
        return pairs

    return check


def pairs(value: Any) -> dict[str, str]:
    """Name -> text, as a dict or as ``"name=value,name=value"``."""
    if isinstance(value, str):
        entries = [entry.partition("=") for entry in value.split(",")]
        value = {name.strip(): written.strip() for name, _, written in entries}
    if not isinstance(value, Mapping) or not all(
        isinstance(name, str) and name and isinstance(written, str) for name, written in value.items()
    ):
        raise ValueError("names and texts, as a dict or as a text like 'team=data,tier=gold'")
    return {_exact(name): _exact(written) for name, written in value.items()}


def objects(value: Any) -> list[dict[str, Any]]:
    """A list of dicts, as Kubernetes has them."""
    if not isinstance(value, list | tuple) or not all(isinstance(entry, Mapping) for entry in value):
        raise ValueError("a list of dicts")
    return [plain(entry) for entry in value]


def one_object(value: Any) -> dict[str, Any]:
    """A dict, as Kubernetes has it."""
    if not isinstance(value, Mapping):
        raise ValueError("a dict")
    return {text(key): plain(entry) for key, entry in value.items()}


def objects_by_name(value: Any) -> dict[str, dict[str, Any]]:
    """Name -> dict."""
    if not isinstance(value, Mapping) or not all(isinstance(entry, Mapping) for entry in value.values()):
        raise ValueError("""names and a dict for each, as '{"jsonlines": {"path": "m.jsonl"}}'""")
    return {text(name): plain(entry) for name, entry in value.items()}


def plain(value: Any, depth: int = 0) -> Any:
    """A value that every process builds equally: None, bool, number, text, bytes, and lists and dicts of them."""
    if depth > _DEEPEST:
        raise ValueError(f"a plain value, whose lists and dicts are nested {_DEEPEST} deep at most")
    if isinstance(value, int) and not -_MOST <= value <= _MOST:
        raise ValueError(f"a plain value, whose whole numbers are {_MOST} at most")
    if type(value) in _PLAIN or (isinstance(value, int | str) and isinstance(value, Enum)):
        if isinstance(value, str):
            _exact(value)
        return value  # numpy's numbers and texts are none: nobody else could read them
    if isinstance(value, tuple):
        return tuple(plain(entry, depth + 1) for entry in value)
    if isinstance(value, list):
        return [plain(entry, depth + 1) for entry in value]
    if isinstance(value, Mapping):
        return {text(key): plain(entry, depth + 1) for key, entry in value.items()}
    raise ValueError("a plain value (None, bool, number, text, bytes, or lists and dicts of them)")


def shown(value: Any) -> str:
    """A value for a message: not the whole of one that is large, or deep."""
    try:
        return _shown.repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of thousands of digits"


def _exact(written: str) -> str:
    """As Python's own text: no encoder takes numpy's, and ``str()`` of an enumeration's member may be its name."""
    exact = str.__str__(written)
    if not is_text(exact):
        raise ValueError("texts that UTF-8 has, as the names of some files are not")
    return exact


def _bounded(value: N) -> N:
    """What fits into the numbers that processes exchange."""
    if value > _MOST:
        raise ValueError(f"{_MOST} at most")
    return value


def _plain(amount: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(amount)
        except ValueError:
            continue
    return amount

"""NumPy and Arrow scalars as the Python values they stand for, so that they travel and meet like those."""

from __future__ import annotations

from typing import Any

import numpy as np

from ardea.errors import EncodingError


def type_name(value: Any) -> str:
    """What an error calls the type of ``value``: ``set``, ``numpy.ndarray``, ``shop.Order``."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def unwrap(value: Any) -> Any:
    """The Python value of a NumPy scalar, or of anything with ``as_py`` (Arrow); other values as they are.

    Raises:
        EncodingError: Python has no value for it, such as a longdouble or a time with nanoseconds.
    """
    if isinstance(value, np.generic):
        return _from_numpy(value)
    as_py = getattr(type(value), "as_py", None)
    if as_py is None:
        return value
    try:
        return as_py(value)
    except (ValueError, OverflowError) as error:
        raise EncodingError(
            f"Arrow cannot turn a value of type {type_name(value)} into a Python value: {error}"
        ) from error


def _from_numpy(value: np.generic[Any]) -> Any:
    plain = value.item()
    if isinstance(value, np.datetime64 | np.timedelta64) and isinstance(plain, int):
        # What Python's datetime and timedelta cannot hold, NumPy hands out as a bare count: a silent change of meaning.
        plain = _whole_microseconds(value)
    if isinstance(plain, np.generic):
        raise EncodingError(
            f"Python has no value for {value!s}, of type {type_name(value)}",
            hint="Round it to microseconds or to float64, or send it as text.",
        )
    return plain


def _whole_microseconds(value: np.datetime64[Any] | np.timedelta64[Any]) -> Any:
    """``value`` as datetime or timedelta if that loses nothing, else unchanged."""
    if np.datetime_data(value.dtype)[0] not in {"ns", "ps", "fs", "as"}:
        return value
    rounded = value.astype(f"{value.dtype.kind}8[us]")
    plain = rounded.item()
    return value if isinstance(plain, int) or rounded != value else plain

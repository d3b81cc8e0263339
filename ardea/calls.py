"""Whether the methods that an author writes can be called as they will be."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from ardea.errors import Misuse

Calls = Mapping[str, tuple[str, ...]]
"""Methods, and with what they are called, by position."""


def wrong_calls(owner: Any, calls: Calls, *, may_yield: str = "") -> Iterator[str]:
    """A sentence for each of these methods of a class, or of an object, that cannot be called so.

    ``may_yield``: the one whose result is gone through, so that it may be a generator.
    """
    name_of = owner.__qualname__ if isinstance(owner, type) else type(owner).__qualname__
    for name, arguments in calls.items():
        method, call = getattr(owner, name, None), f"{name}({', '.join(arguments)})"
        if method is None:
            yield f"{name_of} has no {call}"
            continue
        if (kind := _does_nothing(method)) and (kind, name) != ("a generator", may_yield):
            yield f"{name_of}.{name} is {kind}: called by the engine, it would do nothing"
        if trouble := _trouble(method, *(("self", *arguments) if _is_unbound(owner, name) else arguments)):
            yield f"the engine calls {call}, which {name_of}.{name} does not take: {trouble}"


def not_made(cls: type) -> Iterator[str]:
    """A sentence, if no object of the class can be made without arguments."""
    if trouble := _trouble(cls):
        yield f"the engine calls {cls.__qualname__}() without arguments, and that fails: {trouble}"


def left_out(owner: Any, base: type, name: str) -> bool:
    """Whether the method of a class, or of an object, is its base's own."""
    method = getattr(owner, name)
    return getattr(method, "__func__", method) is getattr(base, name)


def ran(owner: Any, name: str, returned: object) -> None:
    """Whether this method of an object has run: what it calls in turn may be async, which no class shows.

    Raises:
        Misuse: it has only made an object that nobody runs.
    """
    if inspect.iscoroutine(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        if inspect.iscoroutine(returned):
            returned.close()  # else Python warns, too, that nobody has awaited it
        method, kind = f"{type(owner).__qualname__}.{name}", type(returned).__name__
        raise Misuse(f"{method} returned {kind}, which nobody runs: called by the engine, it has done nothing")


def _is_unbound(owner: Any, name: str) -> bool:
    method = inspect.getattr_static(owner, name, None)
    binds = hasattr(type(method), "__get__") and not isinstance(method, staticmethod | classmethod)
    return isinstance(owner, type) and binds  # a class, or a partial of functools, gets no self


def _trouble(function: Any, *given: str) -> str:
    """Why it cannot be called with these, by position; empty: it can, as far as can be seen."""
    if isinstance(function, property | cached_property):
        return ""  # what it gives is known of an object alone
    try:
        inspect.signature(function).bind(*given)
    except ValueError:  # Python has no signature of it
        return ""
    except TypeError as error:
        return str(error)
    return ""


def _does_nothing(method: Any) -> str:
    """Which kind of function it is whose call only makes an object; empty: it is none."""
    if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
        return "async"
    return "a generator" if inspect.isgeneratorfunction(method) else ""

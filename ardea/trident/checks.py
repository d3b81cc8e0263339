"""What an operation is given, looked at where the author writes it: nothing of it would fail before a batch runs."""

from __future__ import annotations

from typing import Any

from ardea.errors import TopologyError
from ardea.grouping import CustomStreamGrouping, problems_of_grouping
from ardea.trident.operations import Operation


def check_function(method: str, function: Any, *kinds: type) -> None:
    """Raises TopologyError unless it is callable, or an object of a kind that does for a function there."""
    uninstantiated = isinstance(function, type) and issubclass(function, Operation)
    if uninstantiated or not (callable(function) or isinstance(function, kinds)):
        wanted = "".join(f" or a {kind.__name__} object" for kind in kinds)
        raise TopologyError([f"{method}() takes a function{wanted}, and {function!r} is none"])


def check_object(method: str, given: Any, kind: type, hint: str | None = None) -> None:
    """Raises TopologyError unless it is an object of that class."""
    if not isinstance(given, kind):
        raise TopologyError([f"{method}() takes a {kind.__name__} object, and {given!r} is none"], hint=hint)


def check_grouping(method: str, given: Any) -> None:
    """Raises TopologyError unless it is a custom grouping that can be asked."""
    check_object(method, given, CustomStreamGrouping)
    if wrong := [*problems_of_grouping(given)]:
        raise TopologyError([f"{method}(): {problem}" for problem in wrong])

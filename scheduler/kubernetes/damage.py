"""A root object that cannot be read disturbs no other topology."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ardea.errors import StateError


@contextlib.contextmanager
def reading(root: dict[str, Any]) -> Iterator[None]:
    """Around what reads a root object.

    Raises:
        StateError: something of it is missing, or cannot be decoded.
    """
    try:
        yield
    except (KeyError, ValueError) as error:
        metadata = root["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        why = f"it has no {error}" if isinstance(error, KeyError) else error
        raise StateError(
            f"ConfigMap {name}, the root of a topology, cannot be read: {why}",
            hint=f"put back what it had, or end the topology: `kubectl delete configmap {name}"
            f"{f' -n {namespace}' if namespace else ''}` removes all of it",
        ) from error

"""Manifests as people read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def as_yaml(manifests: Iterable[dict[str, Any]]) -> str:
    """Several documents; ``kubectl apply -f -`` takes them."""
    import yaml  # comes with the package kubernetes

    class Plain(yaml.SafeDumper):  # type: ignore[misc]
        def ignore_aliases(self, _data: Any) -> bool:
            """What stands twice is written twice."""
            return True

    return str(yaml.dump_all(manifests, Dumper=Plain, sort_keys=False))

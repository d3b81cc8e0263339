"""Manifests as people read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ardea.errors import UserError


def as_yaml(manifests: Iterable[dict[str, Any]], before: str = "", after: str = "") -> str:
    """Several documents; ``kubectl apply -f -`` takes them.  ``before`` and ``after`` are comments around them.

    Raises:
        UserError: PyYAML is not installed.
    """
    try:
        import yaml  # comes with the package kubernetes
    except ModuleNotFoundError as error:
        raise UserError(
            "YAML needs PyYAML, which is not installed; nothing was printed",
            hint="`pip install pyyaml`, or `-o json`",
        ) from error

    class Plain(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, _data: Any) -> bool:
            """What stands twice is written twice."""
            return True

    written = yaml.dump_all(manifests, Dumper=Plain, sort_keys=False)
    return f"{_comment(before)}{written}{_comment(after)}"


def _comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines())

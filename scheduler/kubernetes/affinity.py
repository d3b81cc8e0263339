"""Which nodes a pod's affinity allows.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Expression(msgspec.Struct, frozen=True):
    """What a label, or a field, of a node must be."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(msgspec.Struct, frozen=True, rename="camel"):
    """All of it must hold; an empty one holds nowhere."""

    match_expressions: tuple[Expression, ...] = ()
    match_fields: tuple[Expression, ...] = ()


class Required(msgspec.Struct, frozen=True, rename="camel"):
    """One of the terms must hold."""

    node_selector_terms: tuple[Term, ...]


class NodeAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """What is only preferred keeps no pod from any node."""

    required_during_scheduling_ignored_during_execution: Required | None = None


class Affinity(msgspec.Struct, frozen=True, rename="camel"):
    """Of a pod.  Affinity to other pods is no property of a node, and is not looked at."""

    node_affinity: NodeAffinity | None = None


def allows(affinity: Affinity, node: Mapping[str, Any]) -> bool:
    """Whether a pod with this affinity may be on the node, as Kubernetes decides it."""
    if affinity.node_affinity is None:
        return True
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return required is None or any(_holds(term, node) for term in required.node_selector_terms)


def _holds(term: Term, node: Mapping[str, Any]) -> bool:
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    asked = [(each, labels.get(each.key)) for each in term.match_expressions]
    asked += [(each, fields.get(each.key)) for each in term.match_fields]
    return bool(asked) and all(_is(value, expression) for expression, value in asked)


def _is(value: str | None, expression: Expression) -> bool:
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            return value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(value, expression.values, 1 if operator == "Gt" else -1)
        case _:
            return True  # the API server refuses it, or knows more


def _compares(value: str | None, values: tuple[str, ...], sign: int) -> bool:
    try:
        (bound,) = values
        return value is not None and sign * int(value) > sign * int(bound)
    except ValueError:
        return False

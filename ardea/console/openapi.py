"""The OpenAPI document: made of the table of routes and the types of their documents.  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ardea.console.desk import API, Parameter, Route
from ardea.console.documents import Problem
from ardea.console.tokens import Right

_REF = "#/components/schemas/{name}"
_NAMES = {
    "name": "a topology's name or id",
    "process": "a component, task or process; `_`: all",
    "task": "a task, such as `count-0`",
}

_KINDS = {
    "never": ("application/json",),
    "also": ("application/json", "text/event-stream"),
    "only": ("text/event-stream",),
}
_EVENTS = {
    "never": "",
    "also": " With `follow` it goes on as events, the data of each such a document.",
    "only": " The data of an event are such a document.",
}


def document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """The interface of these routes; ``version``: of Ardea."""
    types = [kind for route in routes for kind in (*route.gives, *((route.takes,) if route.takes else ()))]
    unique = list(dict.fromkeys((Problem, *types)))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REF)
    of_type = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(f"{API}{_plain(route.path)}", {})[route.method.lower()] = _operation(route, of_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ardea's console", "version": version, "description": "See docs/console.md."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, of_type: Mapping[Any, Any]) -> dict[str, Any]:
    schemas = [of_type[kind] for kind in route.gives]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    content = {kind: {"schema": schema} for kind in _KINDS[route.events]} if not route.file else {route.file: {}}
    right = "the token to act" if route.right is Right.ACT else "any token"
    found: dict[str, Any] = {
        "summary": route.about,
        "description": f"Needs {right}." + _EVENTS[route.events],
        "parameters": [*map(_in_path, re.findall(r"{(\w+)", route.path)), *map(_in_query, route.parameters)],
        "responses": {
            "200": {"description": "What was asked for", "content": content},
            "default": {
                "description": "Why not",
                "content": {"application/problem+json": {"schema": of_type[Problem]}},
            },
        },
    }
    if route.takes is not None:
        found["requestBody"] = {"content": {"application/json": {"schema": of_type[route.takes]}}}
    return found


def _plain(path: str) -> str:
    return re.sub(r":\w+}", "}", path)


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": _NAMES[name], "schema": {"type": "string"}}


def _in_query(parameter: Parameter) -> dict[str, Any]:
    return {"name": parameter.name, "in": "query", "description": parameter.about, "schema": dict(parameter.schema)}

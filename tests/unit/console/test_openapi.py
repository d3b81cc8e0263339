"""The OpenAPI document, against the routes and what they answer."""

from __future__ import annotations

import re

import msgspec
import pytest

from ardea.console.routes import ROUTES, interface
from tests.unit.console.conftest import ACT


def test_it_has_every_route(browser):
    told = browser.get("/openapi.json").json()
    assert told == msgspec.json.decode(msgspec.json.encode(interface()))
    there = {(path, method) for path, methods in told["paths"].items() for method in methods}
    assert there == {(f"/api/v1{re.sub(r':[a-z]+}', '}', r.path)}", r.method.lower()) for r in ROUTES}


@pytest.mark.parametrize("path", ["/topologies", "/topologies/Endless", "/topologies/Endless/plan"])
def test_an_answer_has_what_the_document_says(browser, submit, path):
    submit()
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    name = f"/api/v1{path.replace('Endless', '{name}')}"
    content = interface()["paths"][name]["get"]["responses"]["200"]["content"]
    checked(told, content["application/json"]["schema"])


def test_a_log_that_is_followed_is_a_stream_by_the_document_too(browser, submit):
    submit()
    path = "/topologies/Endless/logs/_"
    content = interface()["paths"]["/api/v1/topologies/{name}/logs/{process}"]["get"]["responses"]["200"]["content"]
    assert set(content) == {browser.get(path, ACT).headers["content-type"], "text/event-stream"}
    assert browser.get(f"{path}?since={10**9 + 1}", ACT).status_code == 400


def test_a_problem_has_what_the_document_says(browser):
    (schema,) = {
        str(each["responses"]["default"]["content"]["application/problem+json"]["schema"])
        for methods in interface()["paths"].values()
        for each in methods.values()
    }
    assert "Problem" in schema
    checked(browser.get("/topologies/Nothing").json(), {"$ref": "#/components/schemas/Problem"})


def checked(document, schema):
    """As far as msgspec's schemas go: references, unions, objects, arrays, types and constants."""
    if "$ref" in schema:
        checked(document, interface()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    elif "anyOf" in schema:
        assert any(passes(document, each) for each in schema["anyOf"]), (document, schema)
    elif "enum" in schema or "const" in schema:
        assert document in schema.get("enum", [schema.get("const")])
    elif (kind := schema.get("type")) == "object":
        assert isinstance(document, dict)
        assert set(schema.get("required", ())) <= document.keys()
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, value in document.items():
            assert name in properties or isinstance(others, dict), f"{name} is not in {sorted(properties)}"
            checked(value, properties.get(name, others))
    elif kind == "array":
        assert isinstance(document, list)
        for each in document:
            checked(each, schema.get("items", {}))
    elif kind is not None:
        types = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
        assert isinstance(document, types[kind]), (document, schema)


def passes(document, schema):
    try:
        checked(document, schema)
    except AssertionError:
        return False
    return True

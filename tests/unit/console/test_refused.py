"""Who gets nothing from the console, and why."""

from __future__ import annotations

import pytest

from ardea.console import pages
from ardea.console.actions import VERBS
from ardea.console.routes import ROUTES
from ardea.console.tokens import Right
from tests.unit.console.conftest import ACT, VIEW


def path_of(route):
    return route.path.replace(":path", "").format(name="Endless", task="a-0", process="_")


GETS = [path_of(route) for route in ROUTES if route.method == "GET"]
ACTS = [path_of(route) for route in ROUTES if route.method == "GET" and route.right is Right.ACT]


def problem(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert {"title", "status", "what", "where", "hint"} <= told.keys()
    assert told["status"] == answer.status_code
    return told


@pytest.mark.parametrize("token", [None, "x" * 32, VIEW[:-1], VIEW + "v", ""])
@pytest.mark.parametrize("path", [*GETS, "/nothing", "/../../etc/passwd"])
def test_nothing_is_said_without_a_token(browser, path, token):
    answer = browser.get(path, token)
    assert answer.status_code == 401
    assert "Endless" not in problem(answer)["what"]
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ACTS)
def test_rows_logs_and_stacks_need_the_token_to_act(browser, submit, path):
    submit()
    answer = browser.get(path, VIEW)
    assert (answer.status_code, problem(answer)["status"]) == (403, 403)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_actions_need_the_token_to_act_and_are_never_done_by_get(browser, submit, verb):
    submit()
    path = f"/topologies/Endless/{verb}"
    assert browser.post(path, token=VIEW).status_code == 403
    assert browser.post(path, token=None).status_code == 401
    for method in ("GET", "PUT", "DELETE", "PATCH", "HEAD"):
        answer = browser.ask(f"/api/v1{path}", ACT, method)
        assert answer.status_code in (404, 405), method


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:8081"},
        {"origin": "https://localhost:8080.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_foreign_page_gets_nothing_whatever_it_holds(browser, submit, headers):
    submit()
    assert browser.post("/topologies/Endless/kill", headers=headers).status_code == 403
    assert browser.get("/topologies", ACT, headers=headers).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "user@localhost", "localhost:port", None])
def test_by_another_name_the_console_is_not_reached(browser, host):
    if host is None:
        host = ""
    assert browser.get("/topologies", headers={"host": host}).status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8080", "console.example", "CONSOLE.example:443"])
def test_it_has_these_names(browser, host):
    assert browser.get("/topologies", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"wait_secs": -1}', "cannot be read"),
        (b'{"wait_secs": 1e300}', "cannot be read"),
        (b'{"confirmed": true}', "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
    ],
)
def test_a_body_that_is_none_is_refused_with_what_is_wrong(browser, submit, body, says):
    submit()
    headers = {"host": "localhost:8080", "authorization": f"Bearer {ACT}"}
    answer = browser.client.post("/api/v1/topologies/Endless/kill", content=body, headers=headers)
    assert answer.status_code == 400
    assert says in problem(answer)["what"]


def test_a_body_that_is_too_large_is_refused_whatever_it_says_of_its_length(browser, submit):
    submit()
    headers = {"host": "localhost:8080", "authorization": f"Bearer {ACT}"}
    for content in (b" " * (1 << 20) + b"{}", iter([b" " * 600_000] * 2)):
        answer = browser.client.post("/api/v1/topologies/Endless/kill", content=content, headers=headers)
        assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/api/v1/topologies", "/", "/api/v1/nothing", "/healthz"])
def test_every_answer_forbids_frames_foreign_scripts_and_guesses(browser, path):
    headers = browser.ask(path).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] in ("no-store", "no-cache")
    assert "set-cookie" not in headers


def test_what_names_nothing_says_so(browser):
    answer = browser.get("/topologies/Nothing")
    assert answer.status_code == 404
    assert "no topology is called Nothing" in problem(answer)["what"]


def test_the_script_in_the_page_itself_is_allowed_by_its_hash():
    found = pages.inline(pages.read()).split()
    assert [each[:8] for each in found] == ["'sha256-"]
    assert pages.inline({}) == ""

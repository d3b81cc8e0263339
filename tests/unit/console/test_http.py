"""What the console answers, and whom it refuses."""

from __future__ import annotations

import itertools
import re

import pytest

from ardea.console import log_routes, pages
from ardea.errors import Unreachable
from ardea.scheduler.schedulers import LogLine
from tests.unit.cli.memory import Paper
from tests.unit.console.conftest import ACT


def test_the_list_is_that_of_the_command_line(browser, submit):
    first = submit()
    told = browser.get("/topologies")
    assert told.status_code == 200, told.text
    (row,) = told.json()["topologies"]
    assert (row["id"], row["state"]) == (first, "RUNNING")
    assert told.json()["reading"] == {"state": "live", "as_of": None, "reason": None}


def test_one(browser, submit):
    first = submit()
    told = browser.get("/topologies/Endless")
    assert told.status_code == 200, told.text
    assert told.json()["id"] == first
    again = browser.get("/topologies/Endless", headers={"if-none-match": told.headers["etag"]})
    assert again.status_code == 304


def test_the_list_comes_in_parts(browser, submit):
    ids = {submit(name=f"T{number}") for number in range(5)}
    seen, after = [], None
    for _ in range(3):
        told = browser.get("/topologies", params={"limit": 2} | ({"after": after} if after else {})).json()
        seen += [row["id"] for row in told["topologies"]]
        after = told["after"]
    assert (set(seen), len(seen), after) == (ids, 5, None)


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=-1", "limit=x", "limit=" + "9" * 5000, "after=gone"])
def test_a_part_that_cannot_be_is_refused(browser, query):
    assert browser.get(f"/topologies?{query}").status_code == 400


@pytest.mark.parametrize(
    "name",
    ["..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "%0d%0aSet-Cookie:%20a", "<b>", "%E2%80%AE", "%FF", "a" * 5000],
)
def test_a_hostile_name_is_no_topology_and_stays_text(browser, name):
    answer = browser.get(f"/topologies/{name}/top")
    assert answer.status_code == 404
    assert "set-cookie" not in answer.headers
    assert not {"\x00", "\u202e"} & set(answer.json()["what"] + answer.json()["where"])


def test_a_log_is_read_by_those_who_may_act_in_its_last_lines(browser, submit):
    submit()
    told = browser.get("/topologies/Endless/logs/numbers-0?tail=1", ACT)
    assert told.json() == {"lines": [{"process": "numbers-0", "text": "it begins"}], "left_out": 0, "cut": False}
    assert browser.get("/topologies/Endless/logs/_?search=BEGINS", ACT).json()["lines"]
    assert browser.get("/topologies/Endless/logs/_?search=nothing", ACT).json()["lines"] == []
    assert browser.get("/topologies/Endless/logs/nobody", ACT).status_code == 404
    assert browser.get("/topologies/Endless/logs/nobody?follow=true", ACT).status_code == 404
    assert browser.get("/topologies/Endless/logs/_?level=LOUD", ACT).status_code == 400


def lines(processes, of_each):
    return [LogLine(f"count-{process}", f"line {number}") for process in range(processes) for number in range(of_each)]


def test_the_last_lines_are_those_of_each_process(browser, submit, monkeypatch):
    submit()
    names = ["count-0", "count-1"]
    monkeypatch.setattr(Paper, "names", lambda *_: names)
    monkeypatch.setattr(Paper, "lines", lambda *_, **__: iter(lines(2, 5)))
    wanted = "/topologies/Endless/logs/count?tail=2&search=line"
    told = browser.get(wanted, ACT).json()
    assert [(each["process"], each["text"]) for each in told["lines"]] == [
        (name, text) for name in names for text in ("line 3", "line 4")
    ]
    assert (told["left_out"], told["cut"]) == (6, False)
    monkeypatch.setattr(log_routes, "MOST_IN_ALL", 3)
    told = browser.get(wanted, ACT).json()
    assert [each["text"] for each in told["lines"]] == ["line 4", "line 4"], "all of them have a bound"


def test_one_process_of_a_container_has_as_many_lines_as_are_asked_for(browser, submit, monkeypatch):
    """However many containers have a process of that name."""
    submit()
    labels = [f"container-{number}/stream-manager" for number in (1, 2)]
    monkeypatch.setattr(Paper, "names", lambda *_: labels)
    both = [LogLine(label, f"line {number}") for label in labels for number in range(5)]
    monkeypatch.setattr(Paper, "lines", lambda *_, **__: iter(both))
    monkeypatch.setattr(log_routes, "MOST_IN_ALL", 3)
    told = browser.get(f"/topologies/Endless/logs/{labels[0]}?tail=3", ACT).json()
    assert [each["text"] for each in told["lines"]] == ["line 2", "line 3", "line 4"]


def test_an_answer_that_takes_too_long_says_that_it_is_cut(browser, submit, monkeypatch):
    submit()
    now = itertools.count(100.0)
    monkeypatch.setattr(log_routes, "clock", lambda: next(now))
    monkeypatch.setattr(Paper, "lines", lambda *_, **__: iter(lines(1, 99)))
    told = browser.get("/topologies/Endless/logs/_?search=line", ACT).json()
    assert (len(told["lines"]), told["lines"][-1]["text"], told["cut"]) == (10, "line 9", True)


def test_a_log_that_breaks_off_takes_no_other_along(browser, submit, monkeypatch):
    submit()
    read = []

    def lines(*_, **__):
        yield from read
        raise Unreachable("count-1: the log is not whole")

    monkeypatch.setattr(Paper, "lines", lines)
    assert browser.get("/topologies/Endless/logs/_", ACT).status_code == 503
    read.append(LogLine("count-0", "all of it"))
    told = browser.get("/topologies/Endless/logs/_", ACT).json()
    assert ([each["text"] for each in told["lines"]], told["cut"]) == (["all of it"], True)


def test_the_page_goes_without_a_token_and_is_not_sent_twice(browser):
    told = browser.ask("/", None)
    assert (told.status_code, told.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert browser.ask("/", None, headers={"if-none-match": told.headers["etag"]}).status_code == 304
    assert browser.ask("/healthz", None, headers={"host": "10.0.0.7:8080"}).text == "ok\n"


def test_a_browser_is_told_of_all_modules_at_once():
    """Else it asks for each when it has read the one that imports it."""
    index = pages.read()["/index.html"].body.decode()
    modules = {path.removeprefix("/") for path in pages.read() if path.endswith(".js")} - {"app.js"}
    assert set(re.findall(r'<link rel="modulepreload" href="([^"]+)">', index)) == modules

"""The console's page in a browser, on a topology that runs: what people see, and that everybody can use it."""

from __future__ import annotations

import contextlib

import pytest

from tests.process.console.browser import browser
from tests.process.console.conftest import Console
from tests.process.waiting import eventually

pytestmark = pytest.mark.cluster

VIEWS = {
    "topologies": ("/", ["Watched", "RUNNING"]),
    "overview": ("/t/Watched", ["Graph", "numbers", "double", "Components", "Complete latency"]),
    "tasks": ("/t/Watched/tasks", ["slow-0", "Capacity"]),
    "task": ("/t/Watched/task/slow-0", ["Look inside", "Lives"]),
    "component": ("/t/Watched/component/double", ["is read by slow", "double-0"]),
    "containers": ("/t/Watched/containers", ["stream-manager", "topology-master"]),
    "container": ("/t/Watched/container/1", ["Restart it", "slow-0"]),
    "logs": ("/t/Watched/logs/shouts-0", ["Log of shouts-0", "WARNING"]),
    "snapshots": ("/t/Watched/snapshots", ["Kept"]),
    "troubles": ("/t/Watched/troubles", ["Exceptions", "ValueError"]),
    "jobs": ("/t/Watched/jobs", ["Spark", "Trident"]),
}
"""Route, and what has to be seen there."""


def test_the_page_shows_who_holds_the_spouts_back_and_has_nothing_against_wcag(console):
    with browser() as page:
        page.open(console.link)
        page.shows("Topologies", "Watched", "RUNNING")
        assert "token" not in page.run("return location.href"), "the token stays in the address"
        page.go("/t/Watched")
        page.shows("Graph", "holds spouts back", "slow-0 holds back numbers")
        assert page.violations() == []
        token = page.run("return sessionStorage.getItem('ardea.token')")
        page.run("document.querySelector('.skip').click()")
        page.shows("slow-0 holds back numbers")
        assert page.run("return [sessionStorage.getItem('ardea.token'), location.hash]") == [token, "#main"]
        assert page.complaints() == []


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_each_view_can_be_used_by_everybody(console, width, scheme):
    with browser(width, scheme) as page:
        page.open(console.link)
        wrong = {}
        for name, (route, texts) in VIEWS.items():
            page.go(route)
            page.shows(*texts)
            page.keep(name)
            wrong[name] = page.violations() + (["it is wider than the window"] if page.wide() else [])
        assert {name: each for name, each in wrong.items() if each} == {}
        assert page.complaints() == []


@pytest.mark.thorough
def test_hostile_text_is_text(console):
    with browser() as page:
        page.open(console.link)
        for route in ("/t/Watched/logs/shouts-0", "/t/Watched/troubles"):
            page.go(route)
            page.shows("<img src=x onerror=", "<b>bold</b>")
            assert page.run("return document.querySelectorAll('main img, main b > b').length") == 0
            assert page.run("return document.title") != "taken"
            assert page.run("return /[\\u0000\\u001b\\u202e\\u200b]/.test(document.body.innerText)") is False
        page.go("/t/Watched/logs/shouts-0")
        longest = (
            "return Math.max(...[...document.querySelectorAll('.log .line')].map((line) => line.innerText.length))"
        )
        eventually(lambda: 0 < (page.run(longest) or 0) < 10_200, 30, "no line is longer than ten thousand characters")
        assert page.complaints() == []


@pytest.mark.thorough
def test_a_log_keeps_its_focus_its_selection_and_its_place(console):
    with browser() as page:
        page.open(console.link)
        page.go("/t/Watched/logs/shouts-0")
        page.shows("WARNING", "followed")
        page.run("document.querySelector('.log').scrollTop = 10")
        page.shows("To the end")
        placed = """
            const [box, done] = [document.querySelector('.log'), arguments[0]];
            box.scrollTop = 10;
            box.focus();
            getSelection().selectAllChildren([...box.children].find((line) => line.innerText.trim() !== ""));
            const chosen = String(getSelection());
            let place = 0;
            setTimeout(() => { place = box.scrollTop; }, 500);  // lines that were never seen are laid out first
            setTimeout(() => done([
                chosen !== "" && String(getSelection()) === chosen, document.activeElement === box,
                0 < place && place < 50 && box.scrollTop === place, box === document.querySelector('.log'),
            ]), 4000);
        """
        assert page.awaited(placed) == [True] * 4, "though it is drawn each second"
        page.go("/t/Watched/logs")
        page.shows("All logs")
        page.run("document.querySelector('.log').ofBefore = true")
        page.go("/t/Watched/logs/_")
        another = "const box = document.querySelector('.log'); return !box.ofBefore && box.innerText !== ''"
        eventually(lambda: page.run(another), 30, "a log of the same title has its own lines")
        assert page.complaints() == []


@pytest.mark.thorough
def test_an_action_is_shown_first_and_done_when_confirmed(console):
    with browser() as page:
        page.open(console.link)
        page.go("/t/Watched")
        page.press("Deactivate")
        page.shows("This would happen", "the spouts pause")
        assert page.violations() == []
        page.keep("dialog")
        page.press("Deactivate it")
        page.shows("Done", "is deactivated")
        page.press("Close")
        page.shows("PAUSED", "Its spouts are paused")
        page.press("Activate")
        page.press("Activate it")
        page.shows("is activated")
        page.press("Close")
        page.shows("RUNNING")


@pytest.mark.thorough
def test_a_console_that_is_gone_is_said_to_be_and_found_again(console):
    with contextlib.ExitStack() as undo:
        shown = Console(console.state)
        undo.callback(shown.stop)
        page = undo.enter_context(browser())
        page.open(shown.link)
        page.go("/t/Watched")
        page.shows("Graph", "slow")
        shown.stop()
        page.shows("The console is gone", "The next try is in", "Graph")
        page.keep("gone")
        shown.start_again()
        page.shows("does not know this token")  # each start has a token of its own
        page.press("Use another token")
        page.shows("This console needs its token")
        page.open(shown.link)
        page.shows("Watched", "live")

"""Actions of the page, pressed in a browser against a topology that runs: each shows first what it would do."""

from __future__ import annotations

import contextlib
import json
import tarfile
from collections.abc import Iterator

import pytest

from tests.process.console.browser import Browser, browser
from tests.process.console.conftest import TOPOLOGIES, Console, call
from tests.process.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.thorough, pytest.mark.usefixtures("leaks")]


@pytest.fixture
def counted(tmp_path) -> Iterator[Console]:
    """Shows the topology ``Counted``, which remembers."""
    submitted = call(tmp_path, "submit", "local", f"{TOPOLOGIES}:Counted")
    assert "is submitted" in submitted.stderr, submitted.stderr
    with contextlib.ExitStack() as undo:
        undo.callback(call, tmp_path, "kill", "Counted", "--wait-secs", 0)
        shown = Console(tmp_path)
        undo.callback(shown.stop)
        yield shown


def described(state) -> dict:
    return json.loads(call(state, "describe", "Counted", "-o", "json").stdout)


def lives(state) -> dict[str, int]:
    return {row["name"]: row["life"] for row in described(state)["processes"] if row["container"] == 1}


def confirmed(page: Browser, title: str, *dry: str, done: str) -> None:
    """The dry run says that; then it is confirmed, and done."""
    page.shows("This would happen", *dry)
    assert page.violations() == []
    page.keep(f"dialog-{title.lower()}")
    page.press(f"{title} it")
    page.shows("Done", done, seconds=150)
    assert page.violations() == []
    page.press("Close")


def test_each_action_is_shown_first_and_done_when_it_is_confirmed(counted):
    state = counted.state
    with browser() as page:
        page.open(counted.link)
        page.go("/t/Counted")
        page.shows("RUNNING", "HEALTHY", "Graph", "count")

        page.press("Rescale")
        page.fill("count", 2)
        assert page.violations() == []
        page.press("Show what would happen")
        confirmed(page, "Rescale", "1 → 2 tasks", "count-1", done="works by the new plan")
        assert {"count-0", "count-1"} <= described(state)["status"]["tasks"].keys()

        page.go("/t/Counted/container/1")
        before = lives(state)
        page.press("Restart it")
        confirmed(page, "Restart", "the processes of container 1 start again", done="restarted container 1")
        after = lives(state)
        assert all(after[name] > life for name, life in before.items()), (before, after)

        page.go("/t/Counted/snapshots")
        page.shows("Last snapshot", "ago, took")
        page.press("Savepoint")
        confirmed(page, "Savepoint", "all its state is copied into a new folder", done="savepoint of")
        page.shows("savepoint", "Folder")
        assert len(json.loads(call(state, "snapshots", "Counted", "-o", "json").stdout)["savepoints"]) == 1

        page.go("/t/Counted")
        page.press("Kill")
        page.press("Show what would happen")
        confirmed(page, "Kill", "the spouts stop", "its savepoints stay", done="is gone")
        assert json.loads(call(state, "list", "-o", "json").stdout)["topologies"] == []
        page.go("/")
        page.shows("No topology has been submitted")
        assert page.complaints() == []


def test_a_sample_and_the_bundle(console, tmp_path):
    with browser() as page:
        page.saves_into(tmp_path)
        page.open(console.link)
        for route in ("/t/Watched/task/double-0", "/t/Watched/component/double"):
            page.go(route)
            page.press("Sample what it emits")
            page.shows("double-0  default (")
            page.press("Stop")
            assert page.violations() == []
            page.keep(route.rpartition("/")[0].rpartition("/")[2] + "-sample")
        page.go("/t/Watched/component/shouts")
        page.shows("reads double")
        assert "Sample what it emits" not in page.text(), "it emits nothing"
        page.go("/t/Watched/troubles")
        page.press("Download a bundle")
        page.shows("look before you send it", seconds=120)
        assert page.violations() == []
        (file,) = eventually(lambda: list(tmp_path.glob("Watched-*-bundle.tar.gz")), 30, "the file is saved")
        with tarfile.open(file) as tar:
            names = {name.partition("/")[2] for name in tar.getnames()}
        assert {"manifest.json", "status.json", "plan.json", "logs/double-0.log"} <= names
        assert page.complaints() == []

"""What the keys of `ardea top` do to what it shows."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ardea.cli.keys import first_key
from ardea.cli.top import tables
from ardea.cli.top_view import HELP, SORTS, View
from ardea.documents.top import Row
from ardea.scheduler.control import Status

PLAIN = dict.fromkeys(("emitted", "executed", "acked", "failed", "capacity", "back_pressure", "initiates"), 0.0) | {
    "latency": None, "latency_p99": None, "initiated_seconds": 0.0, "pending": 0, "exceptions": 0,
    "resident_memory_bytes": 0, "cpu": 0.0, "threads": 1,
}  # fmt: skip


STATUS = Status(
    topology="t-1", state="RUNNING", reason="", term=1, epoch=1, missing_containers=[], silent_tasks=[], given_up=0,
    errors=[], update=None, tasks={}, components={}, processes=[],
)  # fmt: skip


def row(component, task=None, **values):
    return Row(component=component, task=task, container=1, **{**PLAIN, **values})


ROWS = [
    row("count", capacity=0.9),
    row("count", "count-0", capacity=0.2),
    row("count", "count-1", capacity=0.9),
    row("split", capacity=0.95, failed=3.0),
    row("split", "split-0", capacity=0.95, failed=3.0),
    row("words", capacity=0.1),
    row("words", "words-0", capacity=0.1),
    row("", "stream-manager"),
]


def shown(view, rows=ROWS):
    return [each.task or each.component for each in view.chosen(rows)]


def typed(*keys, **options):
    view = View(frozenset({"words"}), **options)
    for key in keys:
        view.typed(key, page=10)
    return view


def test_spouts_come_first():
    assert shown(typed()) == [
        "words", "words-0", "count", "count-0", "count-1", "split", "split-0", "stream-manager"
    ]  # fmt: skip


def test_the_largest_comes_first():
    assert shown(typed(sort="capacity")) == [
        "split", "split-0", "count", "count-1", "count-0", "words", "words-0", "stream-manager"
    ]  # fmt: skip
    assert typed("s").sort == "capacity"
    assert typed(*["s"] * (len(SORTS) + 1)).sort == ""


def test_only_what_is_asked_for():
    assert shown(typed(wanted="split")) == ["split", "split-0", "stream-manager"]
    assert shown(typed(wanted="-1")) == ["count", "count-1", "stream-manager"]
    assert shown(typed("t")) == ["words", "count", "split", "stream-manager"]
    view = typed("/", "s", "x", "erase", "p")
    assert (view.line, view.sort, shown(view)) == ("/sp", "", ["split", "split-0", "stream-manager"])
    view.typed("enter", 1)
    assert view.line == f"only sp · {HELP}"
    assert typed("/", "s", "escape").wanted == ""


@pytest.mark.parametrize(
    ("keys", "first"),
    [
        ((), 0),
        (("down",), 1),
        (("page down",), 10),
        (("end",), 90),
        (("end", "up"), 89),
        (("up",), 0),
        (("end", "home"), 0),
    ],
)
def test_it_scrolls_and_never_beyond_the_end(keys, first):
    view, lines = typed(), list(range(100))
    for key in keys:
        view.typed(key, page=10)
        view.window(lines, 10)
    window, where = view.window(lines, 10)
    assert window == list(range(first, first + 10))
    assert where == f"{first + 1} to {first + 10} of 100"
    assert View().window(lines[:10], 10) == (lines[:10], "")


def test_q_leaves():
    assert typed("q").over
    assert not typed("/", "q").over


@pytest.mark.parametrize(
    ("typed_", "keys"),
    [
        (b"", []),
        (b"q", ["q"]),
        (b"t/\x1b[A\r", ["t", "/", "up", "enter"]),
        (b"\x1b[6~\x1b[6~", ["page down", "page down"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[99~q", [""]),
        ("ä\x7f".encode(), ["ä", "erase"]),
        (b"\xff", ["\ufffd"]),
    ],
)
def test_keys(typed_, keys):
    """Those that come together are told one by one; a sequence that is not known swallows what came with it."""
    found = []
    while typed_:
        key, typed_ = first_key(typed_)
        found.append(key)
    assert found == keys


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50), (40, 8)])
@pytest.mark.parametrize("tasks", [1, 200])
def test_a_terminal_is_never_too_low(width, height, tasks):
    """The last line says which keys there are; memory is shown from 80 columns on."""
    rows = [row("count"), *(row("count", f"count-{n}") for n in range(tasks))]
    rows += [row("", f"stream-manager-{n}") for n in range(60)]
    out = Console(file=io.StringIO(), width=width, height=height)
    out.print(tables(STATUS, rows, width, View(), height))
    lines = out.file.getvalue().splitlines()
    assert len(lines) <= max(height, 16)
    assert lines[-1].startswith("q quits")
    assert any("Memory" in line for line in lines[:4]) == (width >= 80)
    if tasks == 200:
        assert any(line.startswith("1 to ") and line.rstrip().endswith(" of 201") for line in lines)


def test_what_is_wrong_is_red_and_what_is_busy_yellow():
    out = Console(file=io.StringIO(), width=160, force_terminal=True, color_system="standard")
    out.print(tables(STATUS, ROWS, 160, View()))
    lines = out.file.getvalue().splitlines()
    colours = {name: next(line for line in lines if f" {name}" in line) for name in ("split-0", "count-1", "count-0")}
    assert "31m" in colours["split-0"]
    assert "33m" in colours["count-1"]
    assert not {"31m", "33m"} & {colour for colour in ("31m", "33m") if colour in colours["count-0"]}

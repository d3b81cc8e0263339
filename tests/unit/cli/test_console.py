"""What others made is shown on the terminal, and does nothing to it."""

from __future__ import annotations

import io
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.table import Table
from rich.text import Text

import ardea.cli
from ardea.cli import console, topologies
from ardea.cli.tables import fitted
from ardea.errors import ClusterError
from ardea.scheduler.schedulers import LogLine

HOSTILE = "a\x1b[2J\x1b]8;;http://x\x1b\\\\b\x9b1m\u202ec[bold]:smile:"
HARMLESS = r"a\x1b[2J\x1b]8;;http://x\x1b\\b\x9b1m\u202ec[bold]:smile:"
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
"""What rich itself says to a terminal here."""


def table():
    table = Table("Title")
    table.add_row(HOSTILE)
    return table


@pytest.mark.parametrize(
    "renderable",
    [HOSTILE, Text(HOSTILE, style="bold"), table(), fitted(("Title",), [[HOSTILE]], 200)],
    ids=["string", "text", "table", "fitted"],
)
def test_whatever_is_printed_on_a_terminal_is_text(renderable):
    terminal = io.StringIO()
    console.Screen(file=terminal, force_terminal=True, width=200).print(renderable)
    assert HARMLESS in terminal.getvalue()
    assert "\x1b" not in _STYLES.sub("", terminal.getvalue())


def test_a_message_is_one_message(capsys):
    console.report(ClusterError(f"first\nerror: {HOSTILE}"))
    assert capsys.readouterr().err == f"error: first\n  error: {HARMLESS}\n"


def test_a_cell_is_one_line():
    lines = io.StringIO()
    console.Screen(file=lines, width=80).print(fitted(("By", "State"), [["me\nyou", "RUNNING"]], 80))
    assert [line.split() for line in lines.getvalue().splitlines()] == [["By", "State"], ["me\\nyou", "RUNNING"]]


@pytest.mark.parametrize(("terminal", "expected"), [(True, HARMLESS), (False, HOSTILE)], ids=["terminal", "pipe"])
def test_what_a_task_printed_is_escaped_on_a_terminal_only(capsys, monkeypatch, terminal, expected):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    logs = SimpleNamespace(names=lambda _: ["add-0"], lines=lambda _, **options: iter([LogLine("add-0", HOSTILE)]))
    topologies.logs(SimpleNamespace(logs=lambda _: nullcontext(logs)), "Sums")
    assert capsys.readouterr().out == f"add-0: {expected}\n"


def test_every_verb_prints_on_such_a_screen():
    for path in Path(ardea.cli.__file__).parent.glob("*.py"):
        if path.name != "console.py":
            assert not re.search(r"\bConsole\(", path.read_text()), path

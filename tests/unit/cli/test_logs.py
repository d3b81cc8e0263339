"""What `ardea logs` shows of what processes say."""

from __future__ import annotations

import pytest

from ardea.cli.topologies import duration
from ardea.documents.levels import Level, Levels
from ardea.errors import UsageError
from ardea.scheduler.schedulers import LogLine


def test_a_level_passes_records_and_what_follows_them():
    told = [
        "printed before",
        "2026-11-27 09:00:00,000 INFO a: quiet",
        "printed",
        "2026-11-27 09:00:00,000 ERROR a: it failed",
        "Traceback ...",
        '{"time": "2026-11-27T09:00:00.000Z", "level": "INFO", "logger": "a", "message": "quiet"}',
        '{"time": "2026-11-27T09:00:00.000Z", "level": "WARNING", "logger": "a", "message": "loud"}',
        '{"time": "cut off',
    ]
    levels = Levels(Level.WARNING)
    assert [text for text in told if levels.passes(LogLine("a", text))] == [*told[3:5], *told[6:]]
    assert all(Levels(None).passes(LogLine("a", text)) for text in told)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1.5", 1.5), ("10m", 600), ("2h", 7200), ("1d", 86400)])
def test_durations(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-1", "10 m", "1w", "nan"])
def test_no_durations(text):
    with pytest.raises(UsageError, match="--since takes seconds, or 10m"):
        duration(text)

"""What the benchmark of recoveries says of a kill."""

from __future__ import annotations

from benchmarks.recovery import RecoveryResult, says


def test_reading_and_all_else_are_told_apart():
    result = RecoveryResult(keys=1000, bytes=3 << 20, seconds=4.5, reading=3.25)
    assert "1,000 keys, 3 MiB" in says(result)
    assert "4.50 s after kill -9" in says(result)
    assert "took 3.25 s of that, all else 1.25 s" in says(result)

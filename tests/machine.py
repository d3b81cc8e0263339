"""How slow this machine is, so that tests wait longer on it: a wait costs nothing where nothing is wrong."""

from __future__ import annotations

import time

USUAL = 0.015
"""Seconds that a core of 2024 takes for :func:`_work`."""
MOST = 6.0


def _work() -> float:
    """What processes do at their start: they make objects, and touch memory that is new to them."""
    began = time.perf_counter()
    made = [(number, str(number)) for number in range(100_000)]
    took = time.perf_counter() - began
    del made
    return took


SLOWNESS = min(MOST, max(1.0, min(_work() for _ in range(5)) / USUAL))


def patient(seconds: float) -> float:
    """At least so long, and so much longer as the machine is slow; not for what has to be quick."""
    return seconds * SLOWNESS


if __name__ == "__main__":  # how many tests of real processes run at a time
    print(4 if SLOWNESS < 1.4 else 3 if SLOWNESS < 2 else 2)

"""How slow this machine is at present, so that tests wait longer on it: a wait costs nothing where nothing is wrong."""

from __future__ import annotations

import math
import sys
import time

USUAL = 0.015
"""Seconds that a core of 2024 takes for :func:`_work`."""
MOST = 6.0
STALE = 30.0
"""Seconds for which a measurement counts: others may use the machine, too."""


def _work() -> float:
    """What processes do at their start: they make objects, and touch memory that is new to them."""
    began = time.perf_counter()
    made = [(number, str(number)) for number in range(100_000)]
    took = time.perf_counter() - began
    del made
    return took


class Machine:
    """``slowness`` is 1 on a quick one, 2 where everything takes twice as long."""

    def __init__(self) -> None:
        self._measured, self._slowness = -math.inf, 1.0

    @property
    def slowness(self) -> float:
        """Of the last half a minute."""
        now = time.monotonic()
        if now > self._measured + STALE:
            self._measured, took = now, min(_work() for _ in range(3))
            self._slowness = min(MOST, max(1.0, took / USUAL))
        return self._slowness


MACHINE = Machine()


def patient(seconds: float) -> float:
    """At least so long, and so much longer as the machine is slow; not for what has to be quick."""
    return seconds * MACHINE.slowness


def out_of_patience(began: float, seconds: float) -> bool:
    """Whether that long has passed since ``began``, of ``time.monotonic()``."""
    passed = time.monotonic() - began
    return passed > seconds and passed > patient(seconds)


if __name__ == "__main__":  # how many tests of real processes run at a time
    print(min(int(sys.argv[1]), 4 if MACHINE.slowness < 1.4 else 3 if MACHINE.slowness < 2 else 2))

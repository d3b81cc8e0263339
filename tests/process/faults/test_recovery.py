"""How long work stands still after ``kill -9``, with as many trees open as there may be.

The numbers are printed; the medians are asserted, since on a busy machine one of them may be anything.  Pauses below
0.1 s are not counted.
"""

from __future__ import annotations

import itertools
import statistics
import time

import pytest

from tests.process.faults.counted import Counted
from tests.sizes import size

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

TASKS = ("first-0", "first-1", "second-0", "second-1")
ASKED = {"instance": 2.0, "stream manager": 3.0, "master": 0.2}
"""Seconds, of the median; for the master: none but what a busy machine makes."""
GENEROUS = 15.0
REST = size(0.0, 61.0)
"""Seconds between two rounds: who has lived for a minute is started again without a pause."""


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_a_restarted_process_works_again_soon_and_nobody_waits_for_the_master(tmp_path):
    times: dict[str, list[float]] = {"instance": [], "stream manager": [], "master": []}
    with Counted(tmp_path) as run:

        def killed(name: str) -> float:
            run.full()
            began = time.monotonic()
            run.faults.kill(name)
            return began

        def master_after(life: int) -> bool:
            found = run.topology.processes.running().get("master")
            return found is not None and found.life > life

        for _ in range(size(3, 10)):
            began = killed("first-0")
            [end, *_] = run.topology.until(
                lambda: [end for begin, end in run.pauses("first-0") if begin == 0.0 and end > began],  # noqa: B023
                "the new life has processed a row",
            )
            times["instance"].append(end - began)
            run.works()

            began = killed("manager-1")
            run.works()
            ends = [end for task in TASKS for begin, end in run.pauses(task) if begin <= began + 1.0 and end > began]
            times["stream manager"].append(max(ends) - began)

            began = killed("master")
            former = run.faults.done[-1].life
            run.topology.until(lambda: master_after(former), "there is a master again")  # noqa: B023
            run.works()
            pauses = [end - begin for task in TASKS for begin, end in run.pauses(task) if begin > 0.0 and end > began]
            times["master"].append(max(pauses, default=0.0))
            rested = time.monotonic() + REST
            run.topology.until(lambda: time.monotonic() >= rested, "they have lived for a while", 2 * REST + 1)  # noqa: B023
        run.finish()
    for who, seconds in times.items():
        middle, worst = statistics.median(seconds), max(seconds)
        print(
            f"kill -9 of {who}: work stands still for {middle:.2f} s (median of {len(seconds)}), {worst:.2f} s at most"
        )
    assert {who: seconds for who, seconds in times.items() if statistics.median(seconds) >= ASKED[who]} == {}
    assert max(itertools.chain(*times.values())) < GENEROUS

"""Which log somebody is sent to when a topology has failed."""

from __future__ import annotations

import pytest

from ardea import Topology
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.scheduler.home import Home
from ardea.scheduler.packing import packing_for
from ardea.scheduler.run import LocalRun, Outcome
from ardea.scheduler.submission import Submission
from ardea.state.records import RunState
from ardea.testing import CollectBolt, RowsSpout


class Names(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec()
    up = CollectBolt.spec(inputs=[words])


@pytest.fixture
def run(tmp_path):
    """One that has not begun; its logs are there."""
    plan = Names.plan()
    packing = packing_to_bytes(packing_for(plan.config).pack(plan))
    definition = Definition(topology="n-1", state="", location="", config={}, shape=shape_of(plan), packing=packing)
    run = LocalRun(Submission.restored(definition, "Names"), Home(tmp_path))
    for log in ("container-1/logs/words-0", "container-1/logs/up-0", "container-1/logs/stream-manager", "logs/a"):
        file = run.folder / f"{log}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return run


@pytest.mark.parametrize(
    ("culprit", "log"),
    [
        ("words-0", "container-1/logs/words-0.log"),
        ("container-1/stream-manager", "container-1/logs/stream-manager.log"),
        ("a", "logs/a.log"),
        ("container-9/stream-manager", ""),
        ("words-7", ""),
        ("", ""),
    ],
)
def test_the_culprits_log_is_the_one_to_read_whatever_the_reason_names(run, culprit, log):
    """A bolt called `up` is not what was given up."""
    reason, errors = "given up: up-0 died 3 times", ["up: no"]
    outcome = Outcome(RunState.FAILED, reason, 1.0, {}, errors, culprit)
    assert run.log_to_read(outcome) == run.folder / log

"""What `ardea update` asks for, of the code that was submitted or of a new file."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from ardea.cli import change
from ardea.cli.update import _plans
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler.submission import Submission
from ardea.scheduler.update import Change, Version
from ardea.state import open_state, paths
from ardea.state.records import ExecutionState, RunState, encode

FILE = """
from ardea import Topology
from ardea.testing import CollectBolt, RowsSpout

class Kept(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    keep = CollectBolt.spec(inputs=[rows], par=2)
"""


@pytest.fixture
def fresh(monkeypatch):
    """Forgets what was imported: each verb is a process of its own."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))

    def forget():
        sys.modules.pop("kept_by_update", None)

    yield forget
    forget()


def test_other_configuration_is_for_the_code_that_was_submitted(tmp_path, fresh):
    """Whatever has become of its file; an update with FILE brings what is there now, each time."""
    file, state = tmp_path / "kept_by_update.py", f"file://{tmp_path}/state"
    file.write_text(FILE)
    made = Submission.of(str(file), {}, state)
    made.code.write(tmp_path)
    topology = made.definition.topology
    with open_state(state) as manager:
        manager.create(paths.physical_plan(topology), made.definition.packed())
        manager.create(paths.execution_state(topology), encode(ExecutionState(RunState.RUNNING)))
        found = SimpleNamespace(state=manager, topology=SimpleNamespace(id=topology))
        fresh()
        file.write_text("def (")
        _, next_ = _plans(found, Change(overrides={"topology.max.spout.pending": 7}), tmp_path)
        assert next_.shape.config["topology.max.spout.pending"] == 7
        assert (next_.code, next_.build) == (made.definition.code, 2)
        for text, tasks in ((FILE, 3), (FILE.replace("par=2", "par=10"), 11)):
            fresh()
            file.write_text(text)
            version = Version(location=str(file), code=change.code_of(str(file)).digest)
            _, next_ = _plans(found, Change(version=version), tmp_path)
            assert next_.build == 2
            assert len(packing_from_bytes(next_.packing).instances) == tasks
            assert (next_.code == made.definition.code) is (tasks == 3)

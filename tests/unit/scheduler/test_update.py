"""What `ardea update` asks for, of the code that was submitted or of a new file."""

from __future__ import annotations

import sys

import pytest

from ardea.plan.wire import packing_from_bytes
from ardea.scheduler import keys
from ardea.scheduler.local_update import LocalUpdate
from ardea.scheduler.next_definition import Change
from ardea.scheduler.submission import Submission
from ardea.state import open_state, paths
from ardea.state.records import ExecutionState, RunState, encode
from ardea.transport import Keyring, pair

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
        fresh()
        file.write_text("def (")
        next_ = wanted(manager, topology, tmp_path, Change(overrides={"topology.max.spout.pending": 7}))
        assert next_.shape.config["topology.max.spout.pending"] == 7
        assert (next_.code, next_.build) == (made.definition.code, 2)
        for text, tasks in ((FILE, 3), (FILE.replace("par=2", "par=10"), 11)):
            fresh()
            file.write_text(text)
            next_ = wanted(manager, topology, tmp_path, Change(), str(file))
            assert next_.build == 2
            assert len(packing_from_bytes(next_.packing).instances) == tasks
            assert (next_.code == made.definition.code) is (tasks == 3)


def wanted(state, topology, folder, change, target=None):
    return LocalUpdate(state, topology, folder, change, target)._next


def test_two_verbs_at_the_same_moment_ask_with_the_same_keys(tmp_path, fresh, monkeypatch):
    """Others write theirs after this one has looked for them, just before it writes its own and just after."""
    file, state, write = tmp_path / "kept_by_update.py", f"file://{tmp_path}/state", keys.write
    file.write_text(FILE)
    made = Submission.of(str(file), {}, state)
    made.code.write(tmp_path)
    present, secrets = keys.issue(made.definition)
    write(tmp_path, secrets)
    with open_state(state) as manager:
        manager.create(paths.physical_plan(present.topology), present.packed())
        manager.create(paths.execution_state(present.topology), encode(ExecutionState(RunState.RUNNING)))
        fresh()
        update = LocalUpdate(manager, present.topology, tmp_path, Change(overrides={"topology.stmgrs": 3}), None)

        def late(folder, ours):
            for secrets in ({name: pair()[1] for name in ours}, ours, {name: pair()[1] for name in ours}):
                write(folder, secrets)

        monkeypatch.setattr(keys, "write", late)
        asked = update._request(30.0).wanted.keys
    new = asked.keys() - present.keys.keys()
    assert new
    assert all(Keyring.read(keys.keys_of(tmp_path / name), asked).public.decode() == asked[name] for name in new)

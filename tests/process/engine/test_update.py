"""`ardea update` on real processes with tuples in flight: source and sink are equal, whatever is changed or dies."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ardea.plan.definition import Definition
from ardea.plan.wire import packing_from_bytes
from ardea.supervision.records import read_exits
from ardea.transport import Keyring
from tests.machine import patient
from tests.process.faults.counted import SPOUTS, TOPOLOGY, Counted

ARDEA = [sys.executable, "-P", "-m", "ardea.cli"]


class Updated(Counted):
    """The counted topology, and the verb beside it."""

    def __init__(self, root):
        super().__init__(root)
        self.state = root / "ardea"

    def begin(self, *args):
        command = [*ARDEA, "update", self.name, *args, "--state", self.state]
        return subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, verb, seconds=150.0):
        """(exit code, what it said); the topology goes on meanwhile."""
        try:
            self.topology.until(lambda: verb.poll() is not None, "the verb has ended", seconds)
        finally:
            verb.kill()
            out, err = verb.communicate()
        return verb.returncode, out + err

    def update(self, *args):
        return self.end(self.begin(*args))

    @property
    def name(self):
        return self.topology.folder.name

    def tasks(self, component):
        """Those that the master knows, by name."""
        status = self.topology.status
        return sorted(name for name in status.tasks if name.rpartition("-")[0] == component)

    def running(self, component):
        return sorted(name for name in self.topology.processes.running() if name.rpartition("-")[0] == component)


@pytest.fixture
def counted(tmp_path):
    with Updated(tmp_path) as running:
        yield running


def exactly_once(counted):
    """Nothing was lost, and nothing had to be sent twice."""
    lines = (counted.out / "arrived").read_text().splitlines()
    ends = [int((counted.out / f"end-{spout}").read_text()) for spout in SPOUTS]
    assert len(lines) == sum(ends)


def test_scale_up_and_down(counted):
    """A drained update sends nothing twice; the processes come and go.  A dry run tells, and changes nothing."""
    epoch, tasks = counted.topology.status.epoch, counted.tasks("first")
    code, said = counted.update("--component-parallelism", "first:4", "--dry-run", "-o", "json")
    assert code == 0, said
    told = json.loads(said)
    assert told["started"] == [f"first-{index}" for index in range(len(tasks), 4)]
    assert (told["stopped"], told["restarted"], told["configuration"]) == ([], False, [])
    assert (counted.topology.status.epoch, counted.tasks("first")) == (epoch, tasks)
    code, said = counted.update("--component-parallelism", "first:4")
    assert code == 0, said
    counted.works()
    assert counted.tasks("first") == ["first-0", "first-1", "first-2", "first-3"]
    code, said = counted.update("--component-parallelism", "first:1")
    assert code == 0, said
    counted.works()
    assert counted.tasks("first") == ["first-0"]
    counted.topology.until(lambda: counted.running("first") == ["first-0"], "the others are gone")
    counted.finish()
    exactly_once(counted)


@pytest.mark.thorough
def test_keys_do_not_move_by_accident(counted):
    """Refused, naming the component, without ``--moves-keys``."""
    code, said = counted.update("--component-parallelism", "second:3")
    assert code == 6, said
    assert "second: rows are grouped by keys" in said
    assert "nothing was changed" in said
    code, said = counted.update("--component-parallelism", "second:3", "--moves-keys")
    assert code == 0, said
    counted.works()
    assert counted.tasks("second") == ["second-0", "second-1", "second-2"]
    counted.finish()
    exactly_once(counted)


def test_new_version_and_configuration(counted, tmp_path):
    """Every instance runs the new code; spouts go on from what was acked."""
    newer = tmp_path / "newer.py"
    newer.write_text(
        TOPOLOGY.read_text()
        .replace("self.rows += 1", "self.rows += 1  # newer\n        NEWER.touch()")
        .replace("KEPT_EVERY = 100", f"KEPT_EVERY = 100\nNEWER = Path({str(tmp_path / 'newer.ran')!r})")
    )
    code, said = counted.update(newer, "--set", "topology.max.spout.pending=300")
    assert code == 0, said
    counted.works()
    assert (tmp_path / "newer.ran").exists()
    counted.finish()


def test_a_master_killed_in_the_middle(counted):
    """The verb finds the next one, and finishes."""
    verb = counted.begin("--component-parallelism", "first:3")
    counted.topology.until(lambda: counted.topology.status.update is not None, "the update has begun")
    counted.topology.processes.kill("master")
    code, said = counted.end(verb)
    assert code == 0, said
    counted.works()
    assert counted.tasks("first") == ["first-0", "first-1", "first-2"]
    counted.finish()


@pytest.mark.thorough
def test_a_verb_killed_in_the_middle_is_repeated(counted):
    """And the master with it: the same again finishes it."""
    verb = counted.begin("--component-parallelism", "first:3")
    counted.topology.until(lambda: counted.topology.status.update is not None, "the update has begun")
    verb.kill()
    counted.topology.processes.kill("master")
    counted.end(verb)
    code, said = counted.update("--component-parallelism", "first:3")
    assert code == 0, said
    counted.works()
    assert counted.tasks("first") == ["first-0", "first-1", "first-2"]
    counted.finish()


@pytest.mark.thorough
def test_new_containers_get_keys_of_their_own(counted):
    """Made by the verb; one that is repeated takes those that lie there, and joins."""
    secret = counted.topology.folder / "container-3" / "keys" / "secret.key"
    assert not secret.exists()
    verb = counted.begin("--set", "topology.stmgrs=3")
    counted.topology.until(lambda: counted.topology.status.update is not None, "the update has begun")
    verb.kill()
    counted.end(verb)
    key = secret.read_text()
    code, said = counted.update("--set", "topology.stmgrs=3")
    assert code == 0, said
    assert secret.read_text() == key
    counted.works()
    definition = Definition.read(counted.topology.folder / "definition")
    plan = next(c for c in packing_from_bytes(definition.packing).containers if c.number == 3)
    assert plan.instances
    assert Keyring.read(secret.parent, definition.keys).public.decode() == definition.keys["container-3"]
    code, said = counted.update("--set", "topology.stmgrs=2")
    assert code == 0, said
    counted.works()
    counted.finish()


@pytest.mark.thorough
def test_a_broken_version_is_put_back(counted, tmp_path):
    """It says who did not come up; the former version goes on."""
    seconds = round(patient(20))
    broken = tmp_path / "broken.py"
    broken.write_text(TOPOLOGY.read_text().replace("self.last = 0.0", "raise RuntimeError('broken')"))
    code, said = counted.update(broken, "--wait-secs", seconds)
    assert code == 1, said
    assert "does not work by it yet" in said
    assert f"after {seconds} s" in said
    assert "died: RuntimeError: broken at broken.py:" in said
    assert "the topology goes on as it was" in said
    counted.works()
    counted.finish()


@pytest.mark.thorough
def test_what_a_plan_had_left_out_goes_on_when_it_is_put_back(counted):
    """Nobody follows the plan meanwhile, as the run is not stepped: the processes that it left out are still there."""
    verb = counted.begin("--component-parallelism", "first:1", "--component-parallelism", "numbers:3", "--wait-secs", 1)
    try:
        out, err = verb.communicate(timeout=patient(90))
    finally:
        verb.kill()
    assert verb.returncode == 1, out + err
    assert "does not work by it yet" in out + err
    counted.works()
    exits = [each for place in counted.topology.folder.glob("container-*") for each in read_exits(place, "first-1")]
    assert any("LEFT_OUT" in str(each.reason) for each in exits)
    counted.finish()


def test_what_cannot_be(counted):
    """Refused before anything happens."""
    for args, why in (
        (["--component-parallelism", "nobody:3"], "has no component nobody; it has first, numbers, second, written"),
        (["--component-parallelism", "first:0"], "at least 1 is needed"),
        (["--set", "topology.name=other"], "cannot be renamed"),
        ([], "nothing is to be changed"),
    ):
        code, said = counted.update(*args)
        assert code == 6, said
        assert why in " ".join(said.split())
    counted.works()
    counted.finish()

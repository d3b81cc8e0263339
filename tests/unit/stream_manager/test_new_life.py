"""What becomes of trees when a manager has a new life, and of the pace of its readers when a task has."""

from __future__ import annotations

import numpy as np
import pytest

from ardea.protocol.ids import make_roots
from ardea.protocol.lane import Lane
from ardea.protocol.link import CONTROL_ROOM
from ardea.protocol.wire_pb2 import ACKS, CREDITS, INIT, ONE, ROWS, Header
from tests.unit.stream_manager.mesh import Mesh


@pytest.fixture
def mesh():
    """Two managers; all of their tasks are there."""
    made = Mesh(2)
    made.begins(*made.plan.tasks)
    made.second()
    return made


def u64(*numbers):
    return np.array(numbers, dtype=np.uint64).tobytes()


def root(spout, slot):
    return make_roots(spout, np.array([slot]), np.array([5])).tobytes()


def acked_late(mesh, spout, bolt, slot, held):
    """One tree; ``held``: what comes after its acks, and who passes on.  How many are acked, pending and late."""
    mesh.from_task(spout, Header(kind=INIT), [root(spout, slot), u64(7)], Lane.DATA)
    mesh.from_task(bolt, Header(kind=ACKS, target=spout), [root(spout, slot), u64(7), b"", b"", b""])
    mesh.flush()
    ledger = mesh.managers[1].verdicts.ledgers()[spout]
    assert ledger.statistics().pending == 1
    late, mesh.pass_on = held
    mesh.mail.extend(late)
    mesh.second()
    figures = ledger.statistics()
    return figures.acked, figures.pending, figures.late


def test_acks_for_a_manager_that_has_not_been_met_yet_wait_for_it(mesh):
    """What the other manager says to the new life is late: it knows that life, and has trees that end there."""
    spout, bolt = mesh.tasks(1, "rows")[0], mesh.tasks(2, "keep")[0]
    mesh.reborn(2)
    late, pass_on = [], mesh.pass_on
    mesh.pass_on = lambda sender, *rest: late.append((sender, *rest)) if sender == 1 else pass_on(sender, *rest)
    mesh.deliver()
    mesh.begins(bolt)
    assert acked_late(mesh, spout, bolt, 0, (late, pass_on)) == (1, 0, 0)


@pytest.mark.parametrize("room", [True, False], ids=["sent", "folded"])
def test_acks_for_trees_of_a_new_life_count_though_their_manager_knows_only_the_former_one(room):
    """Rows reach its bolt by a third manager, which has met the new life already."""
    mesh = Mesh(3)
    mesh.begins(*mesh.plan.tasks)
    mesh.second()
    spout, bolt = mesh.tasks(1, "rows")[0], mesh.tasks(3, "keep")[0]
    mesh.from_task(bolt, Header(kind=ACKS, target=spout), [root(spout, 0), u64(7), b"", b"", b""])  # of the former life
    mesh.reborn(1)
    late, pass_on = [], mesh.pass_on
    mesh.pass_on = lambda *sent: late.append(sent) if {*sent[:2]} == {1, 3} else pass_on(*sent)
    mesh.deliver()
    mesh.begins(spout)
    if not room:
        link = mesh.managers[3].members.peers[1]
        link.send(Lane.CONTROL, Header(kind=CREDITS), [b"x"], CONTROL_ROOM)
    assert acked_late(mesh, spout, bolt, 1, (late, pass_on)) == (1, 0, 1)


def test_rows_that_wait_for_its_tasks_are_lost_with_their_trees(mesh):
    """They would be processed, though their trees come again; untracked rows do not come again, and wait on."""
    spout, bolt = mesh.tasks(1, "rows")[0], mesh.tasks(2, "keep")[0]
    opening = {"source": spout, "target": bolt, "rows": 1, "epoch": 1}
    for slot in range(20):
        header = Header(kind=ROWS, ids=ONE, opens=True, **opening)
        mesh.from_task(spout, header, [b"\x91\x91\x01", root(spout, slot), u64(7)], Lane.DATA)
    mesh.emits(spout, bolt, 5)
    channel, ledger = mesh.managers[1].rows.channels[bolt], mesh.managers[1].verdicts.ledgers()[spout]
    assert channel.held_rows == 4 + 5
    mesh.reborn(2)
    mesh.deliver()
    assert ledger.statistics().lost == 20
    assert channel.held_rows == 5
    header = Header(kind=ROWS, ids=ONE, opens=True, **opening)
    mesh.from_task(spout, header, [b"\x91\x91\x01", root(spout, 30), u64(7)], Lane.DATA)
    mesh.said.clear()
    mesh.begins(bolt)
    assert [header.rows for header, _ in mesh.heard(ROWS, f"task {bolt}")] == [5, 1]
    assert ledger.statistics().pending == 1


def test_a_task_hears_at_what_pace_its_readers_are(mesh):
    """Each has told it once, and only a pace that changes is told again."""
    spout, readers = mesh.tasks(1, "rows")[0], mesh.tasks(2, "keep")[:2]
    for reader in readers:
        mesh.emits(spout, reader, 8)
    mesh.deliver()
    for reader in readers:
        mesh.consumes(reader, 1, 8, window_rows=512, pace=256)
    mesh.flush()
    mesh.said.clear()
    mesh.begins(spout, life=2)
    paces = [{pace.task: pace.rows for pace in header.paces} for header, _ in mesh.heard(CREDITS, f"task {spout}")]
    assert paces == [dict.fromkeys(readers, 256)]

"""Schedules of faults: from a seed, from a journal, and on simulated time."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea import Bolt, Topology
from ardea.errors import UserError
from ardea.testing import Cluster, RowsSpout
from ardea.testing.kit import Fault, Kind, Schedule, Targets
from ardea.testing.kit.schedule import LONGEST, LONGEST_DELAY, ON_LINKS

NAMES = ["master", "manager-1", "manager-2", "count-0"]
LINKS = [("manager-1", "manager-2"), ("manager-1", "master")]


@given(st.integers(), st.integers(0, 60), st.floats(0, 1000), st.sets(st.sampled_from(NAMES), min_size=1))
def test_a_seed_names_what_there_is_in_time(seed, faults, seconds, names):
    targets = Targets(sorted(names), LINKS)
    schedule = Schedule.seeded(seed, targets, faults=faults, seconds=seconds)
    assert schedule == Schedule.seeded(seed, targets, faults=faults, seconds=seconds)
    assert len(schedule.faults) == faults
    assert [f.at for f in schedule.faults] == sorted(f.at for f in schedule.faults)
    for fault in schedule.faults:
        assert 0.0 <= fault.at <= seconds + 0.001
        assert 0.0 <= fault.seconds <= LONGEST[fault.kind]
        assert 0.0 <= fault.by <= LONGEST_DELAY
        if fault.kind in ON_LINKS:
            assert (fault.target, fault.other) in LINKS
        else:
            assert fault.target in names
            assert not fault.other


def test_seeds_differ_and_every_kind_comes():
    targets = Targets(NAMES, LINKS)
    one, other = (Schedule.seeded(seed, targets, faults=200, seconds=60) for seed in (1, 2))
    assert one != other
    assert {fault.kind for fault in one.faults} == set(Kind)


def test_without_links_nothing_is_cut_and_without_anything_it_is_refused():
    schedule = Schedule.seeded(1, Targets(NAMES), faults=100, seconds=60)
    assert {fault.kind for fault in schedule.faults} == {Kind.KILL, Kind.FREEZE}
    with pytest.raises(UserError, match="the targets name none"):
        Schedule.seeded(1, Targets([]), faults=1, seconds=1)


@given(st.integers(), st.integers(0, 30))
def test_a_journal_is_the_schedule_again(tmp_path_factory, seed, faults):
    schedule = Schedule.seeded(seed, Targets(NAMES, LINKS), faults=faults, seconds=60)
    journal = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    journal.write_bytes(b"".join(msgspec.json.encode(fault) + b"\n" for fault in schedule.faults))
    assert Schedule.read(journal) == schedule


def test_a_journal_that_is_none_is_named(tmp_path):
    journal = tmp_path / "journal.jsonl"
    with pytest.raises(UserError, match=r"journal\.jsonl cannot be read"):
        Schedule.read(journal)
    journal.write_text('{"at":1,"kind":"kill","target":"master"}\n{"at":1,"kind":"burn","target":"master"}\n')
    with pytest.raises(UserError, match=r"journal\.jsonl:2 is not a fault"):
        Schedule.read(journal)


class Take(Bolt):
    def process(self, tup):
        pass


class Rows(Topology):
    rows = RowsSpout.of(["n"], [[n] for n in range(200)]).spec()
    take = Take.spec(inputs=[rows], par=2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
def test_the_same_schedule_drives_the_simulated_cluster(seed):
    """Everything arrives all the same."""
    with Cluster(Rows, containers=2) as cluster:
        names = [*cluster.names, *(f"container-{number}" for number in (0, 1, 2))]
    links = [("manager-1", "manager-2"), ("manager-1", "master"), ("manager-2", "master")]
    schedule = Schedule.seeded(seed, Targets(names, links), faults=8, seconds=2)
    with Cluster(Rows, containers=2, cost={"rows": 0.01}, faults=schedule.simulated()) as cluster:
        cluster.run_until(lambda: cluster.over, 300)
        assert {n for (n,) in cluster.record.inputs("take")} == set(range(200))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [Kind.CUT, Kind.DELAY])
def test_a_fault_of_no_length_is_healed(kind):
    """Whatever the seed says about what happens at one time."""
    fault = Fault(at=0.1, kind=kind, target="manager-1", other="manager-2", by=1000.0)
    for seed in range(4):
        with Cluster(
            Rows, containers=2, seed=seed, cost={"rows": 0.01}, faults=Schedule((fault,)).simulated()
        ) as cluster:
            cluster.run_until(lambda: cluster.over, 60)


def test_what_a_simulated_cluster_cannot_do_is_refused():
    with pytest.raises(UserError, match="cannot kill metrics-1"):
        Schedule((Fault(at=1, kind=Kind.KILL, target="metrics-1"),)).simulated()


def test_a_failing_schedule_shrinks_to_what_it_takes():
    """Two of ten faults are to blame."""
    faults = [Fault(at=float(n), kind=Kind.KILL, target=f"count-{n}") for n in range(10)]
    blame = {faults[2], faults[7]}
    assert Schedule(tuple(faults)).shrunk(lambda fewer: blame <= set(fewer.faults)).faults == (faults[2], faults[7])


def test_a_frozen_process_goes_on_where_it_was():
    """What is sent to it meanwhile waits."""
    with Cluster(Rows, containers=2, cost={"rows": 0.05}) as cluster:
        cluster.advance(0.5)
        cluster.freeze("take-0", 3)
        cluster.freeze("take-1", 3)
        before = len(cluster.record.inputs("take"))
        cluster.advance(2.9)
        assert len(cluster.record.inputs("take")) == before
        cluster.run_until(lambda: cluster.over, 300)
        assert len(cluster.record.inputs("take")) == 200
        assert (cluster.life("take-0"), cluster.life("take-1")) == (1, 1)


def test_a_hung_process_is_killed_by_its_supervisor():
    """After ten seconds; another life takes over."""
    with Cluster(Rows, containers=2, cost={"rows": 0.05}) as cluster:
        cluster.advance(0.5)
        cluster.freeze("take-0", 60)
        cluster.run_until(lambda: cluster.over, 300)
        assert {n for (n,) in cluster.record.inputs("take")} == set(range(200))
        assert cluster.life("take-0") == 2

"""Mistakes in the shells that processes and simulated clusters share: a simulated run notices each."""

from __future__ import annotations

import msgspec
import pytest

from ardea import Spout, Topology
from ardea.heron_instance import shell as instance_shell
from ardea.metrics import Identity
from ardea.protocol.wire_pb2 import ORDER
from ardea.stream_manager import shell as manager_shell
from ardea.stream_manager.registration import Registrar
from ardea.testing import Cluster, CollectBolt, InvariantError, RowsSpout


class Numbers(Topology):
    spout = RowsSpout.of(["n"], [[n] for n in range(200)]).spec()
    sink = CollectBolt.spec(inputs=[spout], par=2)


class Endless(Spout):
    outputs = ["n"]

    def next_tuple(self):
        self.emit([1], tup_id=1)


class Running(Topology):
    spout = Endless.spec()
    sink = CollectBolt.spec(inputs=[spout], par=2)
    config = {"topology.max.spout.pending": 20}


def ends_after_a_new_master(seed: int) -> None:
    """It has to hear from everybody who has finished before it came."""
    with Cluster(Numbers, containers=2, seed=seed, cost={"sink": 0.002}) as cluster:
        cluster.run_until(lambda: len(cluster.record.acked["spout"]) == 200)
        cluster.kill("master")
        cluster.run_until(lambda: cluster.over, 30)


def drains_although_a_spout_is_new(seed: int) -> None:
    """The new one hears of the order ahead of the plan: it must not begin."""
    with Cluster(Running, containers=2, seed=seed, cost={"sink": 0.05}) as cluster:
        cluster.run_until(lambda: len(cluster.record.acked["spout"]) > 5)
        cluster.drain(60.0)
        cluster.advance(0.01)
        cluster.kill("spout-0")
        began = cluster.time
        cluster.run_until(lambda: cluster.over, 120)
        assert cluster.time - began < 30


def survives_a_master_and_a_bolt(seed: int) -> None:
    with Cluster(Numbers, containers=2, seed=seed, cost={"sink": 0.01}) as cluster:
        cluster.run_until(lambda: cluster.record.acked["spout"])
        cluster.kill("master")
        cluster.kill("sink-0")
        cluster.run_until(lambda: cluster.over, 60)


SCENARIOS = (ends_after_a_new_master, drains_although_a_spout_is_new, survives_a_master_and_a_bolt)


def an_order_dropped_before_the_first_plan(monkeypatch) -> None:
    deliver = instance_shell.Shell.deliver

    def dropping(self, header, frames, size):
        if header.kind != ORDER or self.executor is not None:
            deliver(self, header, frames, size)

    monkeypatch.setattr(instance_shell.Shell, "deliver", dropping)


def a_hello_answered_twice(monkeypatch) -> None:
    """Those that came before the plan are kept, and answered again at the next."""
    planned = manager_shell.Shell._planned

    def remembering(self, plan):
        early = {**self._early}
        planned(self, plan)
        self._early = early

    monkeypatch.setattr(manager_shell.Shell, "_planned", remembering)


def a_report_not_repeated(monkeypatch) -> None:
    register = Registrar._register

    def forgetting(self, master):
        self._reports.clear()
        register(self, master)

    monkeypatch.setattr(Registrar, "_register", forgetting)


def an_exit_ignored(monkeypatch) -> None:
    monkeypatch.setattr(manager_shell.Shell, "_exit", lambda self, order: None)


def a_metric_under_a_wrong_identity(monkeypatch) -> None:
    """Of the first life, for ever."""
    monkeypatch.setattr(instance_shell, "Identity", lambda *own: msgspec.structs.replace(Identity(*own), life=1))


MISTAKES = {
    an_order_dropped_before_the_first_plan: (drains_although_a_spout_is_new, AssertionError),
    a_hello_answered_twice: (survives_a_master_and_a_bolt, InvariantError),
    a_report_not_repeated: (ends_after_a_new_master, TimeoutError),
    an_exit_ignored: (ends_after_a_new_master, TimeoutError),
    a_metric_under_a_wrong_identity: (survives_a_master_and_a_bolt, InvariantError),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_sound_shells_pass(scenario):
    for seed in range(3):
        scenario(seed)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_is_noticed(monkeypatch, mistake):
    scenario, how = MISTAKES[mistake]
    mistake(monkeypatch)
    with pytest.raises(how):
        scenario(0)

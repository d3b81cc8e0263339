"""Which containers of a pod a restart tells, and which tasks it waits for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ardea.errors import ClusterError, TimedOut, Unreachable
from ardea.protocol.incarnations import incarnation
from ardea.scheduler.kubernetes import names, pods
from ardea.scheduler.kubernetes.restart import LOOK_EVERY, Restart

OWNER = {"metadata": {"uid": "u-1"}}


class Two:
    """A cluster with the pods of both containers of a topology, and its master; each order begins the next life."""

    def __init__(self, inputs):
        self.now, self.told, self.broken, self.ends = 0.0, [], (), True
        self.away, self.refuses = [], []
        self.found = SimpleNamespace(id="sums-1", inputs=inputs)
        self.namespace = "here"
        self.lives, self.states, self.tasks = {}, {}, {}
        for plan in inputs.containers:
            called = names.instance_names(plan.instances)
            self.tasks |= {(plan.number, called[i.task]): i.name for i in plan.instances}
            self.lives |= {i.name: 1 for i in plan.instances}
            containers = (*called.values(), "prepare", "stream-manager", "metrics-manager")
            self.states |= {(plan.number, name): "running" for name in containers}
            self.states[plan.number, "prepare"] = "terminated"

    def answers(self):
        """Not as long as its API server is away, which it is as soon as one container was told."""
        if self.told and self.away:
            raise self.away.pop()

    def list(self, _kind, _selector):
        self.answers()
        jobs = pods.jobs(self.found.inputs, OWNER)[-2:]
        return [
            {
                "metadata": {
                    "name": f"pod-{n}",
                    "labels": job["spec"]["template"]["metadata"]["labels"],
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": job["spec"]["template"]["spec"],
                "status": {
                    "phase": "Running",
                    "containerStatuses": [
                        {"name": name, "state": {state: {}}} for (of, name), state in self.states.items() if of == n
                    ],
                },
            }
            for n, job in enumerate(jobs, start=1)
        ]

    def execute(self, pod, container, _argv):
        where = int(pod[-1]), container
        assert self.states[where] == "running"
        self.answers()
        if container in self.broken:
            if self.ends:
                self.states[where] = "terminated"
            raise Unreachable("the connection broke")
        self.told.append(where)
        if where in self.tasks:
            self.lives[self.tasks[where]] += 1

    def ask(self, _verb):
        if self.refuses:
            raise self.refuses.pop()
        tasks = {name: SimpleNamespace(life=incarnation(1, life)) for name, life in self.lives.items()}
        return SimpleNamespace(missing_containers=[], silent_tasks=[], begins="", tasks=tasks)

    def pause(self, seconds):
        self.now += seconds

    def restart(self):
        Restart(self, self.found, self, clock=lambda: self.now, pause=self.pause).restart([1, 2], 5.0)


@pytest.fixture
def cluster(prepared):
    return Two(prepared().inputs)


def all_but(*containers):
    managers = {(n, f"{name}-manager") for n in (1, 2) for name in ("stream", "metrics")}
    return {*managers, (1, "adds-up-0"), (1, "numbers-0"), (2, "adds-up-1"), (2, "numbers-1")} - {*containers}


def test_every_container_that_runs_is_told(cluster):
    cluster.restart()
    assert (set(cluster.told), len(cluster.told)) == (all_but(), 8)


def test_one_that_does_not_run_keeps_no_other_from_its_restart(cluster):
    """It is started in any case."""
    cluster.states[1, "adds-up-0"] = "waiting"
    cluster.restart()
    assert set(cluster.told) == all_but((1, "adds-up-0"))
    assert cluster.now == 0.0


def test_nor_does_one_that_ends_meanwhile(cluster):
    cluster.broken = ("numbers-0",)
    cluster.restart()
    assert set(cluster.told) == all_but((1, "numbers-0"))


def test_one_that_runs_and_cannot_be_told_is_told_again_until_the_time_is_over(cluster):
    cluster.broken, cluster.ends = ("numbers-0",), False
    with pytest.raises(Unreachable, match="the connection broke"):
        cluster.restart()
    assert cluster.now == pytest.approx(5.0, abs=LOOK_EVERY)


@pytest.mark.parametrize("error", [Unreachable("nobody answers"), ClusterError("too many requests")])
def test_a_cluster_that_does_not_answer_for_a_moment_is_asked_again(cluster, error):
    """It cannot say either whether the container runs that could not be told."""
    cluster.away = [error] * 3
    cluster.restart()
    assert (set(cluster.told), len(cluster.told)) == (all_but(), 8)
    assert cluster.now == pytest.approx(2 * LOOK_EVERY)
    cluster.away = [error] * 99
    with pytest.raises(ClusterError, match=str(error)):
        cluster.restart()


def test_a_cluster_that_refuses_a_question_for_the_master_is_asked_again(cluster):
    cluster.refuses = [ClusterError("it is forbidden")] * 2
    cluster.restart()
    assert set(cluster.told) == all_but()


def test_tasks_that_were_told_are_waited_for(cluster):
    cluster.tasks.pop((2, "adds-up-1"))
    with pytest.raises(TimedOut, match="it waits for adds_up-1"):
        cluster.restart()

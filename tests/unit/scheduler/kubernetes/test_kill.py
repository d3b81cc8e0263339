"""A kill asks by an annotation of the root, and the keeper of the acting master tells that master."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count

import pytest

from ardea.errors import Conflict, Unreachable, Unrecognized
from ardea.scheduler.control import Status
from ardea.scheduler.kubernetes import objects
from ardea.scheduler.kubernetes.keeper import Keeper
from ardea.scheduler.kubernetes.kill import Killing
from ardea.scheduler.kubernetes.reporter import Reporter
from ardea.scheduler.kubernetes.submission import submit
from ardea.scheduler.kubernetes.topologies import find
from ardea.scheduler.kubernetes.waiting import BORNE_FOR
from ardea.state import open_state

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Master:
    """Remembers how many seconds it was told to drain for."""

    def __init__(self):
        self.told = []

    def ask(self, verb, patience=5.0, **arguments):
        if verb == "drain":
            self.told.append(arguments["wait"])
        return Status("sums", "RUNNING", "", 1, 1, [], [], 0, [], None, {}, {}, [])


@pytest.fixture
def root(cluster, prepared):
    made = prepared()
    submit(cluster, made)
    return made


@pytest.fixture
def kept(cluster, root, tmp_path):
    """Asks for the end in so many seconds, and returns all that the master was told by then."""
    master = Master()
    reporter = Reporter(cluster, "tcp://10.0.0.1:4000", "sums-master-1-x", lambda: NOW)
    with open_state(str(tmp_path / "state")) as state:
        keeper = Keeper(cluster, root.inputs, state, master, lambda: True, reporter, now=lambda: NOW)

        def killed(seconds):
            cluster.patch("ConfigMap", "sums", {"metadata": {"annotations": {objects.KILL: seconds}}})
            keeper.round()
            return master.told

        yield killed


def test_a_kill_that_is_repeated_with_less_time_hurries(kept):
    kept("3600")
    kept("3600")
    assert kept("0") == ["3600", "0"]


@pytest.mark.parametrize("seconds", ["inf", "nan", "-1", "at once", ""])
def test_what_is_no_number_of_seconds_asks_for_nothing(kept, seconds):
    assert kept(seconds) == []
    assert kept("5") == ["5"]


def test_a_root_that_has_the_name_by_now_is_not_marked(cluster, root):
    seconds = count(0, 60)
    killing = Killing(cluster, find(cluster, "Sums"), lambda _: None, clock=lambda: next(seconds), pause=lambda _: None)
    cluster.objects["ConfigMap", "sums"]["metadata"]["uid"] = "another"
    with pytest.raises(Conflict):
        killing.kill(0.0)
    assert objects.kill_of(cluster.find("ConfigMap", "sums")) is None


class Unsteady:
    """A cluster that answers some questions only, by their number; the time goes on with pauses."""

    def __init__(self, cluster, answers, error):
        self.cluster, self.answers, self.error, self.numbers, self.now = cluster, answers, error, count(1), 0.0

    def __getattr__(self, name):
        def asked(*given, **named):
            if not self.answers(next(self.numbers)):
                raise self.error
            return getattr(self.cluster, name)(*given, **named)

        return asked

    def pause(self, seconds):
        self.now += seconds

    def kill(self):
        found = find(self.cluster, "Sums")
        Killing(self, found, lambda _: None, clock=lambda: self.now, pause=self.pause).kill(0.0)


@pytest.mark.parametrize("error", [Unreachable("etcdserver: leader changed (HTTP 500)"), Unrecognized("Unauthorized")])
def test_questions_that_are_lost_end_no_kill(cluster, root, error):
    Unsteady(cluster, lambda number: number % 2 == 0, error).kill()
    assert cluster.objects == {}


def test_a_cluster_that_answers_no_more_is_told_with_what_to_do(cluster, root):
    silent = Unsteady(cluster, lambda number: number < 3, Unreachable("no answer"))
    with pytest.raises(Unreachable, match="no answer") as told:
        silent.kill()
    assert told.value.hint == "the same again finishes what is half done"
    assert BORNE_FOR <= silent.now < BORNE_FOR + 1

"""What ``ardea update --dry-run`` says would change."""

from __future__ import annotations

import json
import math
from unittest.mock import Mock

import msgspec
import pytest

from ardea import Grouping, Topology
from ardea.errors import NotFound, Unreachable, UserError
from ardea.plan.change import UpdateProgress, UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.scheduler.control import Status
from ardea.scheduler.difference import ComponentDifference, difference
from ardea.scheduler.next_definition import BESIDE, Change, next_of, wanted
from ardea.scheduler.packing import packing_for
from ardea.scheduler.update import Refused, Updating
from ardea.testing import CollectBolt, RowsSpout


class Pair(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    scaled = CollectBolt.spec(inputs=[rows], par=2)


class Other(Topology):
    """A bolt less, one more, and one that asks for more."""

    rows = RowsSpout.of(["n"], []).spec(ram="2GB")
    fresh = CollectBolt.spec(inputs=[rows])


CONFIG = {"topology.name": "Pair", "topology.stmgrs": 2, "a.password": "1"}


def definition(topology, *, config=CONFIG, state="", **more):
    plan = topology.plan(config)
    packing = packing_to_bytes(packing_for(plan.config).pack(plan))
    return Definition(
        topology="pair-1",
        state=state,
        location="p",
        config=config,
        shape=shape_of(plan),
        packing=packing,
        **more,
    )


def updated(present, topology, parallelism, config, *, rebuilt):
    plan = topology.plan(config)
    return wanted(present, plan, parallelism=parallelism, location="p", config=config, rebuilt=rebuilt)


def test_more_tasks_start_and_nothing_else_does():
    present = definition(Pair)
    found = difference(present, updated(present, Pair, {"scaled": 3}, present.config, rebuilt=False))
    assert found.components == [
        ComponentDifference(component="rows", what="same", tasks=(1, 1)),
        ComponentDifference(component="scaled", what="rescaled", tasks=(2, 3)),
    ]
    assert (found.started, found.stopped, found.moved, found.restarted) == (["scaled-2"], [], [], False)
    assert (found.configuration, found.containers_replaced) == ([], [])


def test_the_highest_tasks_end():
    present = definition(Pair)
    found = difference(present, updated(present, Pair, {"scaled": 1}, present.config, rebuilt=False))
    assert (found.started, found.stopped) == ([], ["scaled-1"])


def test_configuration_is_told_by_its_keys_without_values():
    present = definition(Pair)
    changed = {**CONFIG, "a.password": "2", "topology.max.spout.pending": 7}
    found = difference(present, updated(present, Pair, {}, changed, rebuilt=True))
    assert found.configuration == ["a.password", "topology.max.spout.pending"]
    assert found.restarted
    assert b'"2"' not in msgspec.json.encode(found)


def test_a_new_version_names_what_comes_goes_and_differs():
    present = definition(Pair)
    found = difference(present, updated(present, Other, {}, present.config, rebuilt=True))
    assert {each.component: (each.what, each.tasks) for each in found.components} == {
        "fresh": ("added", (0, 1)),
        "rows": ("changed", (1, 1)),
        "scaled": ("removed", (2, 0)),
    }
    assert (found.started, found.stopped) == (["fresh-0"], ["scaled-0", "scaled-1"])


@pytest.mark.parametrize(("whole", "replaced"), [(False, []), (True, [1, 2])])
def test_where_containers_are_replaced_as_a_whole_it_says_which(whole, replaced):
    present = definition(Pair, whole=whole)
    found = difference(present, updated(present, Pair, {}, {**CONFIG, "topology.max.spout.pending": 7}, rebuilt=True))
    assert found.containers_replaced == replaced


def test_nothing_differs_from_itself():
    present = definition(Pair)
    found = difference(present, present)
    assert {each.what for each in found.components} == {"same"}
    assert not any((found.configuration, found.started, found.stopped, found.moved, found.restarted))


def test_what_counts_on_its_number_of_tasks_keeps_it_though_keys_may_move():
    class Counting(CollectBolt):
        rescalable = fixed_parallelism = True

    class Fixed(Topology):
        rows = RowsSpout.of(["n"], []).spec()
        scaled = Counting.spec(inputs={rows: Grouping.fields("n")}, par=2)

    present = definition(Fixed)
    change = Change(parallelism={"scaled": 3}, moves_keys=True)
    with pytest.raises(UserError, match=r"scaled: its tasks count on their number, .* nothing was changed"):
        next_of(present, change, Fixed.plan, half_done=False)


@pytest.mark.parametrize(
    ("before", "now", "both"),
    [
        ({"topology.workers": 2}, {"topology.stmgrs": 3}, {"topology.stmgrs": 3}),
        (
            {"topology.tick.tuple.freq.secs": 2},
            {"topology.tick.tuple.freq.ms": 500},
            {"topology.tick.tuple.freq.secs": 0.5},
        ),
    ],
)
def test_what_an_update_sets_wins_over_another_name_of_the_key(before, now, both):
    present = definition(Pair, config=before)
    assert next_of(present, Change(overrides=now), Pair.plan, half_done=False).config == both


def test_configuration_that_was_stored_as_it_was_written_is_not_changed_by_more_tasks():
    present = definition(Pair, config={"topology.workers": 2})
    assert next_of(present, Change(parallelism={"scaled": 3}), Pair.plan, half_done=False).build == 1


@pytest.mark.parametrize("scheme", ["zookeeper", "zookeeper+tls", "file"])
def test_two_plans_that_zookeeper_does_not_take_at_once_are_refused_before_anything_is_asked_for(monkeypatch, scheme):
    """Else each master would die of the write, one after the other."""
    present = definition(Pair, state=f"{scheme}://zk:2181/ardea")
    change = Change(parallelism={"scaled": 3})
    next_ = next_of(present, change, Pair.plan, half_done=False)
    size = len(present.packed()) + len(next_.packed()) + len(json.dumps(next_.config, separators=(",", ":")))
    monkeypatch.setattr("ardea.scheduler.next_definition.MOST_AT_ONCE", size + BESIDE)
    assert next_of(present, change, Pair.plan, half_done=False) == next_
    monkeypatch.setattr("ardea.scheduler.next_definition.MOST_AT_ONCE", size + BESIDE - 1)
    if scheme == "file":
        assert next_of(present, change, Pair.plan, half_done=False) == next_
    else:
        with pytest.raises(UserError, match=r"pair-1: its plans before and after the update .* nothing was changed"):
            next_of(present, change, Pair.plan, half_done=False)


def test_a_nan_in_the_configuration_is_not_another_configuration():
    """Those of two decodings are unequal."""
    present = definition(Pair, config={"my.limit": math.nan})
    assert next_of(present, Change(parallelism={"scaled": 3}), Pair.plan, half_done=False).build == 1
    again = Definition.unpacked(present.packed(), "here")
    assert again.same_as(present)
    assert difference(present, again).configuration == []
    assert not definition(Pair, config={"my.limit": 1.0}).same_as(present)


@pytest.mark.timeout(20)
def test_more_tasks_than_there_are_ids_are_refused_before_they_are_packed():
    present = definition(Pair)
    with pytest.raises(UserError, match=r"has 10000000000 tasks, and at most 65535 .*; nothing was changed"):
        updated(present, Pair, {"scaled": 9_999_999_999}, present.config, rebuilt=False)


def test_the_plan_is_sent_again_only_to_a_master_that_may_not_have_it():
    """It may have a megabyte: while the update is under way its status is asked for, and not after a silence."""
    request = UpdateRequest(id="w", wanted=definition(Pair), base=1, patience=60.0)
    steps = ["draining", "draining", Unreachable("gone"), "switching", "done"]

    def status(step):
        update = UpdateProgress("w", step)
        return Status("pair-1", "RUNNING", "", 1, 2, [], [], 0, [], update, {}, {}, [])

    control = Mock(ask=Mock(side_effect=[step if isinstance(step, Exception) else status(step) for step in steps]))
    Updating(control, request, Mock(), ended=lambda: False, clock=lambda: 0.0, pause=Mock()).update()
    assert [call.args[0] for call in control.ask.call_args_list] == ["update", "status", "status", "update", "status"]
    assert [bool(call.kwargs.get("body")) for call in control.ask.call_args_list] == [True, False, False, True, False]


@pytest.mark.timeout(20)
def test_a_former_plan_that_does_not_come_up_is_not_waited_for_longer_than_the_next_one_was():
    progress = UpdateProgress("w", "putting back", ("a-0 does not work by it yet",), "after 60 s, b-0 was missing")
    status = Status("pair-1", "RUNNING", "", 1, 2, [], [], 0, [], progress, {}, {}, [])
    request = UpdateRequest(id="w", wanted=definition(Pair), base=1, patience=60.0)
    now = [0.0]
    work = Updating(
        Mock(ask=Mock(return_value=status)),
        request,
        Mock(),
        ended=lambda: False,
        clock=lambda: now[0],
        pause=lambda seconds: now.append(now.pop() + seconds),
    )
    told = (
        "not made: after 60 s, b-0 was missing; the former plan is in force again, and 60 s later a-0 does not work by"
    )
    with pytest.raises(Refused, match=told):
        work.update()
    assert now[0] == pytest.approx(60.0, abs=1.0)


@pytest.mark.parametrize(("final", "told"), [(True, "pair-1 has ended"), (False, "did not answer")])
def test_when_the_master_is_silent_the_end_that_is_stored_counts(final, told):
    control = Mock(ask=Mock(side_effect=Unreachable("the master did not answer")))
    request = UpdateRequest(id="w", wanted=definition(Pair), base=1, patience=60.0)
    clock = Mock(side_effect=range(0, 1000, 10))
    work = Updating(control, request, Mock(), ended=lambda: final, clock=clock, pause=Mock())
    with pytest.raises(Refused if final else Unreachable, match=told):
        work.update()
    assert control.ask.call_count == (1 if final else 3)


@pytest.mark.parametrize(("final", "told"), [(True, "pair-1 has ended"), (False, "the token cannot be read")])
def test_a_topology_that_is_not_found_does_not_go_on_as_it_was(final, told):
    """It is gone, or another user's."""
    control = Mock(ask=Mock(side_effect=NotFound("the token cannot be read", hint="it belongs to another user")))
    request = UpdateRequest(id="w", wanted=definition(Pair), base=1, patience=60.0)
    work = Updating(control, request, Mock(), ended=lambda: final, clock=lambda: 0.0, pause=Mock())
    with pytest.raises(Refused, match=told) as refusal:
        work.update()
    assert "the topology goes on" not in refusal.value.hint
    assert final or refusal.value.hint == "it belongs to another user"

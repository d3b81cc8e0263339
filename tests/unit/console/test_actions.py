"""A verb of the console: what it would do, and that it does what was confirmed."""

from __future__ import annotations

import msgspec
import pytest

from ardea.console.actions import Action, Activate, Kill, Order, Rescale, Restart, Savepoint, digest, read
from ardea.errors import ArdeaError, Conflict, NotFound, UserError
from tests.unit.cli.memory import RUNNING, Memory


def action(topology: str, verb: str, order: Order) -> Action:
    return Action(Memory(), topology, verb, order)


def confirmed(topology: str, verb: str, order: Order) -> Order:
    return msgspec.structs.replace(order, confirm=action(topology, verb, order).preview().confirm)


def test_a_dry_run_changes_nothing_and_says_what_would_happen(submit):
    topology = submit()
    preview = action(topology, "kill", Kill(wait_secs=3)).preview()
    assert preview.topology == topology
    assert preview.does[0].startswith("the spouts stop, open tuples have 3 s to finish")
    assert RUNNING


def test_what_was_confirmed_is_done(submit):
    topology = submit()
    said = []
    action(topology, "kill", confirmed(topology, "kill", Kill())).perform(said.append)
    assert not RUNNING


@pytest.mark.parametrize("confirm", [None, "", "0" * 32])
def test_without_its_own_confirmation_nothing_is_done(submit, confirm):
    topology = submit()
    with pytest.raises(Conflict, match="nothing was done"):
        action(topology, "kill", Kill(confirm=confirm)).perform(print)
    assert RUNNING


def test_a_confirmation_holds_for_what_was_shown_only(submit):
    topology = submit()
    order = confirmed(topology, "kill", Kill())
    for other in (Kill(wait_secs=1, confirm=order.confirm), Kill(savepoint=False, wait_secs=11, confirm=order.confirm)):
        with pytest.raises(Conflict):
            action(topology, "kill", other).perform(print)
    with pytest.raises(Conflict):
        action(topology, "restart", Restart(confirm=order.confirm)).perform(print)
    RUNNING["Endless"].state = "PAUSED"
    with pytest.raises(Conflict):
        action(topology, "kill", order).perform(print)
    assert RUNNING


def test_a_container_that_is_not_there_cannot_be_restarted(submit):
    with pytest.raises(NotFound, match="has no container 7; it has 0, 1"):
        action(submit(), "restart", Restart(container=7)).preview()


def test_what_keeps_no_state_has_no_savepoint(submit):
    with pytest.raises(UserError, match="keeps no state"):
        action(submit(), "savepoint", Savepoint()).preview()


def test_a_topology_cannot_be_renamed(submit):
    with pytest.raises(ArdeaError, match="cannot be renamed"):
        action(submit(), "update", Rescale(overrides={"topology.name": "Other"})).preview()


@pytest.mark.parametrize(
    "body", [b'{"parallelism": {"a": 0}}', b'{"parallelism": {"a": "2"}}', b'{"container": -1}', b"1"]
)
def test_what_is_no_order_says_where(body):
    verb = "restart" if b"container" in body else "update"
    with pytest.raises(UserError, match=f"the body of `{verb}` cannot be read"):
        read(verb, body)


def test_an_empty_body_is_the_dry_run_with_the_command_lines_defaults():
    assert read("kill", b"") == Kill()
    assert read("activate", b"{}") == Activate()


def test_a_digest_does_not_depend_on_itself():
    order = Kill()
    assert digest("kill", order, "t", []) == digest("kill", Kill(confirm="x"), "t", [])
    assert digest("kill", order, "t", []) != digest("kill", order, "u", [])

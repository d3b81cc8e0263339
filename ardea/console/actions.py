"""A verb, its dry run and its confirmation.  What they ask and change is the scheduler's; they print nothing."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from ardea import config_check
from ardea.config import Settings
from ardea.errors import ArdeaError, ConfigError, Conflict, NotFound, UserError
from ardea.plan.definition import Definition
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler.difference import Difference
from ardea.scheduler.next_definition import Change
from ardea.scheduler.savepoint import Saving, Wanted, new_id
from ardea.scheduler.schedulers import Handle, Say, Scheduler

DRAIN_SECS, BACK_WITHIN, SAVED_WITHIN = 10.0, 60.0, 60.0
LONGEST_WAIT = 3600.0
Seconds = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)]
Patience = Annotated[float, msgspec.Meta(ge=1, le=LONGEST_WAIT)]


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``confirm``: what the dry run said; without it this is the dry run."""

    confirm: str | None = None


class Activate(Order, frozen=True, kw_only=True):
    """Let the spouts of a deactivated topology go on."""


class Deactivate(Order, frozen=True, kw_only=True):
    """Pause the spouts."""


class Restart(Order, frozen=True, kw_only=True):
    """Restart one container, 0 is the master's, or all; ``wait_secs``: that they have to come back."""

    container: Annotated[int, msgspec.Meta(ge=0)] | None = None
    wait_secs: Seconds = BACK_WITHIN


class Rescale(Order, frozen=True, kw_only=True):
    """More or fewer tasks (component -> tasks), or other configuration.

    ``moves_keys`` and ``drop_state`` are those of ``ardea update``; ``wait_secs``: that new processes have to come up;
    null: as the scheduler has it.
    """

    parallelism: dict[str, Annotated[int, msgspec.Meta(ge=1)]] = {}
    overrides: dict[str, Any] = {}
    moves_keys: bool = False
    drop_state: bool = False
    wait_secs: Patience | None = None


class Savepoint(Order, frozen=True, kw_only=True):
    """Copy all state into a new folder of the default place; ``wait_secs``: that it may take."""

    wait_secs: Patience = SAVED_WITHIN


class Kill(Order, frozen=True, kw_only=True):
    """End it and forget it.

    ``savepoint``: copy its state first, and go on if that fails; ``wait_secs``: that open tuples have to finish.
    """

    savepoint: bool = False
    wait_secs: Seconds = DRAIN_SECS


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What would happen to the topology of that id; ``confirm`` is to be sent for it to happen."""

    verb: str
    topology: str
    does: list[str]
    difference: Difference | None
    confirm: str


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened; ``said`` is what the command line says."""

    verb: str
    topology: str
    said: list[str]


VERBS: Mapping[str, type[Order]] = {
    "activate": Activate,
    "deactivate": Deactivate,
    "restart": Restart,
    "update": Rescale,
    "savepoint": Savepoint,
    "kill": Kill,
}


def read(verb: str, body: bytes) -> Order:
    """The order in a request's body; an empty one is ``{}``.

    Raises:
        UserError: it is none.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=VERBS[verb])
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"the body of `{verb}` cannot be read: {error}", hint="/api/v1/openapi.json says what it may have"
        ) from None


class Action:
    """One order for one topology.

    Args:
        scheduler: where it runs.
        topology: its id.
        verb: of :data:`VERBS`.
        order: what is asked for.
    """

    def __init__(self, scheduler: Scheduler, topology: str, verb: str, order: Order) -> None:
        self._scheduler, self._topology = scheduler, topology
        self._verb, self._order = verb, order

    def preview(self) -> Preview:
        """What would happen.

        Raises:
            UserError: it cannot be.
            NotFound, Unreachable: the topology is gone, or does not run.
        """
        with self._scheduler.find(self._topology) as found:
            definition = _definition(found)
            if self._verb != "kill":
                found.require_running()
            difference = None
            if isinstance(self._order, Rescale):
                with found.update(_change(self._order), None) as made:
                    difference = made.difference
            does = _says(self._verb, self._order, found, definition)
            seen = (found.topology.state, None if definition is None else definition.epoch)
            return Preview(
                verb=self._verb,
                topology=found.id,
                does=does,
                difference=difference,
                confirm=digest(self._verb, self._order, found.id, (does, difference, seen)),
            )

    def perform(self, say: Say) -> None:
        """Does what was confirmed.

        Raises:
            Conflict: something else would happen by now; nothing was done.
            ArdeaError: as the verb of the command line.
        """
        if self.preview().confirm != self._order.confirm:
            raise Conflict(
                f"`{self._verb}` would do something else to {self._topology} by now; nothing was done",
                hint="look at the dry run again, and confirm that",
            )
        order = self._order
        if isinstance(order, Kill):
            self._kill(order, say)
            return
        with self._scheduler.find(self._topology) as found:
            if isinstance(order, Rescale):
                with found.update(_change(order), None) as made:
                    made.apply(self._scheduler.start_secs if order.wait_secs is None else order.wait_secs, say)
                say(f"{found.id} works by the new plan")
            elif isinstance(order, Restart):
                chosen = found.restart(order.container, order.wait_secs)
                say(f"{found.id}: restarted {_containers(chosen)}")
            elif isinstance(order, Savepoint):
                _save(found, order.wait_secs, say, ends=False)
            else:
                with found.control() as control:
                    control.ask(self._verb)
                say(f"{found.id} is {self._verb}d")

    def _kill(self, order: Kill, say: Say) -> None:
        if order.savepoint:
            with self._scheduler.find(self._topology) as found:
                _save(found, max(SAVED_WITHIN, order.wait_secs), say, ends=True)
        with contextlib.suppress(NotFound) if order.savepoint else contextlib.nullcontext():
            self._scheduler.kill(self._topology, order.wait_secs, say)


def digest(verb: str, order: Order, topology: str, seen: Any) -> str:
    """Stands for an order and what it would do: 32 hex digits, others for whatever differs."""
    asked = msgspec.structs.replace(order, confirm=None)
    told = msgspec.json.encode((verb, topology, msgspec.to_builtins(asked), seen), order="sorted")
    return hashlib.blake2b(told, digest_size=16).hexdigest()


def _definition(found: Handle) -> Definition | None:
    """What runs; None: nobody says, and what is left can only be killed."""
    try:
        return found.definition()
    except ArdeaError:
        return None


def _change(order: Rescale) -> Change:
    normal = config_check.validate(order.overrides, "the request")
    if "topology.name" in normal:
        raise ConfigError("topology.name: a running topology cannot be renamed")
    return Change(
        parallelism=order.parallelism,
        overrides=order.overrides,
        moves_keys=order.moves_keys,
        drop_state=order.drop_state,
    )


def _save(found: Handle, patience: float, say: Say, *, ends: bool) -> None:
    asked = new_id()
    with found.control() as control:
        wanted = Wanted(found.id, asked, found.savepoint_folder(asked), patience, ends)
        done = Saving(control, wanted, say, found.why).save()
    say(f"{found.id}: savepoint of {done.bytes:,} bytes in {done.folder}")


def _says(verb: str, order: Order, found: Handle, definition: Definition | None) -> list[str]:
    """Sentences."""
    if isinstance(order, Restart):
        return _restarts(order, found.id, definition)
    if isinstance(order, Savepoint):
        return [_saves(found, definition), "rows keep flowing"]
    if isinstance(order, Kill):
        saved = [_saves(found, definition)] if order.savepoint else []
        tasks = "" if definition is None else f"; {len(packing_from_bytes(definition.packing).instances):,} tasks end"
        if not found.topology.running:
            return [*saved, f"what is left of {found.id} is removed", "its logs and savepoints stay"]
        return [
            *saved,
            f"the spouts stop, open tuples have {order.wait_secs:g} s to finish{tasks}",
            f"{found.id} is forgotten; its savepoints stay",
        ]
    words: Mapping[str, Callable[[], list[str]]] = {
        "activate": lambda: ["the spouts go on"],
        "deactivate": lambda: ["the spouts pause; what they have emitted is still processed"],
        "update": lambda: ["the spouts pause, open tuples are processed, then it goes on with the new plan"],
    }
    return words[verb]()


def _restarts(order: Restart, topology: str, definition: Definition | None) -> list[str]:
    if definition is None:
        raise UserError(f"nobody says what {topology} is made of")
    numbers = [0, *(c.number for c in packing_from_bytes(definition.packing).containers)]
    if order.container is not None and order.container not in numbers:
        raise NotFound(f"{topology} has no container {order.container}; it has {', '.join(map(str, numbers))}")
    chosen = numbers if order.container is None else [order.container]
    return [f"the processes of {_containers(chosen)} start again", "open tuples are replayed"]


def _saves(found: Handle, definition: Definition | None) -> str:
    if definition is None or not Settings.of(definition.shape.config).remembers:
        raise UserError(
            f"{found.id} keeps no state, so that there is nothing to save",
            hint="only the mode EFFECTIVELY_ONCE keeps state",
        )
    return f"all its state is copied into a new folder in {found.savepoint_folder()}"


def _containers(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:20])) + (" …" if len(numbers) > 20 else "")
    return f"container{'s' if len(numbers) > 1 else ''} {shown}"

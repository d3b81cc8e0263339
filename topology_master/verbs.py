"""The verbs of the control port: what a caller may ask of an acting master, and what it answers."""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable
from typing import Any

import msgspec

from ardea.errors import OtherVersion, ProtocolError, StateError
from ardea.health import Health, ProcessRow
from ardea.metrics import Samples, by_component
from ardea.metrics.samples import MOST_NAMES
from ardea.plan.change import UpdateRequest
from ardea.plan.definition import Definition
from ardea.protocol.inspection import MOST_SECONDS
from ardea.protocol.inspection import Answer as Answered
from ardea.protocol.wire_pb2 import Answer, Ask, Inspect, TaskState
from ardea.state import Fenced
from ardea.topology_master.ending import LastReport
from ardea.topology_master.health import Seen
from ardea.topology_master.heard import Heard
from ardea.topology_master.master import Master
from ardea.topology_master.savepoints import SavepointRequest
from ardea.versions import protocol_differs

_OF_NONE: dict[str, Any] = {"tasks": {}, "components": {}, "processes": [], "edges": [], "supervised": []}
AS_OLD = "the verb has to be of the topology's version"


class Verbs:
    """Those of one master, for callers that have its topology's token; docs/protocol.md lists them."""

    def __init__(
        self,
        master: Master,
        heard: Heard,
        token: str,
        acting: str,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """``acting`` is what people call this process, or its pod; ``wall``: Unix seconds."""
        self._master, self._acting = master, acting
        self._heard, self._token, self._wall = heard, token, wall

    def answer(self, ask: Ask, protocol: int, now: float) -> Answer:
        """Does what is asked.  An update needs a caller of this version."""
        if not hmac.compare_digest(ask.token.encode(), self._token.encode()):
            return Answer(ok=False, code="NOT_ALLOWED", message="the token is not this topology's")
        try:
            if ask.verb == "update" and (
                why := protocol_differs("the topology master", "the caller", protocol, AS_OLD)
            ):
                raise OtherVersion("OTHER_VERSION", why)
            if not self._obeyed(ask, now):
                return Answer(ok=False, code="UNKNOWN_VERB", message=f"the master knows no verb {ask.verb!r}")
            more = self._asked_for(ask, now)
        except ValueError as error:
            return Answer(ok=False, code="BAD_ARGUMENT", message=f"{ask.verb}: {error}")
        except ProtocolError as error:
            return Answer(ok=False, code=error.code, message=f"{ask.verb}: {error.reason}")
        except Fenced:
            raise
        except StateError as error:
            return Answer(ok=False, code="NOT_WRITTEN", message=f"{ask.verb}: {error.message}")
        rows = self._heard.health.rows(self._master.admissions.plan, now)
        each = _OF_NONE if "brief" in ask.arguments else self._of_each(rows, now)
        return Answer(ok=True, body=msgspec.json.encode(self._of_all(rows, now) | each | more))

    def _asked_for(self, ask: Ask, now: float) -> dict[str, Any]:
        """What the status has only for who asks for it; ValueError if he asks for what cannot be."""
        more: dict[str, Any] = {}
        if "stories" in ask.arguments:
            more["stories"] = self._master.stories.events(now)
        if "exceptions" in ask.arguments:
            more["exceptions"] = self._master.exceptions.present(now, self._wall())
        if ask.verb == "update":  # another one may be under way, or the last one, by now
            more["update"] = self._master.updates.progress(_given(ask, "id"))
        if ask.verb == "history":
            more["history"] = self._samples(ask)
        if ask.verb == "inspect":
            more["inspection"] = self._inspected(ask, now)
        return more

    def _inspected(self, ask: Ask, now: float) -> Answered:
        seconds = int(_seconds(ask.arguments.get("seconds", "0")))
        wanted = Inspect(id=_given(ask, "id"), what=_given(ask, "what"), seconds=min(seconds, MOST_SECONDS + 1))
        return self._master.orders.inspections.asked(wanted, _given(ask, "task"), self._master.admissions.plan, now)

    def _samples(self, ask: Ask) -> Samples:
        names = [name for name in ask.arguments.get("names", "").split(",") if name]
        if len(names) > MOST_NAMES:
            raise ValueError(f"{len(names)} names, at most {MOST_NAMES}")
        everybody = [component.name for component in self._master.admissions.plan.logical]
        return self._heard.history.samples(names or everybody, _seconds(ask.arguments.get("since", "0")))

    def _obeyed(self, ask: Ask, now: float) -> bool:
        master = self._master
        if ask.verb == "activate":
            master.set_active(now, active=True)
        elif ask.verb == "deactivate":
            master.set_active(now, active=False)
        elif ask.verb == "drain":
            master.drain(now, _seconds(_given(ask, "wait")) if "wait" in ask.arguments else None)
        elif ask.verb == "debug":
            master.debug(_given(ask, "target"), int(_seconds(_given(ask, "seconds"))))
        elif ask.verb == "fail":
            master.fail(_given(ask, "reason"), ask.arguments.get("culprit", ""))
        elif ask.verb == "update":
            master.update(_request(ask), now)
        elif ask.verb == "savepoint":
            master.save(_savepoint(ask), now)
        elif ask.verb == "snapshots":
            self._list(_given(ask, "id"), _given(ask, "name"))
        elif ask.verb != "status" and ask.verb not in ("history", "inspect"):
            return False
        return True

    def _list(self, request: str, name: str) -> None:
        if (coordination := self._master.coordination) is not None:
            coordination.listings.asked(request, self._master.admissions.definition, name)

    def _of_all(self, rows: list[ProcessRow], now: float) -> dict[str, Any]:
        """What a status says of the topology as a whole."""
        master, plan = self._master, self._master.admissions.plan
        coordination, errors = master.coordination, master.ending.errors()
        return {
            "topology": master.admissions.definition.topology,
            "state": master.execution.state.value,
            "reason": master.execution.reason,
            "term": master.term,
            "epoch": plan.epoch,
            "missing_containers": master.admissions.missing,
            "silent_tasks": master.silent_tasks,
            "begins": master.begins,
            "given_up": master.ending.given_up,
            "errors": list(errors.values()),
            "erring": list(errors),
            "savepoint": master.savepoints.progress(),
            "update": master.updates.progress(),
            "stalls": self._heard.stalls.present,
            "acting": self._acting,
            "came_up": master.execution.came_up,
            "health": None if master.over else self._look(rows, now),
            "kept": None if coordination is None else coordination.listings.last,
            "snapshots": None if coordination is None else coordination.status(now),
        }

    def _of_each(self, rows: list[ProcessRow], now: float) -> dict[str, Any]:
        """What it says of each task, process and edge."""
        plan, overview = self._master.admissions.plan, self._heard.overview
        overview.expire(now)
        homes = {number: place.container for number, place in plan.tasks.items()}
        processes = overview.processes(homes)
        return {
            "tasks": {plan.tasks[t].name: self._task(t, last) for t, last in self._master.ending.tasks.items()},
            "components": by_component(processes),
            # By number: a task that has come since one was removed may have the name of that one.
            "processes": [each for each in processes if not each.component or each.task in homes],
            "edges": self._heard.lately.edges(plan),
            "supervised": rows,
        }

    def _look(self, rows: list[ProcessRow], now: float) -> Health:
        master, coordination, wall = self._master, self._master.coordination, self._wall()
        seen = Seen(
            plan=master.admissions.plan,
            missing=master.admissions.missing,
            silent=master.silent_tasks,
            updating=master.updates.running,
            came_up=master.execution.came_up,
            others=[
                *(() if coordination is None else coordination.troubles(now, wall)),
                *self._heard.stalls.troubles(),
            ],
        )
        return self._heard.health.look(seen, rows, now, wall)

    def _task(self, task: int, last: LastReport) -> dict[str, Any]:
        plan = self._master.admissions.plan
        component = plan.logical[plan.tasks[task].component]
        return {
            "state": TaskState.Name(last.state),
            "life": last.life,
            "open": last.open,
            "asked": msgspec.to_builtins(component.resource),
        }


def _given(ask: Ask, name: str) -> str:
    """An argument; ValueError if there is none."""
    if not (text := ask.arguments.get(name)):
        raise ValueError(f"the argument {name} is missing")
    return text


def _request(ask: Ask) -> UpdateRequest:
    """ValueError if it is none."""
    try:
        wanted = Definition.unpacked(ask.body, "the body")
    except StateError as error:
        raise ValueError(error.message) from error
    return UpdateRequest(_given(ask, "id"), wanted, int(_given(ask, "base")), _seconds(_given(ask, "wait")))


def _savepoint(ask: Ask) -> SavepointRequest:
    """ValueError if it is none."""
    wait = _seconds(_given(ask, "wait"))
    return SavepointRequest(_given(ask, "id"), _given(ask, "folder"), wait, ends="kill" in ask.arguments)


def _seconds(text: str) -> float:
    """ValueError if that is no time to wait."""
    seconds = float(text)
    if not 0.0 <= seconds < math.inf:
        raise ValueError(f"{text} is not a number of seconds")
    return seconds

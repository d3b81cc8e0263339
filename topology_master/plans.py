"""How managers are told the plan: the whole of it once, afterwards what has changed."""

from __future__ import annotations

from collections.abc import Sequence

from ardea.plan.definition import Definition
from ardea.plan.shape import shape_to_bytes
from ardea.plan.wire import packing_to_message
from ardea.protocol.lane import Lane
from ardea.protocol.plan_changes import difference
from ardea.protocol.wire_pb2 import PLAN, Header, Plan
from ardea.topology_master.admissions import Admissions, Container


class Plans:
    """Those of one term."""

    def __init__(self, admissions: Admissions, term: int) -> None:
        self._admissions = admissions
        self._term = term
        self._sent = Plan()  # the last; its version is 0 before the first
        self._definition: Definition | None = None  # that it is of

    def send(self, containers: Sequence[Container], *, active: bool) -> None:
        """The plan in force, to those that do not have it."""
        if not containers:
            return
        former, now = self._sent, self._present(active=active)
        if now != former:
            now.version += 1
            self._sent = now
        whole = now.SerializeToString()
        change = difference(former, now).SerializeToString() if 0 < former.version < now.version else whole
        for container in containers:
            if container.told != now.version:
                body = change if container.told == former.version else whole
                container.link.send(Lane.CONTROL, Header(kind=PLAN), [body], len(body))
                container.told = now.version

    def _present(self, *, active: bool) -> Plan:
        """By the version of the last."""
        admissions, plan = self._admissions, Plan(version=self._sent.version, term=self._term, active=active)
        definition = admissions.definition
        if definition is self._definition:
            plan.shape, plan.packing = self._sent.shape, self._sent.packing
        else:
            plan.shape, plan.packing = shape_to_bytes(definition.shape), packing_to_message(definition.packing)
        self._definition = definition
        plan.epoch, plan.build = admissions.plan.epoch, definition.build
        plan.keys.update(definition.keys)
        known = {c.address.container: c.address for c in admissions.members if c.address is not None}
        plan.addresses.extend(known[number] for number in sorted(known))
        return plan

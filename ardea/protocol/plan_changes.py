"""A plan as what has changed since another one: a master sends the whole to a manager once (docs/protocol.md)."""

from __future__ import annotations

from ardea.plan.names import container_name
from ardea.plan.packing import ContainerPlan, PackingPlan
from ardea.plan.wire import packing_from_message, packing_to_bytes, packing_to_message
from ardea.protocol.wire_pb2 import Plan


def difference(former: Plan, now: Plan) -> Plan:
    """What makes ``now`` of ``former``, see :func:`whole`; ``now`` itself where nothing less does."""
    change = Plan()
    change.CopyFrom(now)
    change.base = former.version
    if now.shape == former.shape:
        change.ClearField("shape")
    known = {address.container: address for address in former.addresses}
    del change.addresses[:]
    change.addresses.extend(address for address in now.addresses if known.get(address.container) != address)
    for name, key in former.keys.items():
        if now.keys.get(name) == key:
            del change.keys[name]
    change.ClearField("packing")
    if now.packing != former.packing:
        before, after = _containers(former), _containers(now)
        change.gone.extend(sorted(before.keys() - after.keys()))
        changed = (container for number, container in after.items() if before.get(number) != container)
        change.packing = _packed(packing_from_message(now.packing).algorithm, *changed)
    return change if whole(former, change) == now else now


def whole(former: Plan, change: Plan) -> Plan:
    """The plan that ``change`` makes of ``former``.

    Raises:
        StateError: one of the two holds a packing plan that cannot be read.
    """
    now = Plan()
    now.CopyFrom(change)
    for name in ("base", "gone", "addresses"):
        now.ClearField(name)
    gone = frozenset(change.gone)
    now.shape = change.shape or former.shape
    addresses = {address.container: address for address in (*former.addresses, *change.addresses)}
    now.addresses.extend(addresses[number] for number in sorted(addresses.keys() - gone))
    names = frozenset(map(container_name, gone))
    now.keys.update({name: key for name, key in former.keys.items() if name not in names and name not in change.keys})
    if not change.packing:
        now.packing = former.packing
    else:
        changed = packing_from_message(change.packing)
        containers = _containers(former) | {container.number: container for container in changed.containers}
        now.packing = _packed(changed.algorithm, *(containers[number] for number in sorted(containers.keys() - gone)))
    return now


def _containers(plan: Plan) -> dict[int, ContainerPlan]:
    return {container.number: container for container in packing_from_message(plan.packing).containers}


def _packed(algorithm: str, *containers: ContainerPlan) -> bytes:
    return packing_to_message(packing_to_bytes(PackingPlan(algorithm, containers)))

"""What a container's stream manager says of itself to a master: in whose name, by which plan, where it is reached."""

from __future__ import annotations

from collections.abc import Callable

from ardea.plan.definition import Definition
from ardea.protocol.incarnations import admission_of, applicant
from ardea.protocol.wire_pb2 import END, Address, Hello, Plan, Registration
from ardea.stream_manager.hellos import Hellos
from ardea.versions import PROTOCOL


class Applicant:
    """One manager in one of its lives; ``admission`` is 0 until a master has admitted its holder."""

    def __init__(
        self, definition: Definition, container: int, holder: str, life: int, address: tuple[str, int, int]
    ) -> None:
        """``address``: the host, and the ports for data and control, at which other managers reach this one."""
        self.container = container
        self.me = applicant(holder, life)
        self.admission = 0
        self._topology = definition.topology
        self._holder = holder
        host, data_port, control_port = address
        self._address = Address(container=container, host=host, data_port=data_port, control_port=control_port)
        self._epoch, self._digest = definition.epoch, definition.shape.digest
        self._knows: Hellos | None = None

    def planned(self, knows: Hellos) -> None:
        """The plan that the manager works by, and the orders that hold: hellos say so."""
        self._epoch, self._digest, self._knows = knows.epoch, knows.digest, knows

    def hello(self, gave: Callable[[Plan], bool], *, leaving: bool) -> Hello:
        """To the master that ``gave`` the plan, or did not; ``leaving``: whoever takes this place need not wait."""
        hello = Hello(
            protocol=PROTOCOL,
            topology=self._topology,
            digest=self._digest,
            epoch=self._epoch,
            container=self.container,
            holder=self._holder,
            admission=self.admission,
            leaving=leaving,
        )
        if (knows := self._knows) is not None and (plan := knows.plan) is not None:
            hello.term = 0 if gave(plan) else plan.term
            hello.known.update({each.container: admission_of(each.incarnation) for each in plan.addresses})
            hello.paused = not plan.active
            hello.ending = END in knows.orders
        return hello

    def registration(self) -> Registration:
        """Once the master knows it."""
        return Registration(
            topology=self._topology,
            digest=self._digest,
            container=self.container,
            holder=self._holder,
            address=self._address,
        )

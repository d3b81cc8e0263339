"""What a container's stream manager says of itself to a master: in whose name, by which plan, where it is reached."""

from __future__ import annotations

from ardea.plan.definition import Definition
from ardea.protocol.incarnations import applicant
from ardea.protocol.wire_pb2 import Address, Hello, Registration
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

    def planned(self, epoch: int, digest: str) -> None:
        """The plan that the manager works by: hellos say so."""
        self._epoch, self._digest = epoch, digest

    def hello(self, *, leaving: bool) -> Hello:
        """``leaving``: whoever takes this container's place need not wait."""
        return Hello(
            protocol=PROTOCOL,
            topology=self._topology,
            digest=self._digest,
            epoch=self._epoch,
            container=self.container,
            holder=self._holder,
            admission=self.admission,
            leaving=leaving,
        )

    def registration(self) -> Registration:
        """Once the master knows it."""
        return Registration(
            topology=self._topology,
            digest=self._digest,
            container=self.container,
            holder=self._holder,
            address=self._address,
        )

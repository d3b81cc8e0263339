"""A plan as a stream manager knows it: the message, and what it says, which is read once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ardea.config import Settings
from ardea.errors import ArdeaError
from ardea.plan.physical import PhysicalPlan
from ardea.plan.shape import Shape, shape_from_bytes
from ardea.plan.wire import plan_from_message
from ardea.protocol.checked import MalformedError
from ardea.protocol.plan_changes import whole
from ardea.protocol.wire_pb2 import Plan


@dataclass(frozen=True, slots=True)
class KnownPlan:
    """``message`` is the whole one."""

    message: Plan
    shape: Shape
    plan: PhysicalPlan

    @classmethod
    def of(cls, message: Plan) -> KnownPlan:
        """Checks it, before it is written down, and before anybody works by it.

        Raises:
            MalformedError: no manager could work by it.
        """
        try:
            shape = shape_from_bytes(message.shape)
            logical = shape.plan()
            plan = plan_from_message(logical, message.packing, message.epoch)
            for component in logical:
                Settings.of(logical.config, component.config)
        except (ValueError, RecursionError, ArdeaError) as error:
            raise MalformedError from error
        return cls(message, shape, plan)

    def changed(self, change: Plan) -> KnownPlan:
        """The next one, of which only the difference was sent.

        Raises:
            MalformedError: no manager could work by it.
        """
        try:
            message = whole(self.message, change)
        except ArdeaError as error:
            raise MalformedError from error
        if message.epoch == self.message.epoch and not (change.packing or change.gone or change.shape):
            return replace(self, message=message)
        return self.of(message)

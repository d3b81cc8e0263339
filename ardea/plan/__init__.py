"""Logical, packing and physical plan: frozen values that every process shares."""

from ardea.plan.logical import ComponentPlan, GroupingPlan, InputPlan, LogicalPlan, StreamPlan
from ardea.plan.packing import ContainerPlan, InstancePlan, PackingPlan
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.plan.resource import Resource

__all__ = [
    "ComponentPlan",
    "ContainerPlan",
    "GroupingPlan",
    "InputPlan",
    "InstancePlan",
    "LogicalPlan",
    "PackingPlan",
    "PhysicalPlan",
    "Resource",
    "StreamPlan",
    "TaskPlan",
]

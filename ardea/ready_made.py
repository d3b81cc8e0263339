"""Bolts that are half written, such as a join: what they add to an author's class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar

from ardea.component import Component
from ardea.context import TopologyContext
from ardea.plan import ComponentPlan, LogicalPlan


class ReadyMade:
    """A base beside :class:`Bolt`, whose names are none that an author would give.

    ``_ready_calls``: methods of the author's that it calls, and with what, by position.  ``_ready_sees``: whether the
    author's code is being called for a window; it stays where that raises.
    """

    _ready_calls: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    _ready_sees = False

    @classmethod
    def _ready_problems(cls, component: ComponentPlan, plan: LogicalPlan) -> Iterable[str]:
        """What is wrong with its place in a topology, a sentence each."""
        raise NotImplementedError

    def _ready_prepare(self, context: TopologyContext) -> None:
        """What it does ahead of the author's ``initialize``."""
        raise NotImplementedError


def prepare(component: Component, context: TopologyContext) -> None:
    """The engine's to call, ahead of ``initialize``."""
    if isinstance(component, ReadyMade):
        component._ready_prepare(context)


def sees_window(component: Component) -> bool:
    """Whether the author's code is being called for a window, or has raised there."""
    return isinstance(component, ReadyMade) and component._ready_sees


def problems_of_place(component: ComponentPlan, plan: LogicalPlan) -> Iterable[str]:
    """What is wrong with a component's place in the topology by its class."""
    return component.cls._ready_problems(component, plan) if issubclass(component.cls, ReadyMade) else ()


def calls_of(cls: type) -> Mapping[str, tuple[str, ...]]:
    """The author's methods that its bases call."""
    return cls._ready_calls if issubclass(cls, ReadyMade) else {}

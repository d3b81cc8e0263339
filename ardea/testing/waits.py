"""Executors that wait inside an emit, below whose stack the others go on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection

from ardea.testing.clock import Timeline


class _Meanwhile(BaseException):
    """Ends the call of user code that waits; what was raised is its cause."""


class Waits:
    """Of one cluster.  ``downstream`` has the components that a component's rows reach.

    The stack of one that waits lies below those of the others, so that only executors downstream of it run meanwhile:
    these are what it waits for, and none of them can wait for it.  The others are slow for a while.  What a fault or an
    invariant raises meanwhile is not user code's to catch: :meth:`step` raises it.
    """

    def __init__(self, timeline: Timeline, downstream: Callable[[str], Collection[str]]) -> None:
        self._timeline, self._downstream = timeline, downstream
        self._waiting: list[str] = []
        self._deferred: list[Callable[[], None]] = []
        self._raised: BaseException | None = None

    def step(self) -> None:
        """Goes on to the next event."""
        with contextlib.suppress(_Meanwhile):
            self._timeline.step()
        error, self._raised = self._raised, None
        if error is not None:
            raise error

    def wait(self, component: str, enough: Callable[[], bool], until: float) -> None:
        """Lets the others go on until ``enough``, while an executor of ``component`` is inside an emit."""
        timeline = self._timeline
        self._waiting.append(component)
        try:
            while not enough() and timeline.next <= until:
                timeline.step()
            if not enough():
                timeline.skip(until)
        except _Meanwhile:  # of another one that waits
            raise
        except BaseException as error:
            self._raised = self._raised or error
            raise _Meanwhile from error
        finally:
            self._waiting.pop()
            self._go_on()

    def _go_on(self) -> None:
        deferred, self._deferred = self._deferred, []
        for action in deferred:
            self._timeline.at(self._timeline.now, action)

    def may_run(self, component: str, otherwise: Callable[[], None]) -> bool:
        """Whether an executor of ``component`` may run now; if not, ``otherwise`` is called when it may."""
        if self._waiting and component not in self._downstream(self._waiting[-1]):
            self._deferred.append(otherwise)
            return False
        return True

"""Which way leads to a topology's masters on Kubernetes: chosen here, for all verbs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from ardea.errors import ClusterError
from ardea.scheduler.control import ControlPort
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.control import Port
from ardea.scheduler.kubernetes.direct import Direct
from ardea.scheduler.kubernetes.topologies import Found

KEPT_FOR = 30.0
"""Seconds after the last question until a way is given up.  The program at its other end waits twice as long."""


class Way(ControlPort, Protocol):
    """A control port, and what has to be given back after the last question."""

    def close(self) -> None:
        """Can be repeated."""


def way_to(cluster: Cluster, found: Found) -> Way:
    """Over TCP for a pod whose account may start no programs in other pods, as the console's; else such a program."""
    return Direct(cluster, found) if cluster.asks_directly else Port(cluster, found)


class _Kept(NamedTuple):
    topology: str
    way: Way
    since: float


class Ways:
    """To all topologies that a process asks: questions on any thread share what opening a way costs."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: list[_Kept] = []

    @contextmanager
    def to(self, cluster: Cluster, found: Found) -> Iterator[Way]:
        """One that nobody else uses meanwhile; where it fails, the next question opens another."""
        way = self._taken(found.id) or way_to(cluster, found)
        try:
            yield way
        except BaseException:
            way.close()
            raise
        with self._lock:
            self._kept.append(_Kept(found.id, way, self._clock()))

    def close(self) -> None:
        """Of those that nobody uses.  Can be repeated."""
        with self._lock:
            kept, self._kept = self._kept, []
        for each in kept:
            each.way.close()

    def _taken(self, topology: str) -> Way | None:
        """The one that was used last, so that others go; None: none is kept."""
        fresh = self._clock() - KEPT_FOR
        with self._lock:
            old = [each for each in self._kept if each.since < fresh]
            self._kept = [each for each in self._kept if each.since >= fresh]
            found = next((each for each in reversed(self._kept) if each.topology == topology), None)
            if found is not None:
                self._kept.remove(found)
        for each in old:
            each.way.close()
        return None if found is None else found.way


def require_programs(cluster: Cluster, found: Found, verb: str) -> None:
    """For a verb that runs something in pods, or runs the topology's code here.

    Raises:
        ClusterError: this process is the console, or alike: nothing was changed.
    """
    if cluster.asks_directly:
        raise ClusterError(
            f"{found.id}: `{verb}` needs the right to create pods/exec in namespace {cluster.namespace}, which this "
            "pod's account does not have; nothing was changed",
            hint=f"`ardea {verb} {found.topology.name} -n {cluster.namespace}` on a machine with a kubeconfig does it",
        )

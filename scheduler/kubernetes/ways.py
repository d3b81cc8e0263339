"""Which way leads to a topology's masters on Kubernetes: chosen here, for all verbs."""

from __future__ import annotations

from typing import Protocol

from ardea.errors import ClusterError
from ardea.scheduler.control import ControlPort
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.control import Port
from ardea.scheduler.kubernetes.direct import Direct
from ardea.scheduler.kubernetes.topologies import Found


class Way(ControlPort, Protocol):
    """A control port, and what has to be given back after the last question."""

    def close(self) -> None:
        """Can be repeated."""


def way_to(cluster: Cluster, found: Found) -> Way:
    """Over TCP for a pod whose account may start no programs in other pods, as the console's; else such a program."""
    return Direct(cluster, found) if cluster.asks_directly else Port(cluster, found)


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

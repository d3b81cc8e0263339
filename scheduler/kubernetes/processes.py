"""What the supervisor of each container of a pod is to run.  Pure."""

from __future__ import annotations

import sys
from pathlib import Path

from ardea.plan.names import MASTER_CONTAINER, METRICS_MANAGER, STREAM_MANAGER, TOPOLOGY_MASTER
from ardea.plan.packing import ContainerPlan, InstancePlan
from ardea.scheduler.kubernetes import layout, names
from ardea.supervision.spec import ProcessSpec
from ardea.transport import ipc_address

LAST_SCRAPE = 75.0
"""Seconds that a master's pod stays at most after the end, for a Prometheus that scrapes each minute or more often."""
_KEYS = ("--keys", str(layout.KEY_MOUNT))


def master(topology_id: str, ip: str) -> dict[str, ProcessSpec]:
    """Of a master's pod, by container."""
    folder, number = layout.topology_folder(topology_id), MASTER_CONTAINER
    argv = _module(
        "ardea.scheduler.kubernetes.master",
        "--definition", str(folder / "definition"), "--folder", str(folder),
        "--metrics", _address("metrics"), "--host", ip, *_KEYS,
    )  # fmt: skip
    return {
        TOPOLOGY_MASTER: ProcessSpec(TOPOLOGY_MASTER, argv, cores=1, leads=True),
        METRICS_MANAGER: _metrics_manager(folder, topology_id, number, ip, "--last-scrape", f"{LAST_SCRAPE:g}"),
    }


def container(
    topology_id: str, plan: ContainerPlan, ip: str, granted: frozenset[str] = frozenset()
) -> dict[str, ProcessSpec]:
    """Of a container's pod, by container; ``granted``: the components whose tasks use the state manager."""
    folder, number = layout.topology_folder(topology_id), plan.number
    common = (
        "--definition", str(folder / "definition"), "--container", str(number),
        "--control", _address("control"), "--data", _address("data"), "--metrics", _address("metrics"),
    )  # fmt: skip
    own = layout.process_folder(topology_id, number, STREAM_MANAGER)
    manager = _module("ardea.stream_manager", *common, "--folder", str(own), "--host", ip, *_KEYS)
    called = names.instance_names(plan.instances)

    def instance(i: InstancePlan) -> ProcessSpec:
        state = ("--state", str(layout.STATE_MOUNT)) if i.component in granted else ()
        argv = _module("ardea.heron_instance", *common, "--task", str(i.task), *state)
        return ProcessSpec(i.name, argv, cores=i.resource.cores)

    return {
        STREAM_MANAGER: ProcessSpec(STREAM_MANAGER, manager, cores=1),
        METRICS_MANAGER: _metrics_manager(folder, topology_id, number, ip),
        **{called[i.task]: instance(i) for i in plan.instances},
    }


def supervisor(topology_id: str, number: int, process: str, *, led: bool = False) -> list[str]:
    """The command of one container: PID 1 is a supervisor, known to the masters by the pod's UID.

    ``led``: it ends when the stream manager of its pod has ended for good.
    """
    manager = (str(layout.process_folder(topology_id, number, STREAM_MANAGER)), STREAM_MANAGER)
    return [
        "python", "-P", "-m", "ardea.supervisor", "--stdout", "--id", "$(POD_UID)",
        "--folder", str(layout.process_folder(topology_id, number, process)),
        "--spec", str(layout.specification(topology_id, number, process)),
        "--reason-file", str(layout.TERMINATION_LOG), *(("--leader", *manager) if led else ()),
    ]  # fmt: skip


def _metrics_manager(folder: Path, topology_id: str, number: int, ip: str, *more: str) -> ProcessSpec:
    own = layout.process_folder(topology_id, number, METRICS_MANAGER)
    everywhere = "::" if ":" in ip else "0.0.0.0"  # noqa: S104 -- probes and Prometheus come from outside of the pod
    argv = _module(
        "ardea.metrics_manager",
        "--definition", str(folder / "definition"), "--container", str(number), "--folder", str(own),
        "--address", _address("metrics"), "--host", everywhere, *_KEYS, *more,
    )  # fmt: skip
    return ProcessSpec(METRICS_MANAGER, argv, cores=1)


def _address(what: str) -> str:
    """The containers of a pod share its network, and with it the abstract names of sockets."""
    return ipc_address(layout.HOME, what)


def _module(name: str, *args: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", name, *args)

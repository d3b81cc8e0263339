"""The local scheduler: containers are supervisors on this machine, each the parent of its processes.

ardea run, or the daemon of submit local
  supervisor of the topology
    supervisor of container 0: topology-master, metrics-manager
    supervisor of container N: stream-manager, metrics-manager, one process an instance
"""

from __future__ import annotations

import dataclasses
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import xxhash

from ardea.config import Settings
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER, METRICS_MANAGER, STREAM_MANAGER, TOPOLOGY_MASTER, container_name
from ardea.plan.packing import ContainerPlan
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler import keys
from ardea.supervision.records import replace
from ardea.supervision.spec import Policy, ProcessSpec, dump
from ardea.transport import ipc_address

NOBODY: Mapping[str, int] = {}
OUTER_GRACE = 5.0
"""Seconds that the topology's supervisor waits longer than those of the containers do."""
PRELOAD = "ardea.heron_instance.process", "ardea.loader", "ardea.logs"
"""What every task loads, and managers most of."""


class LocalProcesses:
    """Writes what the supervisors of one topology are to run."""

    def __init__(self, definition: Definition, folder: Path, attach: Mapping[str, int] = NOBODY) -> None:
        """``folder`` is the topology's own; logs, lives and definitions lie in it.

        ``attach``: tasks that wait for a debugger, and the port of each.
        """
        self._attach = attach
        self._definition = definition
        self._folder = folder
        self._settings = Settings.of(definition.shape.config)
        self._policy = Policy(
            log_bytes=self._settings.log_size_mb << 20,
            log_files=self._settings.log_files,
            log_format=self._settings.log_format,
        )
        # An ipc name has at most 107 bytes (103 on macOS); a topology's id may have more.
        self._short = xxhash.xxh3_64_hexdigest(definition.topology.encode())

    def prepare(self) -> list[str]:
        """Writes all files; returns the command of the topology's supervisor."""
        self._folder.mkdir(parents=True, exist_ok=True)
        token = self._folder / "token"
        token.touch(mode=0o600, exist_ok=True)
        token.write_text(secrets.token_hex(16))
        definition, fresh = keys.issue(self._definition)
        keys.write(self._folder, fresh)
        return self.follow(definition)

    def follow(self, definition: Definition) -> list[str]:
        """Brings containers and processes in line with a definition: their supervisors follow what is written here.

        Can be repeated.
        """
        self._definition = definition
        self._settings = Settings.of(definition.shape.config)
        definition.write(self._folder / "definition")
        plans = packing_from_bytes(definition.packing).containers
        containers = {MASTER_CONTAINER: self._container(MASTER_CONTAINER, self._master(), self._policy)}
        workers = dataclasses.replace(self._policy, preload=PRELOAD)
        containers |= {plan.number: self._container(plan.number, self._workers(plan), workers) for plan in plans}
        policy = dataclasses.replace(self._policy, grace=self._policy.grace + OUTER_GRACE)
        return self._supervisor(self._folder, self._kept(containers), policy)

    def _kept(self, containers: Mapping[int, ProcessSpec]) -> Sequence[ProcessSpec]:
        """Those that the topology's supervisor keeps: all, unless something else keeps them."""
        return [*containers.values()]

    @property
    def _version(self) -> str:
        """Other code, or another configuration, has to be loaded by another process."""
        return str(self._definition.build)

    def container_folder(self, number: int) -> Path:
        """Where a container's logs and lives are."""
        return self._folder / container_name(number)

    def _container(self, number: int, processes: list[ProcessSpec], policy: Policy) -> ProcessSpec:
        command = self._supervisor(self.container_folder(number), processes, policy)
        return ProcessSpec(container_name(number), tuple(command))

    @staticmethod
    def _supervisor(folder: Path, processes: Sequence[ProcessSpec], policy: Policy) -> list[str]:
        folder.mkdir(parents=True, exist_ok=True)
        spec = folder / "spec.json"
        replace(spec, dump(processes, policy))  # at once: a supervisor may be following it
        return [*_python("ardea.supervisor"), "--folder", str(folder), "--spec", str(spec)]

    def _module(self, name: str, *args: str) -> tuple[str, ...]:
        return (*_python(name), "--definition", str(self._folder / "definition"), *args)

    def _address(self, container: int, what: str) -> str:
        return ipc_address(self.container_folder(container), f"{self._short}-{container}-{what}")

    def _keys(self, number: int) -> tuple[str, str]:
        return "--keys", str(keys.keys_of(self.container_folder(number)))

    def _metrics(self, number: int) -> ProcessSpec:
        folder = self.container_folder(number)
        argv = self._module(
            "ardea.metrics_manager",
            "--container", str(number), "--folder", str(folder), "--address", self._address(number, "metrics"),
            *self._keys(number),
        )  # fmt: skip
        return ProcessSpec(METRICS_MANAGER, argv, cores=1, version=self._version)

    def _master(self) -> list[ProcessSpec]:
        argv = self._module(
            "ardea.topology_master",
            "--folder", str(self._folder), "--metrics", self._address(MASTER_CONTAINER, "metrics"),
            *self._keys(MASTER_CONTAINER),
        )  # fmt: skip
        names = [TOPOLOGY_MASTER, *(f"{TOPOLOGY_MASTER}-{number}" for number in range(2, self._settings.masters + 1))]
        return [*(ProcessSpec(name, argv, cores=1, leads=True) for name in names), self._metrics(MASTER_CONTAINER)]

    def _workers(self, plan: ContainerPlan) -> list[ProcessSpec]:
        number = plan.number
        common = (
            "--container", str(number), "--control", self._address(number, "control"),
            "--data", self._address(number, "data"), "--metrics", self._address(number, "metrics"),
        )  # fmt: skip
        manager = self._module(
            "ardea.stream_manager", *common, "--folder", str(self.container_folder(number)), *self._keys(number)
        )
        processes = [ProcessSpec(STREAM_MANAGER, manager, cores=1, leads=True), self._metrics(number)]
        for instance in plan.instances:
            port, cores, ram = self._attach.get(instance.name), instance.resource.cores, instance.resource.ram
            debug = () if port is None else ("--debug-port", str(port))
            argv = self._module("ardea.heron_instance", *common, "--task", str(instance.task), *debug)
            processes.append(
                ProcessSpec(instance.name, argv, cores=cores, ram=ram, version=self._version, debugged=port is not None)
            )
        return processes


def _python(module: str) -> tuple[str, ...]:
    """-P: a file of the author's in the current directory must not stand in for a module of Python's."""
    return (sys.executable, "-P", "-m", module)

"""``python -m scheduler.kubernetes.prepare``: the first container of each pod; lays out what the others need.

Can be repeated: a pod whose sandbox was lost runs it again, and nothing that supervisors wrote is touched.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from pathlib import Path

import msgspec

from ardea.config import Settings
from ardea.errors import ArdeaError, ExitCode
from ardea.plan.definition import Definition
from ardea.plan.wire import packing_from_bytes
from ardea.supervision.spec import Policy, dump
from ardea.transport import CALLERS, KEY_FILE
from scheduler.keys import keys_of
from scheduler.kubernetes import bundle, layout, processes
from scheduler.kubernetes.blueprint import BUNDLE, DEFINITION, PODS, Pods


def prepare(
    container: int,
    ip: str,
    *,
    mount: Path = layout.ROOT_MOUNT,
    token: Path = layout.TOKEN_MOUNT,
    key: Path = layout.KEY_MOUNT,
) -> None:
    """Definition, code, specifications; for a master's pod the token and the callers' key, too.

    Raises:
        UserError: the bundle was made with another Python.
        StateError: the root object is damaged.
    """
    definition = Definition.unpacked((mount / DEFINITION).read_bytes(), "the root object")
    bundle.check_python(msgspec.json.decode((mount / PODS).read_bytes(), type=Pods).python)
    topology = definition.topology
    folder = layout.topology_folder(topology)
    folder.mkdir(parents=True, exist_ok=True)
    definition.write(folder / "definition")
    if container == layout.MASTER_CONTAINER:
        shutil.copyfile(token / "token", folder / "token")
        if definition.keys:
            callers = keys_of(folder)
            callers.mkdir(exist_ok=True)
            shutil.copyfile(key / CALLERS, callers / KEY_FILE)
        specifications = processes.master(topology, ip)
    else:
        plan = next(p for p in packing_from_bytes(definition.packing).containers if p.number == container)
        specifications = processes.container(topology, plan, ip)
    if (mount / BUNDLE).exists():
        bundle.unpack((mount / BUNDLE).read_bytes(), layout.CODE)
    settings = Settings.of(definition.shape.config)
    policy = Policy(grace=max(1.0, settings.kubernetes_grace - layout.GRACE_LEFT))
    for process, specification in specifications.items():
        layout.process_folder(topology, container, process).mkdir(parents=True, exist_ok=True)
        layout.specification(topology, container, process).write_text(dump([specification], policy))


def main() -> int:
    """Exit code 78, and the reason where kubelet looks for it, if starting again cannot help."""
    parser = argparse.ArgumentParser(prog="scheduler.kubernetes.prepare", description=__doc__)
    parser.add_argument("--container", type=int, required=True)
    args = parser.parse_args()
    try:
        prepare(args.container, os.environ["POD_IP"])
    except ArdeaError as error:
        said = f"{error.message}; {error.hint}" if error.hint else error.message
        print(f"error: {said}", file=sys.stderr)  # noqa: T201
        with contextlib.suppress(OSError):
            layout.TERMINATION_LOG.write_text(f"{said}\n")
        return ExitCode.PERMANENT
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())

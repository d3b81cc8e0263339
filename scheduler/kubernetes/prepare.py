"""``python -m ardea.scheduler.kubernetes.prepare``: the first container of each pod; lays out what the others need.

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
from ardea.errors import ArdeaError, ExitCode, StateError
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER
from ardea.scheduler.keys import keys_of
from ardea.scheduler.kubernetes import bundle, layout, processes
from ardea.scheduler.kubernetes.manifest_inputs import BUNDLE, DEFINITION, PODS, ManifestInputs, Pods
from ardea.supervision.spec import Policy, dump
from ardea.transport import CALLERS, KEY_FILE


class Stale(StateError):  # noqa: N818 -- as its siblings in ardea.errors
    """The pod and the plan that it finds are not of one time: kubelet, or the keeper, is about to catch up."""

    exit_code = ExitCode.TEMPORARY


def prepare(
    container: int,
    ip: str,
    content: str = "",
    *,
    mount: Path = layout.ROOT_MOUNT,
    code: Path = layout.CODE_MOUNT,
    token: Path = layout.TOKEN_MOUNT,
    key: Path = layout.KEY_MOUNT,
) -> None:
    """Definition and specifications; for a container's pod the code, for a master's the token and the callers' key.

    Args:
        container: its number; 0: a master's.
        ip: the pod's.
        content: what the container's pod was made for.
        mount: the root object.
        code: the author's files.
        token: the control port's.
        key: the container's.

    Raises:
        UserError: the bundle was made with another Python.
        Stale: the pod was made for another plan than the root's.
        StateError: the root object is damaged.
        OtherVersion: the pod's image holds another version than has submitted the topology.
    """
    definition = Definition.unpacked((mount / DEFINITION).read_bytes(), "the root object").checked()
    topology = definition.topology
    folder = layout.topology_folder(topology)
    folder.mkdir(parents=True, exist_ok=True)
    definition.write(folder / "definition")
    if container == MASTER_CONTAINER:
        shutil.copyfile(token / "token", folder / "token")
        if definition.keys:
            callers = keys_of(folder)
            callers.mkdir(exist_ok=True)
            shutil.copyfile(key / CALLERS, callers / KEY_FILE)
        specifications = processes.master(topology, ip)
    else:
        pods = msgspec.json.decode((code / PODS).read_bytes(), type=Pods)
        bundle.check_python(pods.python)
        inputs = ManifestInputs(definition=definition, pods=pods)
        plan = next((p for p in inputs.containers if p.number == container), None)
        if plan is None or inputs.content(plan) != content:
            raise Stale(f"plan {definition.epoch} has other tasks for this pod; it is tried again")
        if (code / BUNDLE).exists():
            bundle.unpack((code / BUNDLE).read_bytes(), layout.CODE)
        specifications = processes.container(topology, plan, ip, definition.state_users)
    settings = Settings.of(definition.shape.config)
    policy = Policy(grace=max(1.0, settings.kubernetes_grace - layout.GRACE_LEFT), log_format=settings.log_format)
    for process, specification in specifications.items():
        layout.process_folder(topology, container, process).mkdir(parents=True, exist_ok=True)
        layout.specification(topology, container, process).write_text(dump([specification], policy))


def main() -> int:
    """Exit code 78, and the reason where kubelet looks for it, if starting again cannot help; 75 if it can."""
    parser = argparse.ArgumentParser(prog="ardea.scheduler.kubernetes.prepare", description=__doc__)
    parser.add_argument("--container", type=int, required=True)
    parser.add_argument("--content", default="", help="what the container's pod was made for")
    args = parser.parse_args()
    try:
        prepare(args.container, os.environ["POD_IP"], args.content)
    except Stale as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except ArdeaError as error:
        said = f"{error.message}; {error.hint}" if error.hint else error.message
        print(f"error: {said}", file=sys.stderr)  # noqa: T201
        with contextlib.suppress(OSError):
            layout.TERMINATION_LOG.write_text(f"{said}\n")
        return ExitCode.PERMANENT
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())

"""``python -m ardea.scheduler.kubernetes.master``: a topology master in a pod, with the keeper of its Jobs beside it.

Exit codes, which are those of its Job's container: 0 SUCCEEDED or killed, 78 FAILED, 75 start it again, 76 the cluster
does not know the account of its pod any more, so that the Job has to make another pod.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from ardea import logs, parent_link
from ardea.config import Settings
from ardea.errors import ArdeaError, ExitCode, Unrecognized
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER, METRICS_MANAGER
from ardea.scheduler.control import MasterClient
from ardea.scheduler.kubernetes import layout
from ardea.scheduler.kubernetes.client import Cluster, Manifest
from ardea.scheduler.kubernetes.keeper import Keeper, KeeperThread, utc_now
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.scheduler.kubernetes.processes import LAST_SCRAPE
from ardea.scheduler.kubernetes.reporter import OwnPod, Reporter
from ardea.scheduler.kubernetes.root_object import RootObject
from ardea.state import Unavailable, open_state
from ardea.state.records import RunState
from ardea.supervision import records
from ardea.topology_master.process import MasterProcess, read_token

LOOK_EVERY = 0.2
DISOWNED = "the cluster does not know the account of this pod any more: its Job makes another pod"
SPARE = 10.0
"""Seconds that a metrics manager has to end, beyond those for the last scrape."""


def run(definition: Definition, folder: Path, metrics: str, host: str, keys: Path | None) -> ExitCode:
    """The whole life of one master; a topology that has ended needs none."""
    code = ExitCode.TEMPORARY
    with parent_link.beating(in_user_code=False):
        cluster = Cluster.connect()
        own_pod = OwnPod(cluster, os.environ.get("POD_NAME", ""), utc_now)
        root_object = RootObject(cluster, definition)
        root = root_object.root() if root_object.wanted() else None
        if root is not None:
            _register(root_object, root, own_pod)
    if root is not None:
        process = MasterProcess(definition, host, read_token(folder), metrics, root_object.upheld, keys)
        code = _act(process, folder, cluster, ManifestInputs.read(root), own_pod)
    if code == ExitCode.REPLACED:
        parent_link.report(DISOWNED)
        return code
    with parent_link.beating(in_user_code=False):
        if code != ExitCode.OK and root_object.wanted():
            return code
        verdict = root_object.conclude()
        if code == ExitCode.OK:
            wait_for_last_scrape(layout.process_folder(definition.topology, MASTER_CONTAINER, METRICS_MANAGER))
    if verdict is None:
        return ExitCode.TEMPORARY
    if verdict.state == RunState.FAILED:
        parent_link.report(verdict.reason)
        return ExitCode.PERMANENT
    return ExitCode.OK


def _register(root_object: RootObject, root: Manifest, own_pod: OwnPod) -> None:
    try:
        root_object.register(root)
    except Unavailable as error:
        with contextlib.suppress(ArdeaError):
            own_pod.tell(f"cut off from the topology's state: {error.message}")
        raise


def wait_for_last_scrape(folder: Path) -> None:
    """Waits until the metrics manager with that folder has ended, for it goes with the pod, and that with this process.

    It stays until a Prometheus has seen how the topology ended.  SIGTERM ends the waiting: the pod is deleted.
    """
    told_to_stop = False

    def stop(*_: object) -> None:
        nonlocal told_to_stop
        told_to_stop = True

    signal.signal(signal.SIGTERM, stop)
    deadline = time.monotonic() + LAST_SCRAPE + SPARE
    while not told_to_stop and time.monotonic() < deadline and records.final_end(folder, METRICS_MANAGER) is None:
        time.sleep(LOOK_EVERY)


def _act(process: MasterProcess, folder: Path, cluster: Cluster, inputs: ManifestInputs, own_pod: OwnPod) -> ExitCode:
    definition = process.definition

    def acting() -> bool:
        return process.acting

    with open_state(definition.state) as state, MasterClient(state, definition.topology, folder) as client:
        reporter = Reporter(cluster, process.address, own_pod.name, utc_now)
        keeper = KeeperThread(
            Keeper(cluster, inputs, state, client, acting, reporter),
            own_pod,
            acting,
            lambda: process.silence,
            lambda: process.stop(ExitCode.REPLACED),
        )
        keeper.start()
        try:
            return process.run()
        finally:
            with parent_link.beating(in_user_code=False):
                keeper.stop()


def main() -> int:
    """Runs the master."""
    parent_link.attach()
    logs.configure()
    parser = argparse.ArgumentParser(prog="ardea.scheduler.kubernetes.master", description=__doc__)
    parser.add_argument("--definition", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="the topology's folder, which holds the token")
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--keys", type=Path, help="the folder with the container's secret key")
    args = parser.parse_args()
    try:
        definition = Definition.to_run(args.definition)
        logs.configure(Settings.of(definition.shape.config).log_format)
        return parent_link.ended(run(definition, args.folder, args.metrics, args.host, args.keys))
    except Unrecognized as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201
        parent_link.report(DISOWNED)
        return ExitCode.REPLACED
    except ArdeaError as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201
        parent_link.report(error.message.splitlines()[0])
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

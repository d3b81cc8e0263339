"""``python -m ardea.scheduler.kubernetes.master``: a topology master in a pod, with the keeper of its Jobs beside it.

Exit codes, which are those of its Job's container: 0 SUCCEEDED or killed, 78 FAILED, 75 start it again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ardea import leash, logs
from ardea.errors import ArdeaError, ExitCode
from ardea.plan.definition import Definition
from ardea.scheduler.control import MasterClient
from ardea.scheduler.kubernetes.blueprint import Blueprint
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.keeping import Keeper, KeeperThread
from ardea.scheduler.kubernetes.place import Place
from ardea.state import open_state
from ardea.state.records import RunState
from ardea.topology_master.process import MasterProcess, read_token


def run(definition: Definition, folder: Path, metrics: str, host: str, keys: Path | None) -> ExitCode:
    """The whole life of one master; a topology that has ended needs none."""
    code = ExitCode.TEMPORARY
    with leash.beating(in_user_code=False):
        cluster = Cluster.connect()
        place = Place(cluster, definition)
        root = place.root() if place.wanted() else None
        if root is not None:
            place.register(root)
    if root is not None:
        process = MasterProcess(definition, host, read_token(folder), metrics, place.wanted, keys)
        code = _act(process, folder, cluster, Blueprint.read(root))
    if code != ExitCode.OK and place.wanted():
        return code
    with leash.beating(in_user_code=False):
        verdict = place.conclude()
    if verdict is None:
        return ExitCode.TEMPORARY
    if verdict.state == RunState.FAILED:
        leash.report(verdict.reason)
        return ExitCode.PERMANENT
    return ExitCode.OK


def _act(process: MasterProcess, folder: Path, cluster: Cluster, blueprint: Blueprint) -> ExitCode:
    definition = process.definition

    def acting() -> bool:
        return process.acting

    with open_state(definition.state) as state, MasterClient(state, definition.topology, folder) as client:
        keeper = KeeperThread(Keeper(cluster, blueprint, state, client, acting, process.address), acting)
        keeper.start()
        try:
            return process.run()
        finally:
            keeper.stop()


def main() -> int:
    """Runs the master."""
    leash.attach()
    logs.configure_structured()
    parser = argparse.ArgumentParser(prog="ardea.scheduler.kubernetes.master", description=__doc__)
    parser.add_argument("--definition", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="the topology's folder, which holds the token")
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--keys", type=Path, help="the folder with the container's secret key")
    args = parser.parse_args()
    try:
        definition = Definition.to_run(args.definition)
        return leash.ended(run(definition, args.folder, args.metrics, args.host, args.keys))
    except ArdeaError as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201
        leash.report(error.message.splitlines()[0])
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

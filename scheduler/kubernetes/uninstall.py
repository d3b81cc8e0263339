"""``python -m ardea.scheduler.kubernetes.uninstall RELEASE REVISION``: refuses an uninstall while topologies run.

The chart's hook before an uninstall.  It exits with 0 if nothing runs, else with 1, and says who and what to do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from ardea.errors import ArdeaError
from ardea.scheduler.kubernetes.client import Cluster, Objects
from ardea.scheduler.kubernetes.topologies import listing


def refusal(cluster: Objects, release: str, revision: str) -> str:
    """Why the release, of that revision, must not go yet; empty: it may."""
    running = [found.id for found in listing(cluster) if found.topology.running]
    if not running:
        return ""
    where = f"-n {cluster.namespace}"
    return (
        f"release {release} is not uninstalled: {', '.join(running)} still {'run' if len(running) > 1 else 'runs'} in "
        f"namespace {cluster.namespace}, and would lose what the chart gives: rights, and ZooKeeper with the state.\n"
        f"End them first: `ardea kill TOPOLOGY {where}`.\n"
        f"Or keep the release, which Helm upgrades again after `helm rollback {release} {revision} {where}`.\n"
        f"Or uninstall it all the same: {_unasked(release, cluster.namespace)}."
    )


def unknown(release: str, namespace: str, why: str) -> str:
    """What to say of a release whose topologies cannot be listed; ``namespace`` is empty if it is not known."""
    return (
        f"release {release} is not uninstalled, as its topologies could not be listed: {why}\n"
        "Uninstall it again when the cluster answers.\n"
        f"Or uninstall it without this check: {_unasked(release, namespace)}. "
        "Topologies that still run then lose what the chart gives."
    )


def _unasked(release: str, namespace: str) -> str:
    where = f" -n {namespace}" if namespace else ""
    return f"`helm uninstall {release}{where} --no-hooks`"


def main(argv: Sequence[str] | None = None, connect: Callable[[], Objects] = Cluster.connect) -> int:
    """Looks once."""
    parser = argparse.ArgumentParser(prog="ardea.scheduler.kubernetes.uninstall", description=__doc__)
    parser.add_argument("release")
    parser.add_argument("revision", help="what `helm rollback` goes back to")
    arguments = parser.parse_args(argv)
    release, namespace = arguments.release, ""
    try:
        cluster = connect()
        namespace = cluster.namespace
        said = refusal(cluster, release, arguments.revision)
    except ArdeaError as error:
        said = unknown(release, namespace, error.message)
    print(said or f"no topology runs: release {release} may go")  # noqa: T201
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())

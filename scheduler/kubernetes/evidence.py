"""What a cluster has for a bundle beyond pods' logs: events, where pods are, and what each container serves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ardea.errors import ClusterError
from ardea.plan.names import METRICS_MANAGER
from ardea.scheduler.kubernetes import names
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.topologies import Found, pods_of
from ardea.scheduler.schedulers import Evidence

MOST_EVENTS = 2000
"""The newest; a cluster forgets them after an hour."""
_METRICS = """
import sys, urllib.request
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
answer = direct.open(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=5)
sys.stdout.buffer.write(answer.read(16 << 20))
"""


def evidence(cluster: Cluster, found: Found) -> Iterator[Evidence]:
    """Each asks the cluster when it is read, but for which pods there are."""
    yield Evidence("kubernetes/events.json", partial(_events, cluster, found))
    for pod in pods_of(cluster, found.id):
        if pod.get("status", {}).get("phase") == "Running":
            number, name = int(pod["metadata"]["labels"][names.CONTAINER]), str(pod["metadata"]["name"])
            port = found.inputs.settings.metrics_port + number
            yield Evidence(f"metrics/{name}.prom", partial(_metrics, cluster, name, port))


def _events(cluster: Cluster, found: Found) -> list[dict[str, Any]]:
    """Of the root, its Jobs and their pods, all of which begin with the root's name."""
    root = str(found.root["metadata"]["name"])
    mine = [
        event
        for event in cluster.list("Event")
        if (name := str(event.get("involvedObject", {}).get("name", ""))) == root or name.startswith(f"{root}-")
    ]
    mine.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return [
        {
            "last": event.get("lastTimestamp") or event.get("eventTime"),
            "first": event.get("firstTimestamp") or event.get("eventTime"),
            "count": event.get("count"),
            "type": event.get("type"),
            "reason": event.get("reason"),
            "object": f"{event['involvedObject'].get('kind')}/{event['involvedObject'].get('name')}",
            "message": event.get("message"),
            "from": event.get("reportingComponent") or event.get("source", {}).get("component"),
        }
        for event in mine[-MOST_EVENTS:]
    ]


def _metrics(cluster: Cluster, pod: str, port: int) -> bytes:
    served, said = bytearray(), bytearray()
    command = cluster.open(pod, METRICS_MANAGER, ["python", "-P", "-c", _METRICS, str(port)])
    try:
        code = command.run(served.extend, said.extend)
    finally:
        command.close()
    if code:
        last = said.decode(errors="replace").strip().rpartition("\n")[2]
        raise ClusterError(f"{pod} does not say what it serves at /metrics (exit {code}): {last}")
    return bytes(served)

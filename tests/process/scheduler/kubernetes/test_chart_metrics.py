"""A real Prometheus discovers pods as the chart's PodMonitor says, answers every panel and sees how topologies end."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.process.helm.alarms import sooner
from tests.process.helm.monitoring import OBSERVED, answers_everything, rules
from tests.process.metrics_manager.prometheus import Job, Prometheus
from tests.process.scheduler.kubernetes.releases import CHART, helm, install, kubectl, namespace, needs_cluster, run
from tests.process.scheduler.kubernetes.running import SMALL, TOPOLOGIES, ardea, pause
from tests.process.waiting import eventually

BIN = Path(sys.executable).parent
PROMETHEUS = BIN / "prometheus-kubernetes"
pytestmark = [
    pytest.mark.thorough,
    needs_cluster,
    pytest.mark.prometheus,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not PROMETHEUS.exists(),
        reason="Debian's Prometheus cannot discover pods; scripts/kubernetes.sh builds one that can, if there is Go",
    ),
]


def test_prometheus_discovers_and_scrapes_what_dashboards_and_alerts_ask(image, tmp_path):
    with namespace() as space:
        install(space, *image)
        run([BIN / "ardea", "submit", "kubernetes", OBSERVED, "-n", space], seconds=120)
        with api_server() as address:
            job = operators_job(pod_monitor(space), space, address)
            with contextlib.closing(Prometheus(PROMETHEUS, tmp_path, job, rules(space))) as prometheus:
                answers_everything(prometheus, space)
                up = "count by (role, topology) (up == 1)"
                prometheus.wait(up, lambda a: a == {("container", "Observed"): 2, ("master", "Observed"): 2})
                numbers = prometheus.ask("group by (container) (ardea_build_info)")
                assert sorted(numbers) == [("0",), ("1",), ("2",)], "the operator's label displaced ours"
                of_pods = set(prometheus.ask("group by (topology, topology_id) (up)"))
                assert of_pods == set(prometheus.ask("group by (topology, topology_id) (ardea_build_info)"))
                run([BIN / "ardea", "kill", "Observed", "-n", space, "--wait-secs", "0"], seconds=90)


def test_an_end_is_seen_whatever_it_is_and_only_what_is_wrong_fires(image, tmp_path):
    """Alerts fire within a second here; pods are scraped each two seconds, and topologies end between two scrapes."""
    with namespace() as space, api_server() as address:
        install(space, *image, *SMALL)
        job = operators_job(pod_monitor(space), space, address)
        with contextlib.closing(Prometheus(PROMETHEUS, tmp_path, job, sooner(rules(space)))) as prometheus:

            def seen(topology: str, state: str) -> None:
                series = f'ardea_tm_topology_state{{topology="{topology}", state="{state}"}}'
                prometheus.wait(f"max_over_time({series}[10m]) == 1", bool)  # its pod may be gone by now

            def firing(topology: str) -> set[tuple[str, ...]]:
                alerts = f'ALERTS{{alertstate="firing", topology="{topology}"}}'
                return set(prometheus.ask(f"group by (alertname) ({alerts})"))

            ardea("submit", "kubernetes", OBSERVED, space=space)
            prometheus.wait('ALERTS{alertname="ArdeaUserExceptions", alertstate="firing"}', bool)
            ardea("kill", "Observed", "--wait-secs", "0", space=space)
            seen("Observed", "KILLED")
            prometheus.wait("absent(up)", bool)
            pause(3)  # for alerts that would fire now
            assert firing("Observed") == set()

            ardea(
                "submit", "kubernetes", TOPOLOGIES / "failing.py", "--wait", "--wait-secs", "240", space=space, code=1
            )
            prometheus.wait('ALERTS{alertname="ArdeaTopologyFailed", alertstate="firing"}', bool)
            seen("Failing", "FAILED")
            prometheus.wait("absent(up)", bool)
            eventually(lambda: firing("Failing") == {("ArdeaTopologyFailed",)}, 20, lambda: f"{firing('Failing')}")

            ardea("submit", "kubernetes", OBSERVED, space=space)
            seen("Observed", "RUNNING")
            kubectl("delete", "configmap", "observed", f"--namespace={space}")  # nobody is asked, and nobody tells
            prometheus.wait('ALERTS{alertname="ArdeaTopologyVanished", alertstate="firing"}', bool)


@contextlib.contextmanager
def api_server() -> Iterator[str]:
    """The cluster's API at a port of this machine, by whatever right KUBECONFIG has; it passes requests on to pods."""
    command = ["kubectl", "proxy", "--port=0", "--keepalive=30s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().rpartition(" ")[2].strip()  # Starting to serve on 127.0.0.1:PORT
        finally:
            process.terminate()


def pod_monitor(space: str) -> dict[str, Any]:
    """The specification that the chart renders."""
    settings = ["--set=monitoring.podMonitor.enabled=true", "--show-only=templates/monitoring/podmonitor.yaml"]
    rendered = helm("template", "ardea", CHART, f"--namespace={space}", "--kube-version=1.31.0", *settings)
    return yaml.safe_load(rendered)["spec"]


SPELLED = {"sourceLabels": "source_labels", "targetLabel": "target_label"}
"""Prometheus's words for the operator's."""


def operators_job(monitor: dict[str, Any], space: str, address: str) -> Job:
    """What the Prometheus operator makes of a PodMonitor, but that pods are reached through the API server."""
    (endpoint,) = monitor["podMetricsEndpoints"]
    wanted = {name: [value] for name, value in monitor["selector"]["matchLabels"].items()}
    wanted |= {e["key"]: e["values"] for e in monitor["selector"]["matchExpressions"] if e["operator"] == "In"}
    meta = "__meta_kubernetes_pod_"
    label = str.maketrans("./-", "___")
    chosen = [
        {"source_labels": [f"{meta}label_{name.translate(label)}"], "regex": "|".join(values), "action": "keep"}
        for name, values in wanted.items()
    ]
    parts = ["__meta_kubernetes_namespace", f"{meta}name", f"{meta}container_port_number"]
    path = f"/api/v1/namespaces/$1/pods/$2:$3/proxy{endpoint['path']}"
    return {
        "honor_labels": endpoint["honorLabels"],
        "scrape_interval": "2s",
        "scrape_timeout": "2s",
        "kubernetes_sd_configs": [{"role": "pod", "api_server": f"http://{address}", "namespaces": {"names": [space]}}],
        "relabel_configs": [
            *chosen,
            {"source_labels": [f"{meta}container_port_name"], "regex": endpoint["port"], "action": "keep"},
            {"source_labels": [f"{meta}phase"], "regex": "Failed|Succeeded", "action": "drop"},
            {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
            {"source_labels": [f"{meta}name"], "target_label": "pod"},
            {"source_labels": [f"{meta}container_name"], "target_label": "container"},
            {"source_labels": ["__address__"], "target_label": "instance"},
            *({SPELLED.get(key, key): value for key, value in rule.items()} for rule in endpoint["relabelings"]),
            {
                "source_labels": parts,
                "regex": "(.+);(.+);(.+)",
                "target_label": "__metrics_path__",
                "replacement": path,
            },
            {"target_label": "__address__", "replacement": address},
        ],
    }

"""A real Prometheus discovers a topology's pods as the chart's PodMonitor says, and answers every panel and alert."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.process.helm.monitoring import OBSERVED, answers_everything, rules
from tests.process.metrics_manager.prometheus import Job, Prometheus
from tests.process.scheduler.kubernetes.releases import CHART, helm, install, namespace, needs_cluster, run

BIN = Path(sys.executable).parent
PROMETHEUS = BIN / "prometheus-kubernetes"
pytestmark = [
    pytest.mark.thorough,
    needs_cluster,
    pytest.mark.prometheus,
    pytest.mark.timeout(420),
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
                up = "count by (pod) (up == 1)"
                prometheus.wait(up, lambda answer: len(answer) == 4)  # two masters, two containers
                numbers = prometheus.ask("group by (container) (ardea_build_info)")
                assert sorted(numbers) == [("0",), ("1",), ("2",)], "the operator's label displaced ours"
        run([BIN / "ardea", "kill", "Observed", "-n", space, "--wait-secs", "0"], seconds=60)


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
            {
                "source_labels": parts,
                "regex": "(.+);(.+);(.+)",
                "target_label": "__metrics_path__",
                "replacement": path,
            },
            {"target_label": "__address__", "replacement": address},
        ],
    }

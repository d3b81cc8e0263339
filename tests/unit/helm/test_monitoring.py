"""Alerts and dashboards: built from series that exist, documented, and usable as they are."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from ardea.metrics import SERIES, Kind
from tests.unit.helm.charts import CHART, needs_helm, of_kind, render

ROOT = CHART.parent
DASHBOARDS = sorted((CHART / "files" / "dashboards").glob("*.json"))
RULES = {
    about: [
        r
        for g in yaml.safe_load((CHART / "files" / "rules" / f"{about}.yaml").read_text())["groups"]
        for r in g["rules"]
    ]
    for about in ("topology", "zookeeper")
}
ALERTS = [rule for rules in RULES.values() for rule in rules if "alert" in rule]
RECORDED = [rule for rules in RULES.values() for rule in rules if "record" in rule]
MONITORING = ("--values", str(CHART / "ci" / "monitoring-values.yaml"))

each_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
each_dashboard = pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)


def panels(path) -> list[str]:
    return [target["expr"] for panel in json.loads(path.read_text())["panels"] for target in panel.get("targets", ())]


def queries(path) -> list[str]:
    variables = json.loads(path.read_text())["templating"]["list"]
    return panels(path) + [v["query"]["query"] for v in variables if v["type"] == "query"]


def unknown_series(query: str) -> set[str]:
    """Names that ardea/metrics/series.py does not declare, or whose kind the suffix does not fit."""
    histograms = {
        f"{n}_{part}" for n, s in SERIES.items() if s.kind is Kind.HISTOGRAM for part in ("bucket", "sum", "count")
    }
    plain = {name for name, series in SERIES.items() if series.kind is not Kind.HISTOGRAM}
    return set(re.findall(r"\bardea_\w+", query)) - histograms - plain


@each_alert
def test_an_alert_says_what_is_wrong_how_bad_and_where_to_read_on(alert):
    assert alert["labels"]["severity"] in {"critical", "warning"}
    annotations = alert["annotations"]
    assert annotations["summary"]
    assert annotations["description"]
    assert annotations["runbook_url"] == f"RUNBOOK/{alert['alert'].lower()}"
    assert f"\n## {alert['alert']}\n" in (ROOT / "docs" / "runbook.md").read_text()


@pytest.mark.parametrize("rule", [*RECORDED, *ALERTS], ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_reads_series_of_its_own_namespace(rule):
    assert not unknown_series(rule["expr"])
    selectors = re.findall(r"\b[a-z_:]+(\{[^}]*\})", rule["expr"])
    assert selectors
    assert all('namespace="NAMESPACE"' in selector for selector in selectors)
    assert not re.search(r"\bardea[_:]\w+(?![\w{])", rule["expr"]), "a series without a selector is everybody's"


@pytest.mark.parametrize("rule", list(RULES["topology"]), ids=lambda rule: rule.get("alert") or rule["record"])
def test_what_is_said_of_a_topology_is_of_one_submit_and_has_the_name_beside_it(rule):
    """A failure is compared with what others of its name have told."""
    others = {"namespace"} | ({"namespace, topology"} if rule.get("alert") == "ArdeaTopologyFailed" else set())
    for labels in re.findall(r"\bby \(([^)]*)\)", rule["expr"]):
        assert {"namespace", "topology", "topology_id"} <= set(labels.split(", ")) or labels in others
    for labels in re.findall(r"\bon \(([^)]*)\)", rule["expr"]):
        assert labels in {"namespace, topology_id", "namespace, topology", "namespace"}


@each_dashboard
def test_a_dashboard_does_not_mix_topologies_and_goes_on_after_a_new_submit(path):
    for query in panels(path):
        for labels in re.findall(r"\bby \(([^)]*)\)", query):
            assert {"namespace", "topology"} <= set(labels.split(", ")), query
            assert "topology_id" not in labels or "ardea_build_info" in query, query


def test_the_runbook_has_no_section_without_an_alert():
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert sections == [alert["alert"] for alert in ALERTS]


@each_dashboard
def test_a_dashboard_reads_series_that_exist(path):
    for query in queries(path):
        assert not unknown_series(query), query
        assert re.search(r"\bardea_", query)


@each_dashboard
def test_a_dashboard_fits_grafana(path):
    board = json.loads(path.read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in panels)
    cells = [
        (x, y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert max(x for x, _ in cells) < 24


def test_each_dashboard_has_an_id_of_its_own():
    assert len({json.loads(path.read_text())["uid"] for path in DASHBOARDS}) == len(DASHBOARDS)


@needs_helm
def test_rules_are_rendered_for_the_namespace():
    rule = render(*MONITORING)["PrometheusRule", "streams-ardea-topology"]
    rules = [each for group in rule["spec"]["groups"] for each in group["rules"]]
    alerts = {each["alert"]: each for each in rules if "alert" in each}
    assert alerts.keys() == {alert["alert"] for alert in ALERTS} - {"ArdeaTaskSaturated"}
    assert not re.search("NAMESPACE|SERVERS|RUNBOOK", json.dumps(rules))
    assert [each.keys() for each in rules if "record" in each] == [{"record", "expr"}] * 2
    missing = alerts["ArdeaMasterMissing"]
    assert 'namespace="prod"' in missing["expr"]
    assert missing["labels"] == {"severity": "critical", "team": "streaming"}
    assert missing["annotations"]["runbook_url"] == "https://wiki.example.org/ardea/runbook#ardeamastermissing"
    assert missing["annotations"]["summary"] == "topology {{ $labels.topology }} has no acting master"
    assert rule["metadata"]["labels"]["release"] == "prometheus"


@needs_helm
@pytest.mark.parametrize(
    ("settings", "there"),
    [
        ((), True),
        (("--set=zookeeper.metrics.enabled=false",), False),
        (("--set=zookeeper.enabled=false", "--set=externalZookeeper.servers={zk:2181}"), False),
    ],
)
def test_rules_about_zookeeper_are_there_where_the_chart_has_it_scraped(settings, there):
    rule = render("--set=monitoring.prometheusRule.enabled=true", *settings)["PrometheusRule", "streams-ardea-topology"]
    assert ("ardea-zookeeper" in [group["name"] for group in rule["spec"]["groups"]]) is there


@needs_helm
def test_rules_about_zookeeper_know_how_many_servers_there_are():
    enabled = "--set=monitoring.prometheusRule.enabled=true"
    for servers in (1, 3):
        rule = render(enabled, f"--set=zookeeper.servers={servers}")["PrometheusRule", "streams-ardea-topology"]
        (expression,) = (
            each["expr"]
            for group in rule["spec"]["groups"]
            for each in group["rules"]
            if each.get("alert") == "ArdeaZooKeeperNoQuorum"
        )
        assert expression.strip().endswith(f"<= {servers} / 2")


@needs_helm
def test_dashboards_arrive_as_they_are():
    found = [
        c for c in of_kind(render(*MONITORING), "ConfigMap") if "grafana_dashboard" in c["metadata"].get("labels", {})
    ]
    assert all(c["metadata"]["annotations"]["grafana_folder"] == "Streaming" for c in found)
    texts = {name: text for config in found for name, text in config["data"].items()}
    assert {name: json.loads(text) for name, text in texts.items()} == {
        f"ardea-{path.name}": json.loads(path.read_text()) for path in DASHBOARDS
    }

"""Values that are wrong are refused before anything is installed, by a message that names them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ardea.config_check import check, parse
from ardea.config_keys import TYPES as CHECKS
from scripts.values_schema import TYPES, keys, written
from tests.unit.helm.charts import CHART, RefusedError, manifest, needs_helm

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
README = (CHART / "README.md").read_text()
OPEN = {"kubernetes", "settings", "strings", "quantities"}
"""Definitions of maps whose keys are not the chart's."""


def objects_of(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield path, schema
        for key, value in schema.items():
            yield from objects_of(value, f"{path}/{key}")


def leaves(values: dict[str, Any], path: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict) and value and not re.search("(resources|[Cc]ontext|Probe)$", key):
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}"


def test_no_object_takes_keys_that_it_does_not_know():
    for path, schema in objects_of(SCHEMA):
        opened = path.removeprefix("/definitions/") in OPEN or path == "/properties/global"
        typed = isinstance(schema.get("additionalProperties"), dict)
        assert opened or typed or schema.get("additionalProperties") is False, path
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_schema_and_values_have_the_same_keys():
    def known(schema: dict[str, Any], path: str = "") -> Iterator[str]:
        for key, value in schema.get("properties", {}).items():
            value = SCHEMA["definitions"].get(value.get("$ref", "").rpartition("/")[2], value)
            yield f"{path}{key}"
            yield from known(value, f"{path}{key}.")

    def present(values: dict[str, Any], path: str = "") -> Iterator[str]:
        for key, value in values.items():
            yield f"{path}{key}"
            if isinstance(value, dict):
                yield from present(value, f"{path}{key}.")

    missing = set(present(VALUES)) - set(known(SCHEMA))
    assert not {
        path for path in missing if ".requests." not in path and ".limits." not in path and "seccomp" not in path
    }


def test_the_readme_lists_every_value():
    listed = set(re.findall(r"^\| `([^`]+)` \|", README, re.MULTILINE))
    assert listed == set(leaves(VALUES))


def test_each_alert_can_be_disabled():
    rule = SCHEMA["properties"]["monitoring"]["properties"]["prometheusRule"]["properties"]
    files = "".join(path.read_text() for path in (CHART / "files" / "rules").glob("*.yaml"))
    assert sorted(rule["disabled"]["items"]["enum"]) == sorted(re.findall(r"- alert: (\w+)", files))


@needs_helm
@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("zookeper.servers=3", "zookeper"),
        ("zookeeper.replicas=3", "replicas"),
        ("zookeeper.servers=2", "1, 3"),
        ("zookeeper.persistence.enable=false", "enable"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("image.digest=latest", "digest"),
        ("topology.masterReplicas=0", "masterReplicas"),
        ("topology.config.timeout=3", "timeout"),
        (r"topology.config.topology\.message\.timeouts\.secs=3", "topology.message.timeouts.secs"),
        (r"topology.config.topology\.message\.timeout\.secs=soon", "topology.message.timeout.secs"),
        (r"topology.config.topology\.emit\.direct=true", "topology.emit.direct"),
        ("serviceAccounts.master.create=perhaps", "create"),
        ("rbac.submitters[0].kind=Team", "kind"),
        ("monitoring.podMonitor.interval=often", "interval"),
        ("monitoring.prometheusRule.disabled[0]=ArdeaTypo", "disabled"),
        ("zookeeper.livenessProbe.period=3", "period"),
        ("zookeeper.resources.limit.memory=1Gi", "limit"),
        ("externalZookeeper.servers[0]=zk-0", "servers"),
        ("topology.podSpec=gvisor", "podSpec"),
        ("networkPolicy.egress.exept[0]=10.0.0.0/8", "exept"),
        ("networkPolicy.egress.except[0]=metadata", "except"),
        ("networkPolicy.egress.open=perhaps", "open"),
        ("console.enable=true", "enable"),
        ("console.service.port=http", "port"),
        ("console.allowedHosts[0]=https://a", "allowedHosts"),
        ("console.ingress.hosts[0]=a", "hosts"),
        ("console.prometheus.url=prometheus:9090", "url"),
    ],
)
def test_a_typo_is_refused_by_name(setting, named):
    with pytest.raises(RefusedError, match=re.escape(named)):
        manifest("--set", setting)


RIGHT: dict[str, list[Any]] = {
    "format": ["text", "json"],
    "bool": [True, "false"],
    "text": ["a", "5"],
    "texts": [["a:B", "c:D"], "a:B,c:D"],
    "count": [1, "60"],
    "integer": [0, "9404"],
    "bytes": [134217728, "256MiB", "134217728", "1.5 gb", "10B"],
    "seconds": [60, 0.5, "0.5", "1e3"],
    "delay": [0, "2.5"],
    "milliseconds": [0.25, "10"],
    "megabytes": [100, "50"],
    "cores": [0.1, "0.02", "2"],
    "padding": [0, "0.1"],
    "percent": [10, "0"],
    "share": [0.001, "1e-3", 1, "0.5"],
    "slots": [4, [6700, 6701], "3"],
    "mode": ["ATMOST_ONCE", "ATLEAST_ONCE"],
    "sorting": ["CPU_FIRST", "RAM_FIRST"],
    "backend": ["memory", "rocksdb", "our.backends:Redis"],
    "status": ["INACTIVE", "ACTIVE"],
    "cores by component": [{"split": 0.5}, "split:2,count:0.5"],
    "bytes by component": [{"split": "256MB", "count": 10}, "split:256MB,count:1GiB"],
    "texts by name": [{"team": "a"}, "team=data,tier=gold"],
    "seconds or never": [60, "90", "never"],
    "object": [{"hostNetwork": False}, '{"hostNetwork": false}'],
    "objects": [[{"key": "spot"}], '[{"key": "spot"}]'],
    "objects by name": [{"jsonlines": {"path": "m"}}, '{"jsonlines": {"path": "m"}}'],
}
"""By type, in the ways in which people write them into a file of values, or helm's --set makes them."""
WRONG: dict[str, list[Any]] = {
    "format": ["xml", True],
    "bool": [1, "yes"],
    "text": ["", 5],
    "texts": [[""], 5],
    "count": [0, "0", 1.5],
    "integer": [-1, "007"],
    "bytes": [-1, "256Mb/s"],
    "seconds": [0, "0.0", "soon"],
    "delay": [-0.5, "later"],
    "milliseconds": [-1, "10ms"],
    "megabytes": ["0", 0],
    "cores": [0, "100m"],
    "padding": [-1, "some"],
    "percent": [-1, "10%"],
    "share": [1.5, "2", "-0.1", "1%"],
    "slots": [[], ["6700"], 0],
    "mode": ["EXACTLY_ONCE", "at least once"],
    "sorting": ["DISK_FIRST", 1],
    "backend": ["rocksbd", "our.backends", ":Redis", "our backends:Redis", 1],
    "status": ["PAUSED", True],
    "cores by component": [{"split": "2"}, 3],
    "bytes by component": [{"split": "256"}, 3],
    "texts by name": [{"team": 3}, 3],
    "seconds or never": [-1, "soon"],
    "object": [["spot"], 3],
    "objects": [["spot"], {"key": "spot"}],
    "objects by name": [{"jsonlines": "m"}, ["jsonlines"]],
}


def refused(name: str, value: Any) -> bool:
    """Whether a submitter refuses it; it reads texts of the chart's as its own ``--set``."""
    read = parse([f"{name}={value}"]) if isinstance(value, str) else {name: value}
    return bool(check(read, "the namespace's defaults")[1])


def test_the_schema_says_of_configuration_keys_what_their_table_says():
    """`PYTHONPATH=.editable python scripts/values_schema.py` brings it up to date."""
    text = (CHART / "values.schema.json").read_text()
    assert written(text) == text
    assert TYPES.keys() == CHECKS.keys() == RIGHT.keys() == WRONG.keys()


def test_a_submitter_takes_what_is_right_and_refuses_what_is_wrong():
    for name, kind in keys().items():
        assert [value for value in RIGHT[kind] if refused(name, value)] == [], name
        assert [value for value in WRONG[kind] if not refused(name, value)] == [], name


@needs_helm
@pytest.mark.parametrize("turn", range(3))
def test_so_does_the_chart(turn):
    def chosen(values: dict[str, list[Any]]) -> str:
        config = {name: values[kind][turn % len(values[kind])] for name, kind in keys().items()}
        return f"topology.config={json.dumps(config)}"

    manifest("--set-json", chosen(RIGHT))
    with pytest.raises(RefusedError) as refusal:
        manifest("--set-json", chosen(WRONG))
    assert [name for name in keys() if f"/topology/config/{name}" not in str(refusal.value)] == []


@needs_helm
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["zookeeper.enabled=false"], "externalZookeeper.servers is empty"),
        (["externalZookeeper.servers[0]=zk:2181"], "only one can hold the state"),
        (
            ["externalZookeeper.servers[0]=zk:2181", "zookeeper.enabled=false", "networkPolicy.egress.open=false"],
            "would not reach externalZookeeper.servers",
        ),
        (["externalZookeeper.tls=true"], "the chart's own servers speak neither TLS nor SASL"),
        (["externalZookeeper.secret=client"], "the chart's own servers speak neither TLS nor SASL"),
    ],
)
def test_a_state_that_is_none_or_two_is_refused(settings, message):
    with pytest.raises(RefusedError, match=message):
        manifest(*(word for setting in settings for word in ("--set", setting)))

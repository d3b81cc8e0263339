"""Values that are wrong are refused before anything is installed, by a message that names them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

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
        ("serviceAccounts.master.create=perhaps", "create"),
        ("rbac.submitters[0].kind=Team", "kind"),
        ("monitoring.podMonitor.interval=often", "interval"),
        ("monitoring.prometheusRule.disabled[0]=ArdeaTypo", "disabled"),
        ("zookeeper.livenessProbe.period=3", "period"),
        ("zookeeper.resources.limit.memory=1Gi", "limit"),
        ("externalZookeeper.servers[0]=zk-0", "servers"),
    ],
)
def test_a_typo_is_refused_by_name(setting, named):
    with pytest.raises(RefusedError, match=re.escape(named)):
        manifest("--set", setting)


@needs_helm
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["zookeeper.enabled=false"], "externalZookeeper.servers is empty"),
        (["externalZookeeper.servers[0]=zk:2181"], "only one can hold the state"),
    ],
)
def test_a_state_that_is_none_or_two_is_refused(settings, message):
    with pytest.raises(RefusedError, match=message):
        manifest(*(word for setting in settings for word in ("--set", setting)))

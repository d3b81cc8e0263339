"""docs/metrics.md says what the table in the code says, and both keep Prometheus's naming rules."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from ardea.metrics import SERIES, Kind, Scope, Series
from ardea.metrics.overview import SUMMARY_COUNTERS, SUMMARY_GAUGES
from ardea.topology_master.snapshot_figures import Cause, Reason

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "metrics.md"


def row(series: Series) -> str:
    labels = ", ".join(f"`{label}`" for label in series.labels)
    return f"| `{series.name}` | {series.kind} | {series.scope.name.lower()} | {labels} | {series.help} |"


def test_every_series_has_its_row_and_no_other_is_documented():
    text = DOCS.read_text()
    documented = [line for line in text.splitlines() if line.startswith("| `ardea_")]
    assert documented == [row(series) for series in SERIES.values()], "\n".join(map(row, SERIES.values()))


def test_every_series_is_exported_by_somebody():
    packages = ("ardea", "heron_instance", "stream_manager", "metrics_manager", "topology_master", "scheduler")
    sources = (path for package in packages for path in (ROOT / package).rglob("*.py") if path.name != "series.py")
    code = "\n".join(path.read_text() for path in sources)
    assert [name for name in SERIES if f'"{name}"' not in code] == []


def test_the_mapping_from_heron_names_only_existing_series():
    text = DOCS.read_text()
    named = set(re.findall(r"`(ardea_\w+)`", text))
    assert named <= set(SERIES) | {f"{name}_{part}" for name in SERIES for part in ("sum", "count", "bucket")}


@pytest.mark.parametrize("series", SERIES.values(), ids=lambda series: series.name)
def test_names_follow_prometheus(series: Series):
    assert re.fullmatch(r"ardea_[a-z0-9_]+", series.name)
    assert series.name.endswith("_total") == (series.kind is Kind.COUNTER)
    assert bool(series.buckets) == (series.kind is Kind.HISTOGRAM)
    assert list(series.buckets) == sorted(set(series.buckets))
    assert len(set(series.all_labels)) == len(series.all_labels), "a label of its own repeats one of the scope"
    assert series.help.endswith(".")


def test_scopes_are_documented_with_their_labels():
    text = DOCS.read_text()
    for scope in Scope:
        labels = ", ".join(f"`{label}`" for label in scope.value)
        assert f"- **{scope.name.lower()}**: {labels}" in text


@pytest.mark.parametrize(("label", "values"), [("cause", Cause), ("reason", Reason)])
def test_every_value_of_a_label_of_snapshots_is_documented(label, values):
    (said,) = re.findall(rf"^\| `{label}` \| (.*) \|$", DOCS.read_text(), re.MULTILINE)
    assert [value for value in values if f"`{value}`" not in said] == []


def test_what_the_summary_sends_exists():
    assert {SERIES[name].kind for name in SUMMARY_COUNTERS} == {Kind.COUNTER, Kind.HISTOGRAM}
    assert {SERIES[name].kind for name in SUMMARY_GAUGES} == {Kind.GAUGE}


def test_the_package_offers_its_own_sinks_as_entry_points():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    offered = project.get("entry-points", {}).get("ardea.metrics_sinks", {})
    assert set(offered) == {"graphite", "jsonlines"}
    for value in offered.values():
        module, _, name = value.partition(":")
        assert hasattr(import_module(module), name)

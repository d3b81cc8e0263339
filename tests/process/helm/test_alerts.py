"""Each alert of the chart fires on what it is for, after its time, and on nothing less: promtool plays the series."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.process.helm.monitoring import rules

pytestmark = pytest.mark.prometheus

PROMTOOL = shutil.which("promtool", path=Path(sys.executable).parent) or "promtool"
ALERTS = [rule for group in yaml.safe_load(rules("here"))["groups"] for rule in group["rules"]]
TOPOLOGY = 'namespace="here", topology="words-1"'
"""Labels of every series; each stands for half an hour, a value a minute."""

TASK = f'{TOPOLOGY}, container="1", component="count", task="3"'
PROCESS = f'{TOPOLOGY}, container="1", process="count-0", component="count", task="3"'
MASTER = f'ardea_tm_leader{{{TOPOLOGY}, container="0"}}'
A_LIFE_EACH_TWO_MINUTES = " ".join(str(minute // 2) for minute in range(31))

# For each alert what it is for, and something harmless beside it.
CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "ArdeaMasterMissing": (
        {f'ardea_stmgr_links{{{TOPOLOGY}, container="1", state="up"}}': "0x30", MASTER: "0x30"},
        {
            f'ardea_stmgr_links{{{TOPOLOGY}, container="1", state="up"}}': "0x30",
            MASTER: "1x30",
        },
    ),
    "ArdeaContainersMissing": (
        {f'ardea_tm_containers{{{TOPOLOGY}, container="0", state="missing"}}': "1x30"},
        {f'ardea_tm_containers{{{TOPOLOGY}, container="0", state="missing"}}': "0x15 1x1 0x15"},
    ),
    "ArdeaManagerSilent": (
        {f'ardea_tm_heartbeat_age_seconds{{{TOPOLOGY}, container="0", peer="manager-2"}}': "0+60x30"},
        {f'ardea_tm_heartbeat_age_seconds{{{TOPOLOGY}, container="0", peer="manager-2"}}': "5x30"},
    ),
    "ArdeaRestarts": (
        {f"ardea_process_life{{{PROCESS}}}": A_LIFE_EACH_TWO_MINUTES},
        {f"ardea_process_life{{{PROCESS}}}": "1x10 2x10 3x10"},
    ),
    "ArdeaNothingAcked": (
        {f"ardea_spout_pending_tuples{{{TASK}}}": "40x30", f"ardea_instance_tuples_acked_total{{{TASK}}}": "7x30"},
        {f"ardea_spout_pending_tuples{{{TASK}}}": "40x30", f"ardea_instance_tuples_acked_total{{{TASK}}}": "7+1x30"},
    ),
    "ArdeaTuplesFailing": (
        {
            f"ardea_instance_tuples_acked_total{{{TASK}}}": "0+980x30",
            f"ardea_instance_tuples_failed_total{{{TASK}}}": "0+10x30",
            f"ardea_instance_tuples_timed_out_total{{{TASK}}}": "0+5x30",
            f"ardea_instance_tuples_lost_total{{{TASK}}}": "0+5x30",
        },
        {
            f"ardea_instance_tuples_acked_total{{{TASK}}}": "0+995x30",
            f"ardea_instance_tuples_failed_total{{{TASK}}}": "0+5x30",
            f"ardea_instance_tuples_timed_out_total{{{TASK}}}": "0x30",
            f"ardea_instance_tuples_lost_total{{{TASK}}}": "0x30",
        },
    ),
    "ArdeaTuplesGivenUp": (
        {f"ardea_instance_tuples_given_up_total{{{TASK}}}": "0x25 1x5"},
        {f"ardea_instance_tuples_given_up_total{{{TASK}}}": "1x30"},
    ),
    "ArdeaUserExceptions": (
        {f'ardea_user_exceptions_total{{{TASK}, exception="ValueError"}}': "0+3x30"},
        {f'ardea_user_exceptions_total{{{TASK}, exception="ValueError"}}': "0x25 3x5"},
    ),
    "ArdeaBackPressure": (
        {f'ardea_stmgr_backpressure_seconds_total{{{TOPOLOGY}, container="1", initiator="count-0"}}': "0+40x30"},
        {f'ardea_stmgr_backpressure_seconds_total{{{TOPOLOGY}, container="1", initiator="count-0"}}': "0+20x30"},
    ),
    "ArdeaTaskSaturated": (
        {f"ardea_instance_busy_seconds_total{{{TASK}}}": "0+59x30"},
        {f"ardea_instance_busy_seconds_total{{{TASK}}}": "0+50x30"},
    ),
    "ArdeaLinkDown": (
        {f'ardea_stmgr_links{{{TOPOLOGY}, container="1", state="down"}}': "1x30", MASTER: "1x30"},
        {f'ardea_stmgr_links{{{TOPOLOGY}, container="1", state="down"}}': "0x30", MASTER: "1x30"},
    ),
    "ArdeaLoopLag": (
        {
            f'ardea_process_loop_lag_seconds_bucket{{{PROCESS}, le="1"}}': "0+50x30",
            f'ardea_process_loop_lag_seconds_bucket{{{PROCESS}, le="2"}}': "0+60x30",
            f'ardea_process_loop_lag_seconds_bucket{{{PROCESS}, le="+Inf"}}': "0+60x30",
        },
        {
            f'ardea_process_loop_lag_seconds_bucket{{{PROCESS}, le="1"}}': "0+60x30",
            f'ardea_process_loop_lag_seconds_bucket{{{PROCESS}, le="2"}}': "0+60x30",
            f'ardea_process_loop_lag_seconds_bucket{{{PROCESS}, le="+Inf"}}': "0+60x30",
        },
    ),
    "ArdeaMetricsMissing": (
        {
            f'ardea_tm_containers{{{TOPOLOGY}, container="0", state="registered"}}': "2x30",
            f'ardea_build_info{{{TOPOLOGY}, container="0", version="1"}}': "1x30",
            f'ardea_build_info{{{TOPOLOGY}, container="1", version="1"}}': "1x30",
        },
        {
            f'ardea_tm_containers{{{TOPOLOGY}, container="0", state="registered"}}': "1x30",
            f'ardea_build_info{{{TOPOLOGY}, container="0", version="1"}}': "1x30",
            f'ardea_build_info{{{TOPOLOGY}, container="1", version="1"}}': "1x30",
        },
    ),
}


def firing(series: dict[str, str], folder: Path) -> set[str]:
    """The alerts that fire after half an hour of these series."""
    (folder / "rules.yml").write_text(rules("here"))
    queries = [{"expr": 'ALERTS{alertstate="firing"}', "eval_time": "30m", "exp_samples": []}]
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    tests = [{"interval": "1m", "input_series": inputs, "promql_expr_test": queries}]
    (folder / "tests.yml").write_text(json.dumps({"rule_files": ["rules.yml"], "tests": tests}))
    said = subprocess.run(
        [PROMTOOL, "test", "rules", "tests.yml"], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    told = said.stdout + said.stderr
    assert "got:" in told or said.returncode == 0, told
    return {alert["alert"] for alert in ALERTS if f'alertname="{alert["alert"]}"' in told}


def test_every_alert_has_its_case():
    assert list(CASES) == [alert["alert"] for alert in ALERTS]


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_on_what_it_is_for(name, tmp_path):
    assert firing(CASES[name][0], tmp_path) == {name}


@pytest.mark.parametrize("name", CASES)
def test_an_alert_does_not_fire_on_less(name, tmp_path):
    assert firing(CASES[name][1], tmp_path) == set()


def test_another_namespace_is_not_this_ones_business(tmp_path):
    series = {name.replace('"here"', '"there"'): values for bad, _ in CASES.values() for name, values in bad.items()}
    assert firing(series, tmp_path) == set()

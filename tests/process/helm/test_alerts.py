"""Each alert of the chart fires on what it is for, after its time, and on nothing less: promtool plays the series."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.process.helm.monitoring import rules

pytestmark = pytest.mark.prometheus

PROMTOOL = shutil.which("promtool", path=Path(sys.executable).parent) or "promtool"
FILES = {about: rules("here", about, servers=3) for about in ("topology", "zookeeper")}
ALERTS = [
    rule["alert"]
    for text in FILES.values()
    for group in yaml.safe_load(text)["groups"]
    for rule in group["rules"]
    if "alert" in rule
]
Played = Mapping[str, str]
"""Series with their values, one a minute: half an hour, if nothing else is said."""

MINUTES = 30
TOPOLOGY = 'namespace="here", topology="words", topology_id="words-1"'
NEXT = TOPOLOGY.replace("words-1", "words-2")
"""The same name, submitted again."""
TASK = f'{TOPOLOGY}, container="1", component="count", task="3"'
SPOUT = f'{TOPOLOGY}, container="1", component="lines", task="1"'
LIFE = f'ardea_process_life{{{TOPOLOGY}, container="1", process="count-0"}}'
PROCESS = f'{TOPOLOGY}, container="1", process="count-0", component="count", task="3"'
A_LIFE_EACH_TWO_MINUTES = " ".join(str(minute // 2) for minute in range(MINUTES + 1))

A_LIFE_EACH_SIX_MINUTES = " ".join(str((minute + 2) // 6) for minute in range(MINUTES + 1))
"""As the kubelet gives them to a container that is killed for its memory, in the end; each death is a rollback."""


def build(container: int, topology: str = TOPOLOGY) -> str:
    return f'ardea_build_info{{{topology}, container="{container}", version="1"}}'


def state(name: str, topology: str = TOPOLOGY) -> str:
    return f'ardea_tm_topology_state{{{topology}, container="0", state="{name}"}}'


def containers(kind: str) -> str:
    return f'ardea_tm_containers{{{TOPOLOGY}, container="0", state="{kind}"}}'


def links(kind: str, container: int = 1) -> str:
    return f'ardea_stmgr_links{{{TOPOLOGY}, container="{container}", state="{kind}"}}'


def up(container: int) -> str:
    role = "container" if container else "master"
    return f'up{{{TOPOLOGY}, role="{role}", instance="{container}"}}'


def server(number: int, series: str = "num_alive_connections") -> str:
    return f'{series}{{namespace="here", role="zookeeper", pod="zookeeper-{number}"}}'


def volume(claim: str, available: str) -> Played:
    """Of a thousand bytes."""
    labels = f'{{namespace="here", persistentvolumeclaim="{claim}"}}'
    return {
        f"kubelet_volume_stats_available_bytes{labels}": available,
        f"kubelet_volume_stats_capacity_bytes{labels}": f"1000x{MINUTES}",
    }


def then_gone(minutes: int, *values: int) -> str:
    """The first value for so many minutes, the others for one each; then the target is gone."""
    first, *others = values
    return " ".join([f"{first}x{minutes - 1}", *map(str, others), "stale"])


MASTER = f'ardea_tm_leader{{{TOPOLOGY}, container="0"}}'
HEARS = f'ardea_stmgr_connections{{{TOPOLOGY}, container="1", peer_kind="master"}}'
ACKED = f"ardea_instance_tuples_acked_total{{{TASK}}}"
PENDING = f"ardea_spout_pending_tuples{{{SPOUT}}}"
COMPLETED = f"ardea_spout_complete_latency_seconds_count{{{SPOUT}}}"
GIVEN_UP = f"ardea_instance_tuples_given_up_total{{{TASK}}}"
EMITTED = f'ardea_instance_tuples_emitted_total{{{SPOUT}, stream="default"}}'
SNAPSHOT_AGE = f'ardea_tm_snapshot_age_seconds{{{TOPOLOGY}, container="0"}}'
SNAPSHOT_EVERY = f'ardea_tm_snapshot_interval_seconds{{{TOPOLOGY}, container="0"}}'
SINK_AGE = f'ardea_tm_sink_waiting_seconds{{{TOPOLOGY}, container="0", component="out"}}'
ROLLBACKS = f'ardea_tm_rollbacks_total{{{TOPOLOGY}, container="0", cause="task"}}'
RESTORING = f'ardea_tm_snapshot_state{{{TOPOLOGY}, container="0", state="RESTORING"}}'
BEATS = f'ardea_tm_heartbeat_age_seconds{{{TOPOLOGY}, container="0", peer="manager-2"}}'
SILENCE = f'ardea_state_silence_seconds{{{TOPOLOGY}, container="1"}}'
LAG = "ardea_process_loop_lag_seconds_bucket"
LEASES = server(1, "ephemerals_count")
FINAL = ("SUCCEEDED", "FAILED", "KILLED")

LONG = 4 * MINUTES
SERVES: Played = {**{server(number): f"5x{LONG}" for number in (1, 2, 3)}, LEASES: f"2x{LONG}"}
SOUND: Played = {
    **SERVES,
    **{up(container): f"1x{MINUTES}" for container in (0, 1)},
    **{build(container): f"1x{MINUTES}" for container in (0, 1)},
    MASTER: f"1x{MINUTES}",
    state("RUNNING"): f"1x{MINUTES}",
    **{state(name): f"0x{MINUTES}" for name in ("PAUSED", "ENDING", *FINAL)},
    containers("registered"): f"1x{MINUTES}",
    containers("missing"): f"0x{MINUTES}",
    links("up"): f"0x{MINUTES}",
    links("down"): f"0x{MINUTES}",
    HEARS: f"1x{MINUTES}",
}
"""A topology of one container, in which nothing is wrong, and three servers of ZooKeeper."""
NOBODY: Played = dict.fromkeys(SOUND.keys() - SERVES.keys(), "stale")
"""It was never scraped."""


def gone(minute: int) -> Played:
    """All of it since then, the leases of its masters included."""
    return {**{name: then_gone(minute, int(SOUND[name][0])) for name in NOBODY}, LEASES: f"2x{minute - 1} 0x{LONG}"}


def ended(final: str, minute: int = 20) -> Played:
    """As its master tells for one scrape in that minute, when the pod of the container is gone."""
    told = {name: then_gone(minute, 0, int(name == state(final))) for name in map(state, FINAL)}
    there = {name: then_gone(minute, 1, 1) for name in (build(0), MASTER)}
    return {**gone(minute), **there, state("RUNNING"): then_gone(minute, 1, 0), **told}


AGAIN: Played = {
    build(0, NEXT): f"_x20 1x{MINUTES}",
    build(1, NEXT): f"_x20 1x{MINUTES}",
    state("RUNNING", NEXT): f"_x20 1x{MINUTES}",
    MASTER.replace(TOPOLOGY, NEXT): f"_x20 1x{MINUTES}",
}

# For each alert: what it is for, each way alone; and what is harmless beside it.
CASES: dict[str, tuple[list[Played], list[Played]]] = {
    "ArdeaTopologyFailed": (
        [ended("FAILED")],
        [ended("SUCCEEDED"), ended("KILLED"), {**ended("FAILED"), **AGAIN}],
    ),
    "ArdeaTopologyVanished": (
        [gone(20)],
        [
            ended("SUCCEEDED"),
            ended("KILLED"),
            {**gone(20), **AGAIN},
            gone(27),
            {**gone(20), up(0): "1x22 0x8"},  # it is there, and does not answer yet
            {**NOBODY, LEASES: f"0x{MINUTES}"},
        ],
    ),
    "ArdeaMasterMissing": (
        [{MASTER: "0x30", HEARS: "0x30"}, {MASTER: "1x20 stale", HEARS: "0x30"}],
        [{MASTER: "1x28 0x2", HEARS: "1x28 0x2"}, {MASTER: "1x24 stale"}],
    ),
    "ArdeaContainersMissing": (
        [{containers("missing"): "1x30"}],
        [{containers("missing"): "0x15 1x1 0x15"}],
    ),
    "ArdeaManagerSilent": (
        [{BEATS: "0+60x30"}],
        [{BEATS: "5x30"}],
    ),
    "ArdeaStateSilent": (
        [{SILENCE: "0x20 0+60x10"}],
        [{SILENCE: "0x20 50x10"}],
    ),
    "ArdeaCrashLoop": (
        [{LIFE: A_LIFE_EACH_TWO_MINUTES}, {LIFE: A_LIFE_EACH_SIX_MINUTES}],
        [{LIFE: "1x10 2x10 3x10"}],
    ),
    "ArdeaNothingAcked": (
        [
            {PENDING: "40x30", COMPLETED: "7x30", ACKED: "0+100x30"},  # bolts ack what never becomes a whole tree
            {
                PENDING: "40x30",
                COMPLETED: "7x30",
                PENDING.replace("lines", "others"): "4x30",
                COMPLETED.replace("lines", "others"): "0+10x30",
            },
        ],
        [
            {PENDING: "40x30", COMPLETED: "7+1x30"},
            {PENDING: "0x30", COMPLETED: "7x30"},
            {PENDING: "40x30", COMPLETED: "7x30", state("RUNNING"): "0x30", state("PAUSED"): "1x30"},
            {PENDING: "40x30", COMPLETED: "7x30", state("RUNNING"): "0x30", state("ENDING"): "1x30"},
        ],
    ),
    "ArdeaTuplesFailing": (
        [
            {
                ACKED: "0+980x30",
                f"ardea_instance_tuples_failed_total{{{TASK}}}": "0+10x30",
                f"ardea_instance_tuples_timed_out_total{{{TASK}}}": "0+5x30",
                f"ardea_instance_tuples_lost_total{{{TASK}}}": "0+5x30",
            }
        ],
        [
            {
                ACKED: "0+995x30",
                f"ardea_instance_tuples_failed_total{{{TASK}}}": "0+5x30",
                f"ardea_instance_tuples_timed_out_total{{{TASK}}}": "0x30",
                f"ardea_instance_tuples_lost_total{{{TASK}}}": "0x30",
            }
        ],
    ),
    "ArdeaTuplesGivenUp": (
        [{GIVEN_UP: "0x25 1x5"}],
        [{GIVEN_UP: "1x30"}],
    ),
    "ArdeaNoSnapshot": (
        [
            {SNAPSHOT_AGE: "0+60x30", SNAPSHOT_EVERY: "10x30", EMITTED: "0+100x30"},
            {SNAPSHOT_AGE: "0+120x30", SNAPSHOT_EVERY: "600x30", EMITTED: "0+100x30"},
        ],
        [
            {SNAPSHOT_AGE: "5x30", SNAPSHOT_EVERY: "10x30", EMITTED: "0+100x30"},
            {SNAPSHOT_AGE: "110x30", SNAPSHOT_EVERY: "10x30", EMITTED: "0+100x30"},
            {SNAPSHOT_AGE: "0+60x30", SNAPSHOT_EVERY: "600x30", EMITTED: "0+100x30"},
            {SNAPSHOT_AGE: "0+60x30", SNAPSHOT_EVERY: "10x30", EMITTED: "100x30"},  # it is idle
        ],
    ),
    "ArdeaSnapshotsAbandoned": (
        [{f'ardea_tm_snapshots_abandoned_in_a_row{{{TOPOLOGY}, container="0"}}': "3x30"}],
        [{f'ardea_tm_snapshots_abandoned_in_a_row{{{TOPOLOGY}, container="0"}}': "2x30"}],
    ),
    "ArdeaSinkBehind": (
        [
            {SINK_AGE: "0+60x30", SNAPSHOT_EVERY: "10x30"},
            {SINK_AGE: "0x28 1900x2", SNAPSHOT_EVERY: "600x30"},
        ],
        [
            {SINK_AGE: "0x28 110x2", SNAPSHOT_EVERY: "10x30"},
            {SINK_AGE: "0+50x30", SNAPSHOT_EVERY: "600x30"},
        ],
    ),
    "ArdeaRollbacks": (
        [
            {ROLLBACKS: "0+1x30"},
            {ROLLBACKS: "0x28 2x2", ROLLBACKS.replace("task", "error"): "0x26 3x4"},
            {ROLLBACKS: A_LIFE_EACH_SIX_MINUTES},
        ],
        [{ROLLBACKS: "0x28 3x2"}, {ROLLBACKS.replace("task", "update"): "0+1x30"}],
    ),
    "ArdeaStateNotRestored": (
        [{RESTORING: "1x30"}, {RESTORING.replace("RESTORING", "BROKEN"): "1x30"}],
        [{RESTORING: "0x28 1x2"}, {RESTORING.replace("RESTORING", "TAKING"): "1x30"}],
    ),
    "ArdeaUserExceptions": (
        [{f'ardea_user_exceptions_total{{{TASK}, exception="ValueError"}}': "0+3x30"}],
        [{f'ardea_user_exceptions_total{{{TASK}, exception="ValueError"}}': "0x25 3x5"}],
    ),
    "ArdeaBackPressure": (
        [{f'ardea_stmgr_backpressure_seconds_total{{{TOPOLOGY}, container="1", initiator="count-0"}}': "0+40x30"}],
        [{f'ardea_stmgr_backpressure_seconds_total{{{TOPOLOGY}, container="1", initiator="count-0"}}': "0+20x30"}],
    ),
    "ArdeaTaskSaturated": (
        [{f"ardea_instance_busy_seconds_total{{{TASK}}}": "0+59x30"}],
        [{f"ardea_instance_busy_seconds_total{{{TASK}}}": "0+50x30"}],
    ),
    "ArdeaLinkDown": (
        [{links("down"): "1x30", containers("registered"): "2x30", build(2): "1x30", up(2): "1x30"}],
        [{links("down"): "0x28 1x2"}],
    ),
    "ArdeaLoopLag": (
        [
            {
                f'{LAG}{{{PROCESS}, le="1"}}': "0+50x30",
                f'{LAG}{{{PROCESS}, le="2"}}': "0+60x30",
                f'{LAG}{{{PROCESS}, le="+Inf"}}': "0+60x30",
            }
        ],
        [
            {
                f'{LAG}{{{PROCESS}, le="1"}}': "0+60x30",
                f'{LAG}{{{PROCESS}, le="2"}}': "0+60x30",
                f'{LAG}{{{PROCESS}, le="+Inf"}}': "0+60x30",
            }
        ],
    ),
    "ArdeaMetricsMissing": (
        [
            {up(1): "1x10 0x20"},  # its metrics manager is down
            {containers("registered"): "2x30"},  # one that the master knows has no target
            # None but the master is scraped.
            dict.fromkeys((up(1), build(1), links("up"), links("down"), HEARS), "stale"),
            {links("up"): "1x30"},  # a container that another one knows, and the master does not
            # The master is not, nor is another container that this one knows.
            {
                MASTER: "stale",
                build(0): "stale",
                up(0): "stale",
                links("up"): "1x30",
                **{containers(k): "stale" for k in ("registered", "missing")},
            },
            # The master is not, and this container hears it.
            {MASTER: "stale", build(0): "stale", up(0): "stale"},
            NOBODY,  # but there are leases in ZooKeeper
        ],
        [{up(1): "1x25 0x5"}, {**NOBODY, LEASES: "0x30"}, {**NOBODY, LEASES: "stale"}],
    ),
    "ArdeaZooKeeperNoQuorum": (
        [
            {server(2): "5x20 stale", server(3): "5x20 stale"},
            {server(number): "5x20 stale" for number in (1, 2, 3)},
            {server(number): "stale" for number in (1, 2, 3)}
            | {f'up{{namespace="here", role="zookeeper", pod="zookeeper-{number}"}}': "0x30" for number in (1, 2, 3)},
        ],
        [{server(3): "5x27 stale"}, {server(number): "stale" for number in (1, 2, 3)}],
    ),
    "ArdeaZooKeeperDown": (
        [{server(3): "5x20 stale"}],
        [{server(3): "5x27 stale"}],
    ),
    "ArdeaZooKeeperSlow": (
        [
            {server(1, "outstanding_requests"): "101x30"},
            {server(1, "updatelatency_sum"): "0+60000x30", server(1, "updatelatency_count"): "0+50x30"},
        ],
        [
            {server(1, "outstanding_requests"): "99x30"},
            {server(1, "updatelatency_sum"): "0+600x30", server(1, "updatelatency_count"): "0+50x30"},
        ],
    ),
    "ArdeaZooKeeperDiskFull": (
        [volume("data-a-zookeeper-0", "99x30")],
        [volume("data-a-zookeeper-0", "101x30"), volume("data-other-0", "9x30")],
    ),
}


def firing(played: Played, folder: Path, minutes: Iterable[int] = (MINUTES,)) -> set[str]:
    """The alerts that fire in one of those minutes, if these series stand for those of SOUND, or beside them."""
    for about, text in FILES.items():
        (folder / f"{about}.yml").write_text(text)
    inputs = [{"series": name, "values": values} for name, values in {**SOUND, **played}.items()]
    query = 'ALERTS{alertstate="firing"}'
    asked = [{"expr": query, "eval_time": f"{minute}m", "exp_samples": []} for minute in minutes]
    tests = [{"interval": "1m", "input_series": inputs, "promql_expr_test": asked}]
    (folder / "tests.yml").write_text(json.dumps({"rule_files": [f"{about}.yml" for about in FILES], "tests": tests}))
    said = subprocess.run(
        [PROMTOOL, "test", "rules", "tests.yml"], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    told = said.stdout + said.stderr
    assert "got:" in told or said.returncode == 0, told
    for alert, labels in re.findall(r'alertname="(\w+)"([^}]*)\}', told):
        if not alert.startswith(("ArdeaZooKeeper", "ArdeaMetricsMissing")):
            assert re.search('topology=".*topology_id="', labels), f"a message names neither: {alert}{labels}"
    return {alert for alert in ALERTS if f'alertname="{alert}"' in told}


def numbered(which: int) -> list[tuple[str, int]]:
    return [(name, number) for name, case in CASES.items() for number in range(len(case[which]))]


def test_every_alert_has_its_case():
    assert list(CASES) == ALERTS


def test_nothing_fires_where_nothing_is_wrong(tmp_path):
    assert firing({}, tmp_path, range(MINUTES)) == set()


@pytest.mark.parametrize(("name", "number"), numbered(0))
def test_an_alert_fires_on_what_it_is_for(name, number, tmp_path):
    assert firing(CASES[name][0][number], tmp_path) == {name}


@pytest.mark.parametrize(("name", "number"), numbered(1))
def test_an_alert_does_not_fire_on_less(name, number, tmp_path):
    assert firing(CASES[name][1][number], tmp_path) == set()


def test_another_namespace_is_not_this_ones_business(tmp_path):
    series = {
        name.replace('"here"', '"there"'): values
        for bad, _ in CASES.values()
        for played in bad
        for name, values in played.items()
    }
    assert firing(series, tmp_path) == set()


ALL_TROUBLES = {
    name
    for name in ALERTS
    if not name.startswith(("ArdeaTopology", "ArdeaZooKeeper"))
    and name not in ("ArdeaMasterMissing", "ArdeaMetricsMissing")
}
TROUBLE: Played = {
    name: each for alert in reversed(ALERTS) if alert in ALL_TROUBLES for name, each in CASES[alert][0][0].items()
}
"""All at once, many of which would be true for minutes after the last sample."""


def troubled(minute: int) -> Played:
    """None of that is exported from then on."""
    played = {name: f"{values.rpartition('x')[0]}x{minute - 1} stale" for name, values in TROUBLE.items()}
    lives = " ".join(str(each // 2) for each in range(minute))
    return {
        **played,
        LIFE: f"{lives} stale",
        GIVEN_UP: f"0x18 1x{minute - 20} stale",
        SILENCE: f"0+60x{minute - 1} stale",
    }


@pytest.mark.parametrize("final", ["KILLED", "SUCCEEDED"])
def test_nothing_fires_for_a_topology_that_was_killed_or_has_succeeded(final, tmp_path):
    """Whatever was wrong with it before, and however long the pods of its containers take to go."""
    killed = ended(final, 28)
    late = {build(1): 1, HEARS: 0, up(1): 1, build(2): 1, up(2): 1}
    played = {**killed, **troubled(34), **{name: then_gone(34, value) for name, value in late.items()}}
    played |= {
        containers("missing"): then_gone(28, 1, 1),
        BEATS: "0+60x28 stale",
        containers("registered"): killed[MASTER],
    }
    assert firing(played, tmp_path, [27]) == ALL_TROUBLES
    assert firing(played, tmp_path, range(28, 98)) == set()


def test_the_failure_of_a_topology_is_told_for_an_hour_and_nothing_else_of_it(tmp_path):
    played = {**troubled(20), **ended("FAILED")}
    assert firing(played, tmp_path, range(20, 80)) == {"ArdeaTopologyFailed"}
    assert firing(played, tmp_path, range(82, 110)) == set()


def test_a_failure_is_not_told_again_after_a_good_run_of_the_same_name(tmp_path):
    good = {
        **{name: f"_x20 {then_gone(11, 1)}" for name in AGAIN},
        state("RUNNING", NEXT): f"_x20 {then_gone(10, 1, 0)}",
        state("KILLED", NEXT): f"_x20 {then_gone(10, 0, 1)}",
        state("FAILED", NEXT): f"_x20 {then_gone(11, 0)}",
    }
    assert firing({**ended("FAILED", 10), **good}, tmp_path, range(10, 20)) == {"ArdeaTopologyFailed"}
    assert firing({**ended("FAILED", 10), **good}, tmp_path, range(20, 75)) == set()


def of_next_pod(name: str) -> str:
    return name.replace("}", ', pod="next"}')


def runs_again(minutes: int) -> Played:
    """The same manifest is applied again five minutes after it has FAILED; all of it goes after so many more."""
    before = {name: values.removesuffix(" stale") for name, values in ended("FAILED").items() if name in NOBODY}
    again = {of_next_pod(name): f"_x25 {int(SOUND[name][0])}x{minutes} stale" for name in NOBODY}
    return {**{name: f"{values} stale" for name, values in before.items()}, **again, LEASES: f"2x{LONG}"}


def test_a_topology_that_runs_again_under_its_id_has_its_alerts_again(tmp_path):
    silent = of_next_pod(BEATS)
    assert firing({**runs_again(60), silent: "_x25 0+60x60"}, tmp_path, range(26, 75)) == {"ArdeaManagerSilent"}
    assert firing({**runs_again(60), up(1): "_x25 1x10 0x50"}, tmp_path, range(46, 75)) == {"ArdeaMetricsMissing"}


def test_a_topology_that_runs_again_under_its_id_and_loses_its_master_is_told_of(tmp_path):
    """Nobody says any more that it runs."""
    of_master = [MASTER, build(0), up(0), *map(state, (*FINAL, "RUNNING", "PAUSED", "ENDING"))]
    of_master += [containers(kind) for kind in ("registered", "missing")]
    lost = {of_next_pod(name): f"_x25 {int(SOUND[name][0])}x9 stale" for name in of_master}
    played = {**runs_again(60), **lost, of_next_pod(HEARS): "_x25 1x9 0x50"}
    assert firing(played, tmp_path, range(26, 35)) == set()
    assert firing(played, tmp_path, [38]) == firing(played, tmp_path, range(38, 75)) == {"ArdeaMasterMissing"}
    heard = {**runs_again(60), **lost}
    assert firing(heard, tmp_path, range(46, 75)) == {"ArdeaMetricsMissing"}, "a container hears a master"


def test_a_topology_that_runs_again_under_its_id_and_vanishes_is_told_of(tmp_path):
    told = {"ArdeaTopologyVanished", "ArdeaMetricsMissing"}  # masters have leases in ZooKeeper, and nobody is scraped
    assert firing(runs_again(10), tmp_path, range(42, 78)) == told


def test_a_topology_that_has_vanished_is_told_of_for_an_hour(tmp_path):
    assert firing(gone(20), tmp_path, range(26, 79)) == {"ArdeaTopologyVanished"}
    assert firing(gone(20), tmp_path, range(82, 110)) == set()

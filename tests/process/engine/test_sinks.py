"""Further receivers of metrics, as a configuration asks for them."""

from __future__ import annotations

import json
import socket

import pytest

from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster

EMITTED = "ardea_instance_tuples_emitted_total"
ERRORS = "ardea_metrics_manager_sink_errors_total"


def test_a_file_gets_what_was_counted_to_the_end_whatever_becomes_of_another_receiver(tmp_path):
    gone = socket.socket()  # bound, so that nobody else listens there, and not listening
    gone.bind(("127.0.0.1", 0))
    port = gone.getsockname()[1]
    sinks = {
        "jsonlines": {"path": f"{tmp_path}/{{topology}}-{{container}}.jsonl"},
        "graphite": {"host": "127.0.0.1", "port": port},
    }
    with gone, Running("measured.py:WordCount", tmp_path, {"heron.metricsmgr.sinks": sinks}) as topology:
        topology.running()
        topology.grows("executed", "count", 1000)
        for container in (1, 2):
            topology.until(lambda n=container: topology.metrics(n, ERRORS).get(("graphite",)), "nobody takes them")
            assert topology.metrics(container, ERRORS)[("jsonlines",)] == 0
        topology.raise_flag("pause")
        topology.raise_flag("enough")
        topology.finish()
        topology_id = topology.run.submission.definition.topology
    [emitted] = topology.left("lines")
    last = {}
    for container in (0, 1, 2):
        for line in (tmp_path / f"WordCount-{container}.jsonl").read_text().splitlines():
            sample = json.loads(line)
            labels = sample["labels"]
            assert (labels["topology"], labels["topology_id"]) == ("WordCount", topology_id)
            assert labels["container"] == str(container)
            if sample["name"] == EMITTED and labels["component"] == "lines":
                last[labels["stream"]] = sample["value"]
    assert last == {"default": emitted}

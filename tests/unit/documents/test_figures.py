"""The latencies in what `-o json` says."""

from __future__ import annotations

import msgspec
import pytest

from ardea.documents.figures import of_status, of_totals
from ardea.metrics import SECONDS, ProcessTotals, Totals
from ardea.scheduler.control import Status


def test_latencies_are_told_in_seconds_beside_their_histograms():
    """A hundred took 20 to 50 ms, 3.5 s in all."""
    buckets = [100 if bound == 0.05 else 0 for bound in SECONDS]
    document = msgspec.to_builtins(of_totals(Totals(acked=100, complete_latency=(*buckets, 0, 3.5))))
    assert document["acked"] == 100
    assert len(document["complete_latency"]) == len(SECONDS) + 2
    assert document["complete_latency_seconds"] == pytest.approx({"mean": 0.035, "p50": 0.035, "p99": 0.0497})
    assert document["execute_duration_seconds"] == {"mean": None, "p50": None, "p99": None}


def test_a_status_has_them_for_components_and_processes_and_can_be_read_again():
    """As `ardea describe -n NAMESPACE` does with what the one in the master's pod says."""
    totals = Totals(executed=7)
    process = ProcessTotals(1, "add-0", "add", 1, totals)
    status = Status("t-1", "RUNNING", "", 1, 1, [], [], 0, [], None, {}, {"add": totals}, [process])
    document = msgspec.to_builtins(of_status(status))
    assert document is not None
    for told in (document["components"]["add"], document["processes"][0]["totals"]):
        assert (told["executed"], told["execute_duration_seconds"]["mean"]) == (7, None)
    assert msgspec.convert(document, Status) == status
    assert of_status(None) is None

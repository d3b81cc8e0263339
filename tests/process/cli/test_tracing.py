"""A traced topology of real processes in two containers, and a receiver of OTLP."""

from __future__ import annotations

import os

import pytest

from ardea.errors import ExitCode
from tests.otlp import collector
from tests.process.cli.verbs import topology

pytestmark = [pytest.mark.cluster, pytest.mark.thorough]


def test_spans_of_all_tasks_join_into_the_trees_of_the_spout(ardea):
    """Each has its parent, whatever container its task is in; all have left when the topology ends."""
    with collector() as server:
        environment = {**os.environ, "TERM": "dumb", "OTEL_EXPORTER_OTLP_ENDPOINT": server.endpoint}
        sizes = ("--set", "test.numbers=50", "--set", "topology.tracing.share=1")
        run = ardea("run", topology("Sum"), "--containers", 2, *sizes, env=environment)
    assert run.returncode == ExitCode.OK, run.stderr
    spans = {
        span.span_id: (span.name, span.parent_span_id)
        for _, request in server.requests
        for of_resource in request.resource_spans
        for scope in of_resource.scope_spans
        for span in scope.spans
    }
    made = [name for name, _ in spans.values()]
    for name in ("numbers tree", "numbers emit", "add queue", "add process", "numbers ack"):
        assert made.count(name) == 100, name
    parents = {name: spans[parent][0] if parent else None for name, parent in spans.values()}
    assert parents["numbers tree"] is None
    assert parents["add process"] == parents["add queue"] == "numbers tree"

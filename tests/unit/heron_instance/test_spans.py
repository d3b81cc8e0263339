"""Spans on their way to a collector: what is sent, and what is counted where they are not taken."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import pytest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ardea.errors import UserError
from ardea.heron_instance import process
from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.spans import MOST_WAITING, Spans
from ardea.metrics import Identity, Registry
from ardea.plan.physical import TaskPlan
from tests.otlp import collector

TASK = TaskPlan(1, "words", 0, 1)


class Exporter(SpanExporter):
    """Takes spans once it is let, and says whether it has."""

    def __init__(self, result=SpanExportResult.SUCCESS):
        self.result = result
        self.go_on = threading.Event()
        self.asked = threading.Event()
        self.taken = 0

    def export(self, spans):
        self.asked.set()
        assert self.go_on.wait(20)
        self.taken += len(spans)
        return self.result

    def shutdown(self):
        pass


@pytest.fixture
def instruments():
    return Instruments(Registry(Identity("t", 1, "words-0", "words", 1, 1)))


def make(spans, instruments, number):
    tracing = spans.tracing(TASK, instruments)
    for _ in range(number):
        tracing._span("emit", None, 1).end(2)


def test_a_collector_gets_them(instruments, monkeypatch):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    with collector() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.endpoint)
        spans = Spans("Words", "words-0", 1.0, instruments.spans_dropped)
        make(spans, instruments, 3)
        spans.close()
    ((path, request),) = server.requests
    (of_resource,) = request.resource_spans
    (scope,) = of_resource.scope_spans
    assert path == "/v1/traces"
    named = {each.key: each.value.string_value for each in of_resource.resource.attributes}
    assert named["service.name"] == "Words"
    assert named["service.instance.id"] == "words-0"
    assert named["deployment.environment"] == "test"
    assert [(each.name, each.start_time_unix_nano, each.end_time_unix_nano) for each in scope.spans] == [
        ("words emit", 1, 2)
    ] * 3
    assert instruments.spans_dropped.value == 0


def test_the_environment_names_the_service(instruments, monkeypatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "billing")
    with collector() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.endpoint)
        spans = Spans("Words", "words-0", 1.0, instruments.spans_dropped)
        make(spans, instruments, 1)
        spans.close()
    attributes = server.requests[0][1].resource_spans[0].resource.attributes
    assert [each.value.string_value for each in attributes if each.key == "service.name"] == ["billing"]


def test_what_waits_is_bounded_and_what_is_dropped_is_counted(instruments):
    exporter = Exporter()
    spans = Spans("Words", "words-0", 1.0, instruments.spans_dropped, exporter)
    make(spans, instruments, MOST_WAITING + 100)
    assert exporter.asked.wait(20)
    assert instruments.spans_dropped.value == 100
    exporter.go_on.set()
    spans.close()
    assert exporter.taken == MOST_WAITING
    assert instruments.spans_dropped.value == 100


def test_what_the_collector_does_not_take_is_counted(instruments):
    exporter = Exporter(SpanExportResult.FAILURE)
    exporter.go_on.set()
    spans = Spans("Words", "words-0", 1.0, instruments.spans_dropped, exporter)
    make(spans, instruments, 10)
    spans.close()
    assert instruments.spans_dropped.value == 10


def traced(share):
    """The spans of a process whose topology traces such a share of trees."""
    settings, instruments = SimpleNamespace(tracing_share=share), SimpleNamespace(spans_dropped=None)
    return process._spans(SimpleNamespace(settings=settings, instruments=instruments), SimpleNamespace(name="W"), TASK)


@pytest.mark.parametrize(
    ("variable", "modules"),
    [
        ("OTEL_BSP_SCHEDULE_DELAY", ()),
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", ()),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", ("ardea.heron_instance.spans", "opentelemetry.sdk.trace")),  # at import
    ],
)
def test_an_environment_that_cannot_be_read_is_one_message(monkeypatch, variable, modules):
    for module in modules:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setenv(variable, "-1")
    with pytest.raises(UserError, match="words-0 cannot trace: a variable OTEL_"):
        traced(0.5)


def test_without_the_extra_a_traced_task_says_what_is_missing_and_another_needs_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ardea.heron_instance.spans", None)
    assert traced(0.0) is None
    with pytest.raises(UserError, match="words-0 cannot trace") as raised:
        traced(0.5)
    assert raised.value.hint.startswith("pip install 'ardea[tracing]'")

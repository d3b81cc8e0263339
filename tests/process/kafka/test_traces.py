"""Traces that come with records go on through a topology, and leave with the records that it writes."""

from __future__ import annotations

import pytest

from tests.otlp import collector

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
BODY = """
class Pass(Bolt):
    outputs = ["line"]
    def process(self, tup):
        self.emit([tup["line"]])

class Made(Topology):
    lines = KafkaSpout("{source}", ["line"], lambda message: [message.value()], end="latest").spec()
    passes = Pass.spec(inputs=[lines])
    out = KafkaSink("{out}", lambda tup: Record(tup["line"])).spec(inputs=[passes])
"""


@pytest.mark.thorough
def test_a_sampled_trace_goes_in_and_out_of_headers_and_no_other_does(broker, running, monkeypatch):
    source, out, producer = broker.topic(), broker.topic(), broker.producer()
    producer.produce(source, b"traced", headers=[("traceparent", f"00-{TRACE}-{PARENT}-01")])
    producer.produce(source, b"not sampled", headers=[("traceparent", f"00-{TRACE}-{PARENT}-00")])
    producer.produce(source, b"without")
    assert producer.flush(60) == 0
    with collector() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.endpoint)
        with running(BODY.format(source=source, out=out), topology_tracing_share=1e-12) as topology:
            outcome = topology.finish()
    assert (outcome.state, outcome.errors) == ("SUCCEEDED", [])
    spans = {
        span.name: span
        for _, request in server.requests
        for of_resource in request.resource_spans
        for scope in of_resource.scope_spans
        for span in scope.spans
    }
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE}
    assert spans["lines tree"].parent_span_id.hex() == PARENT
    assert {message.value(): message.headers() for message in broker.messages(out)} == {
        b"traced": [("traceparent", f"00-{TRACE}-{spans['out process'].span_id.hex()}-01".encode())],
        b"not sampled": None,
        b"without": None,
    }

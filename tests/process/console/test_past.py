"""Hours and days in charts: what a real Prometheus answers to the console's questions, and what people see of it."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from ardea.console.past import Chosen, Span, query, samples
from ardea.console.prometheus import Prometheus as Asked
from ardea.errors import ClusterError
from tests.process.console.backfilled import backfill, of_task
from tests.process.console.browser import browser
from tests.process.console.conftest import Console, call
from tests.process.metrics_manager.prometheus import Prometheus, local
from tests.process.ports import free_ports

pytestmark = [pytest.mark.cluster, pytest.mark.prometheus]

TASKS = [("lines", 1, 10.0), ("count", 2, 20.0), ("count", 3, 40.0)]


@pytest.fixture
def scraped(prometheus_binary, tmp_path_factory):
    """Starts a Prometheus that knows these tasks of a topology, and others like them of another one."""
    close = []

    def start(topology, tasks, port=None):
        folder = tmp_path_factory.mktemp("prometheus")
        promtool = shutil.which("promtool", path=prometheus_binary.parent)
        assert promtool is not None, "it comes with the server"
        others = [("count", 2, 1000.0), ("lines", 3, 1000.0)]
        known = [*((topology, *each) for each in tasks), *(("another", *each) for each in others)]
        backfill(Path(promtool), folder, [series for each in known for series in of_task(*each)])
        server = Prometheus(prometheus_binary, folder, local(), port=port)
        close.append(server)
        server.wait("vector(1)", bool)
        return server

    yield start
    for server in close:
        server.close()


def asked(server, topology, chosen):
    """The values of the last five minutes, which do not change."""
    span = Span.of_hours(1, time.time() - 60)
    told = samples(Asked(server.url).ask(query(topology, chosen, span), span), chosen, span)
    assert (len(told.times), told.times[-1] - told.times[0], told.interval) == (241, 3600, 15)
    found = {}
    for name, fields in told.series.items():
        for field, column in fields.items():
            assert {None if v is None else round(v, 6) for v in column[-20:]} == {round(column[-1], 6)}, (name, field)
            found.setdefault(name, {})[field] = round(column[-1], 6)
    return found


def of(speed, numbers):
    """What :func:`of_task` means for tasks of these numbers."""
    return {
        "emitted": speed,
        "executed": 2 * speed,
        "acked": speed / 2,
        "failed": speed / 10,
        "latency_p50": 0.15,
        "latency_p99": 0.199,
        "capacity": 0.25 * max(numbers),
        "back_pressure": 0.125 * max(numbers),
        "initiates": 0.01 * max(numbers),
        "cpu": 0.5 * len(numbers),
        "resident_memory_bytes": 1e6 * sum(numbers),
        "pending": sum(numbers),
        "queued_bytes": 2100 * len(numbers),
    }


def test_each_field_of_components_and_tasks(scraped):
    name = 'odd "name" \\ of ähm|.*'
    server = scraped("T-1", [*TASKS, (name.replace("\\", "\\\\").replace('"', '\\"'), 4, 80.0)])
    lines, count, odd = of(10, [1]), of(60, [2, 3]), of(80, [4])
    assert asked(server, "T-1", Chosen()) == {"lines": lines, "count": count, name: odd}
    assert asked(server, "T-1", Chosen(["count", "no such"])) == {"count": count}
    assert asked(server, "T-1", Chosen([name], {"count-1": 2})) == {name: odd, "count-1": of(20, [2])}
    assert asked(server, "T-2", Chosen()) == {}


def test_one_number_of_two_tasks_is_no_error(scraped):
    """As shortly after an update."""
    server = scraped("T-1", [("lines", 1, 10.0), ("count", 1, 20.0)])
    told = asked(server, "T-1", Chosen())
    assert {name: fields["emitted"] for name, fields in told.items()} == {"lines": 10, "count": 20}


def test_what_it_refuses_is_said(scraped):
    server, span = scraped("T-1", []), Span.of_hours(1, time.time())
    with pytest.raises(ClusterError, match=r"refuses with status 400: .*parse error") as refused:
        Asked(server.url).ask("sum(", span)
    assert refused.value.hint == "look at --prometheus"
    with pytest.raises(ClusterError, match="refuses with status 404"):
        Asked(f"{server.url}/elsewhere").ask("vector(1)", span)


def test_people_choose_how_far_back_they_look(console, scraped):
    """And are told while Prometheus does not answer."""
    [port] = free_ports(1)
    [listed] = json.loads(call(console.state, "list", "-o", "json").stdout)["topologies"]
    shown = Console(console.state, 0, "--prometheus", f"http://127.0.0.1:{port}")
    try:
        with browser() as page:
            page.open(shown.link)
            page.go("/t/Watched/component/double")
            page.press("24 h")
            page.shows(f"Prometheus at http://127.0.0.1:{port} does not answer")
            scraped(listed["id"], [("double", 2, 123.0)], port)
            page.press("6 h")
            page.shows("executed 246/s", "p99 199 ms")
            assert page.violations() == []
            page.keep("hours")
            page.go("/t/Watched")
            page.shows("Lately", "Memory of tasks", "7 d")
            pressed = "return document.querySelector('.choices [aria-pressed=true]').innerText"
            assert page.run(pressed) == "6 h", "the choice is for all views"
            assert page.complaints() == []
    finally:
        shown.stop()

"""The metrics manager as its shell uses it, over real HTTP."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ardea import __version__
from ardea.errors import ClusterError
from ardea.metrics import Identity, Overview, Registry, by_component
from ardea.metrics_manager import prometheus
from ardea.metrics_manager.server import MetricsManager
from ardea.metrics_manager.supervised import Supervised
from ardea.supervision import records


@pytest.fixture
def manager() -> Iterator[MetricsManager]:
    before = set(threading.enumerate())
    manager = MetricsManager(Identity("words-1", 1, "metrics_manager"))
    yield manager
    manager.close()
    assert [t for t in set(threading.enumerate()) - before if t.name == "metrics-http"] == []


def get(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    connection = HTTPConnection(host, port, timeout=20)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_scrapes_see_the_latest_of_every_process(manager):
    port = manager.serve(0)
    instance = Registry(Identity("words-1", 1, "heron_instance", "count", 1))
    pending = instance.gauge("ardea_spout_pending_tuples")
    for value in (3, 4):
        pending.value = value
        manager.accept(instance.snapshot(), 0)
        status, text = get(port, "/metrics")
        assert status == 200
        (sample,) = next(text_string_to_metric_families(text)).samples
        assert (sample.name, sample.value) == ("ardea_spout_pending_tuples", value)
        labels = {"topology": "words", "topology_id": "words-1", "container": "1", "component": "count", "task": "1"}
        assert sample.labels == labels


def test_a_pod_with_an_address_of_ipv6_is_scraped_there_and_at_any_other(manager, ipv6):
    port = manager.serve(0, "::")
    assert [get(port, "/healthz", host) for host in (ipv6, "127.0.0.1")] == [(200, "ok\n")] * 2


def test_types_and_help_come_from_the_table_and_no_created_series(manager):
    port = manager.serve(0)
    manager.flush(0, 0)
    manager.flush(1, 1)
    text = get(port, "/metrics")[1]
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["ardea_process_cpu_seconds"].type == "counter"
    assert families["ardea_process_threads"].type == "gauge"
    assert families["ardea_metrics_manager_flush_duration_seconds"].type == "histogram"
    assert families["ardea_process_open_fds"].documentation == "Open file descriptors."
    assert families["ardea_build_info"].samples[0].labels["version"] == __version__
    assert "_created" not in text


def test_label_values_are_escaped(manager):
    port = manager.serve(0)
    instance = Registry(Identity("words-1", 1, "heron_instance", "count", 1))
    instance.counter("ardea_user_exceptions_total", exception='a"b\\c\nd').value = 1
    manager.accept(instance.snapshot(), 0)
    families = text_string_to_metric_families(get(port, "/metrics")[1])
    labels = [s.labels for family in families for s in family.samples if s.name == "ardea_user_exceptions_total"]
    assert [each["exception"] for each in labels] == ['a"b\\c\nd']


def test_a_scrape_counts_when_its_answer_has_gone_and_a_look_at_the_health_does_not(manager, deadline):
    port, begun = manager.serve(0), time.monotonic()
    get(port, "/healthz")
    assert manager.scrapers.come_after(begun) is None
    get(port, "/metrics")
    deadline(lambda: manager.scrapers.come_after(begun), "it is known", seconds=5)
    assert manager.scrapers.come_after(time.monotonic()) is False


def test_an_answer_states_its_length(manager):
    """So that whoever got a part of it knows."""
    connection = HTTPConnection("127.0.0.1", manager.serve(0), timeout=20)
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    assert response.getheader("Content-Length") == str(len(response.read()))
    connection.close()


def test_health_and_unknown_paths(manager):
    port = manager.serve(0)
    assert get(port, "/healthz") == (200, "ok\n")
    assert get(port, "/nonsense")[0] == 404


def test_a_port_in_use_is_an_error_that_says_which_and_what_to_do(manager):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=f"127.0.0.1:{port}: another process uses it") as caught:
            manager.serve(port)
    assert "another port" in caught.value.hint


def test_where_no_port_is_free_none_is_said_to_be_taken(manager, monkeypatch):
    def refused(*_):
        raise OSError(errno.EADDRINUSE, "Address already in use")

    monkeypatch.setattr(prometheus, "_Server", refused)
    with pytest.raises(ClusterError, match=r"cannot serve /metrics on 127.0.0.1:0: no port is free$") as caught:
        manager.serve(0)
    assert "ip_local_port_range" in caught.value.hint


def test_a_port_that_does_not_exist_is_an_error_too(manager):
    with pytest.raises(ClusterError, match=r"127\.0\.0\.1:70000"):
        manager.serve(70000)


def test_the_port_is_free_after_close(manager):
    port = manager.serve(0)
    manager.close()
    assert manager.serve(port) == port


def threads_of_requests():
    return [thread for thread in threading.enumerate() if "process_request" in thread.name]


def test_clients_are_served_beside_any_number_that_say_nothing(manager, deadline):
    port = manager.serve(0)
    with contextlib.ExitStack() as crowd:
        for _ in range(100):
            crowd.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        assert get(port, "/healthz") == (200, "ok\n")
        deadline(lambda: len(threads_of_requests()) <= prometheus.CLIENTS, "threads are as few as clients", seconds=5)
    deadline(lambda: not threads_of_requests(), "all are gone")


def test_a_client_has_one_deadline_for_its_request(manager, monkeypatch):
    monkeypatch.setattr(prometheus, "DEADLINE", 0.2)
    monkeypatch.setattr(prometheus, "LOOK", 0.05)
    with socket.create_connection(("127.0.0.1", manager.serve(0)), timeout=0.02) as slow:
        until = time.monotonic() + 8
        with contextlib.suppress(ConnectionError):
            heard = None
            while heard != b"" and time.monotonic() < until:
                slow.send(b"x")
                with contextlib.suppress(TimeoutError):
                    heard = slow.recv(1)
        assert time.monotonic() < until, "it was closed"


def test_snapshots_are_counted_by_result(manager):
    instance = Registry(Identity("words-1", 1, "heron_instance", "count", 1, life=2))
    former = Registry(Identity("words-1", 1, "heron_instance", "count", 1, life=1))
    for snapshot in (instance.snapshot(), instance.snapshot(), former.snapshot(), b"\xc1"):
        manager.accept(snapshot, 0)
    statistics = manager.statistics()
    assert statistics.snapshots == {"accepted": 2, "stale": 1, "invalid": 1}
    assert statistics.processes == 1
    manager.expire(60)
    assert manager.statistics().processes == 0


def test_lives_are_those_of_the_supervisors_also_of_a_process_that_dies_before_it_reports(tmp_path):
    process = {"state": "waiting", "pid": None, "life": 3, "restarts": 2, "reason": "exit 75"}
    status = {"supervisor": "x", "pid": 1, "state": "ended", "processes": {"count-0": process}}
    records.write_status(tmp_path, status)
    manager = MetricsManager(Identity("words-1", 1, "metrics_manager"), supervised=Supervised(tmp_path, 1))
    manager.flush(0, 0)
    found = {s.labels["process"]: s.value for s in manager.samples() if s.name == "ardea_process_life"}
    assert found == {"count-0": 3}


def test_a_life_is_exported_while_its_supervisor_has_it(tmp_path):
    """A task of a pod writes names there as it likes."""
    now = 0.0
    looks = Supervised(tmp_path, 1, clock=lambda: now)
    manager = MetricsManager(Identity("words-1", 1, "metrics_manager"), supervised=looks)
    for number in range(3):
        process = {"state": "running", "pid": None, "life": 1, "restarts": 0, "reason": None}
        records.write_status(tmp_path, {"state": "ended", "processes": {f"name-{number}": process}})
        now = 10.0 * number
        manager.flush(now, now)
    assert [s.labels["process"] for s in manager.samples() if s.name == "ardea_process_life"] == ["name-2"]


def test_the_flush_is_timed_by_the_given_clock():
    ticks = iter([10.0, 10.25])
    manager = MetricsManager(Identity("words-1", 1, "metrics_manager"), clock=lambda: next(ticks))
    manager.flush(0, 0)
    assert manager._flushes.sum == 0.25


def test_the_master_reads_the_summary(manager):
    instance = Registry(Identity("words-1", 1, "heron_instance", "count", 1))
    instance.counter("ardea_instance_tuples_executed_total", source_component="a", stream="x").value = 3
    instance.counter("ardea_instance_tuples_executed_total", source_component="b", stream="x").value = 4
    manager.accept(instance.snapshot(), 0)
    overview = Overview()
    overview.accept(manager.summary(admission=1), 0)
    assert by_component(overview.processes())["count"].executed == 7

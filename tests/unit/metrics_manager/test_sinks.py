"""Sinks: each with its own queue, none able to delay another, a scrape or the topology."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tenacity

from ardea.errors import ConfigError
from ardea.metrics import Identity, Kind, Registry
from ardea.metrics.sinks import Sample, check_sinks
from ardea.metrics_manager.graphite import GraphiteSink, plaintext
from ardea.metrics_manager.jsonlines import JsonLinesSink
from ardea.metrics_manager.server import MetricsManager
from ardea.metrics_manager.sinks import CAPACITY, Batch, SinkWorker, load_sinks
from ardea.scheduler.submission import Submission

PENDING = Sample("ardea_spout_pending_tuples", Kind.GAUGE, {"topology": "words", "task": "1"}, 3)
QUICKLY = tenacity.wait_fixed(0.01)


def until(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    """Waits for a condition, or fails saying which."""
    deadline, tick = time.monotonic() + seconds, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"in {seconds} s it did not happen that {what}"
        tick.wait(0.01)


class Recorder:
    """A sink in memory that can be made to fail or to hang."""

    def __init__(self) -> None:
        self.batches: list[float] = []
        self.calls: list[str] = []
        self.failures: list[BaseException] = []
        self.unclosed: list[BaseException] = []
        self.go = threading.Event()
        self.go.set()

    def open(self):
        self.calls.append("open")

    def write(self, timestamp, samples):
        self.go.wait(30)
        if self.failures:
            raise self.failures.pop(0)
        self.batches.append(timestamp)

    def close(self):
        self.calls.append("close")
        if self.unclosed:
            raise self.unclosed.pop(0)


@pytest.fixture
def workers() -> Iterator[list[SinkWorker]]:
    started: list[SinkWorker] = []
    yield started
    for worker in started:
        worker.finish()
        assert worker.join(5), f"{worker.name} left its thread behind"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        yield server


def address(listener: socket.socket) -> dict[str, object]:
    return {"host": "127.0.0.1", "port": listener.getsockname()[1]}


def test_batches_arrive_in_order_through_one_opening(workers):
    sink = Recorder()
    worker = SinkWorker("memory", sink)
    workers.append(worker)
    for number in range(CAPACITY):
        worker.offer(Batch(number, [PENDING]))
    worker.finish()
    assert worker.join(5)
    assert sink.batches == list(range(CAPACITY))
    assert sink.calls == ["open", "close"]
    assert (worker.statistics().written, worker.statistics().state) == (CAPACITY, "closed")


def test_a_full_queue_loses_its_oldest_batches_and_counts_them(workers):
    sink = Recorder()
    sink.go.clear()
    worker = SinkWorker("slow", sink)
    workers.append(worker)
    worker.offer(Batch(0, []))
    until(lambda: worker.statistics().queued == 0, "the first batch is being written")
    for number in range(1, CAPACITY + 4):
        worker.offer(Batch(number, []))
    assert (worker.statistics().dropped, worker.statistics().queued) == (3, CAPACITY)
    sink.go.set()
    until(lambda: worker.statistics().written == CAPACITY + 1, "all queued batches are written")
    assert sink.batches == [0, *range(4, CAPACITY + 4)]


def test_a_failed_batch_is_written_again_after_reopening(workers):
    sink = Recorder()
    sink.failures = [OSError("down"), RuntimeError("bug"), asyncio.CancelledError()]
    sink.unclosed = [OSError("down"), asyncio.CancelledError()]
    worker = SinkWorker("shaky", sink, wait=QUICKLY)
    workers.append(worker)
    worker.offer(Batch(1, []))
    until(lambda: worker.statistics().written == 1, "the batch is written at last")
    assert sink.calls == [*["open", "close"] * 3, "open"]
    assert (worker.statistics().errors, worker.statistics().dropped) == (3, 0)


def test_closing_does_not_wait_for_a_sink_in_back_off(workers):
    sink = Recorder()
    sink.failures = [OSError("down")] * 1000
    worker = SinkWorker("down", sink, wait=tenacity.wait_fixed(3600))
    workers.append(worker)
    worker.offer(Batch(1, []))
    until(lambda: worker.statistics().errors == 1, "the first try failed")
    worker.finish()
    until(lambda: worker.join(0.0), "it has ended")


def test_a_hanging_sink_delays_neither_flush_nor_scrape_nor_another_sink(workers, listener, tmp_path):
    """A real receiver that accepts and never reads."""
    path = tmp_path / "metrics.jsonl"
    slow = SinkWorker("graphite", GraphiteSink({**address(listener), "timeout": 60}), wait=QUICKLY)
    quick = SinkWorker("jsonlines", JsonLinesSink({"path": str(path)}))
    workers.append(quick)
    manager = MetricsManager(Identity("words", 1, "metrics_manager"), [slow, quick])
    instance = Registry(Identity("words", 1, "heron_instance", "count", 1))
    for stream in range(2000):
        instance.counter("ardea_instance_tuples_emitted_total", stream=f"a-stream-with-a-long-name-{stream}")
    manager.accept(instance.snapshot(), 0)
    connection = None
    try:
        flushes = 0
        while not slow.statistics().dropped:
            manager.flush(flushes, flushes)
            flushes += 1
            until(lambda count=flushes: quick.statistics().written == count, "the file has every batch")
            connection = connection or listener.accept()[0]
        assert slow.statistics().written < flushes
        assert {json.loads(line)["timestamp"] for line in path.read_text().splitlines()} == set(range(flushes))
        manager.flush(flushes, flushes)  # what was dropped shows in the next snapshot
        dropped = [s for s in manager.samples() if s.name == "ardea_metrics_manager_sink_dropped_total"]
        assert {s.labels["sink"]: s.value > 0 for s in dropped} == {"graphite": True, "jsonlines": False}
    finally:
        if connection is not None:
            connection.close()  # the pending send ends with a reset
        listener.close()
        manager.close()
    until(lambda: slow.statistics().state == "closed", "the slow sink's thread ended")


def test_graphite_reconnects_with_the_batch_that_failed(workers, listener):
    worker = SinkWorker("graphite", GraphiteSink({**address(listener), "prefix": "lab."}), wait=QUICKLY)
    workers.append(worker)
    worker.offer(Batch(1.5, [PENDING]))
    first = listener.accept()[0]
    assert read_line(first) == "lab.ardea_spout_pending_tuples;topology=words;task=1 3 1"
    first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close with a reset
    first.close()
    number = 2
    listener.setblocking(False)
    second = None
    while second is None:
        worker.offer(Batch(number, [PENDING]))
        until(lambda count=number: worker.statistics().written >= count, f"batch {number} was written")
        try:
            second = listener.accept()[0]
        except BlockingIOError:
            number += 1
    assert worker.statistics().errors == 1
    second.settimeout(20)
    with second:
        assert read_line(second).startswith("lab.ardea_spout_pending_tuples;")


def test_graphite_sends_a_batch_on_as_long_as_its_receiver_takes_some_of_it(monkeypatch):
    """Slower in all than its timeout."""
    taken = bytearray()

    class Slow:
        def send(self, data):
            taken.extend(data[:10])
            return min(10, len(data))

        def sendall(self, data):
            raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", lambda *_: Slow())
    sink = GraphiteSink({"host": "carbon"})
    sink.open()
    sink.write(1.0, [PENDING])
    assert taken == b"ardea_spout_pending_tuples;topology=words;task=1 3 1\n"


def read_line(connection: socket.socket) -> str:
    connection.settimeout(20)
    data = b""
    while not data.endswith(b"\n"):
        received = connection.recv(1)
        assert received, "the sink hung up"
        data += received
    return data.decode().strip()


def test_graphite_lines_hold_no_character_that_would_split_them():
    labels = {"topology": "my words;x=1", "task": ""}
    histogram = Sample("ardea_h", Kind.HISTOGRAM, labels, 3, 1.5, {"1": 2, "+Inf": 3})
    assert list(plaintext(histogram)) == [
        "ardea_h_count;topology=my_words_x_1 3",
        "ardea_h_sum;topology=my_words_x_1 1.5",
        "ardea_h_bucket;topology=my_words_x_1;le=1 2",
        "ardea_h_bucket;topology=my_words_x_1;le=+Inf 3",
    ]


def test_json_lines_are_rotated_and_only_so_many_kept(tmp_path):
    path = tmp_path / "deep" / "metrics.jsonl"
    sink = JsonLinesSink({"path": str(path), "max_bytes": 10, "files": 3})
    sink.open()
    for number in range(5):
        sink.write(number, [PENDING])
    sink.close()
    kept = {file.name: json.loads(file.read_text())["timestamp"] for file in path.parent.iterdir()}
    assert kept == {"metrics.jsonl": 4, "metrics.jsonl.1": 3, "metrics.jsonl.2": 2}


def test_a_single_json_lines_file_begins_again(tmp_path):
    path = tmp_path / "metrics.jsonl"
    sink = JsonLinesSink({"path": str(path), "max_bytes": 10, "files": 1})
    sink.open()
    for number in range(3):
        sink.write(number, [PENDING])
    sink.close()
    assert [json.loads(line)["timestamp"] for line in path.read_text().splitlines()] == [2]


def test_json_lines_go_on_behind_a_line_that_was_cut(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"timestamp": 1}\n{"timesta')
    sink = JsonLinesSink({"path": str(path)})
    sink.open()
    sink.write(2.0, [PENDING])
    sink.close()
    assert json.loads(path.read_text().splitlines()[-1]) == {
        "timestamp": 2.0,
        "name": "ardea_spout_pending_tuples",
        "type": "gauge",
        "labels": {"topology": "words", "task": "1"},
        "value": 3,
    }


def test_a_full_disk_is_an_error_of_that_sink(workers):
    worker = SinkWorker("jsonlines", JsonLinesSink({"path": "/dev/full"}), wait=QUICKLY)
    workers.append(worker)
    worker.offer(Batch(1, [PENDING]))
    until(lambda: worker.statistics().errors >= 2, "writing failed and was tried again")
    worker.finish()
    until(lambda: worker.join(0.0), "it has ended")
    assert worker.statistics().written == 0


@pytest.mark.parametrize(
    ("sink", "config", "message"),
    [
        (GraphiteSink, {}, "metrics sink 'graphite': .*`host`"),
        (GraphiteSink, {"host": "x", "prot": 1}, "metrics sink 'graphite': .*`prot`"),
        (JsonLinesSink, {"path": "/x", "files": 0}, "metrics sink 'jsonlines': .*`\\$.files`"),
        (JsonLinesSink, {"path": "x"}, "'jsonlines': path 'x' is not absolute"),
        (JsonLinesSink, {"path": "{topology}/m"}, "'jsonlines': path '{topology}/m' is not absolute"),
        (GraphiteSink, {"host": "x", "port": 70000}, r"metrics sink 'graphite': .*`\$\.port`"),
        (GraphiteSink, {"host": "x", "port": 0}, r"metrics sink 'graphite': .*`\$\.port`"),
        (GraphiteSink, {"host": "x", "timeout": 0}, r"metrics sink 'graphite': .*`\$\.timeout`"),
        (GraphiteSink, {"host": "x", "timeout": 1e30}, r"metrics sink 'graphite': .*`\$\.timeout`"),
    ],
)
def test_a_wrong_key_is_named(sink, config, message):
    with pytest.raises(ConfigError, match=message):
        sink(config)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    """A package with one entry point, as pip would leave it."""
    info = folder / "their_sink-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-sink\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[ardea.metrics_sinks]\n{entry}\n")
    (folder / "their_sink.py").write_text(
        "WRITTEN = []\n"
        "class Theirs:\n"
        "    def __init__(self, config): self.tag = config['tag']\n"
        "    def open(self): pass\n"
        "    def write(self, timestamp, samples): WRITTEN.append((self.tag, timestamp))\n"
        "    def close(self): pass\n"
    )
    monkeypatch.syspath_prepend(str(folder))


def test_a_users_own_sink_is_found_by_its_entry_point_and_learns_whose_metrics_it_gets(workers, tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "theirs = their_sink:Theirs")
    workers.extend(load_sinks({"theirs": {"tag": "{topology}-{container}{x}"}}, {"topology": "t", "container": "3"}))
    workers[0].offer(Batch(1, []))
    until(lambda: workers[0].statistics().written == 1, "their sink wrote")
    import their_sink

    assert their_sink.WRITTEN == [("t-3{x}", 1)]


def test_an_unknown_sink_is_an_error_with_the_nearest_name(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "theirs = their_sink:Theirs")
    with pytest.raises(ConfigError, match=r"no metrics sink 'their'.*theirs") as caught:
        check_sinks({"theirs": {"tag": "x"}, "their": {}})
    assert caught.value.hint == "did you mean 'theirs'?"


def test_a_sink_that_cannot_be_imported_is_an_error_that_names_it(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "broken = their_sink:Missing")
    with pytest.raises(ConfigError, match=r"'broken' \(their_sink:Missing\) cannot be loaded.*AttributeError"):
        check_sinks({"broken": {}})


def test_whatever_a_sink_says_of_its_configuration_is_an_error_that_names_it(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "theirs = their_sink:Theirs")
    with pytest.raises(ConfigError, match=r"'theirs' does not take its configuration: KeyError\('tag'\)"):
        check_sinks({"theirs": {}})


def test_where_the_metrics_manager_runs_a_sink_that_is_missing_is_left_out(workers, tmp_path):
    workers.extend(load_sinks({"theirs": {}, "jsonlines": {"path": "{folder}/m"}}, {"folder": str(tmp_path)}))
    assert [worker.name for worker in workers] == ["jsonlines"]


def test_a_file_belongs_to_one_container(workers, tmp_path):
    """Two that rotate it would lose each other's lines."""
    first, second = (JsonLinesSink({"path": f"{tmp_path}/metrics.jsonl", "max_bytes": 10}) for _ in range(2))
    first.open()
    with pytest.raises(OSError, match="another process'"):
        second.open()
    second.close()
    for timestamp in range(2):
        first.write(timestamp, [PENDING])  # the second time to a new file
    with pytest.raises(OSError, match="another process'"):
        second.open()
    second.close()
    first.close()
    second.open()
    second.close()


def test_a_topology_with_an_unknown_sink_is_not_submitted(tmp_path):
    file = tmp_path / "silent.py"
    file.write_text(
        "from ardea import Topology\n"
        "from ardea.testing import CollectBolt, RowsSpout\n"
        "class Silent(Topology):\n"
        "    rows = RowsSpout.of(['n'], []).spec()\n"
        "    keep = CollectBolt.spec(inputs=[rows])\n"
    )
    with pytest.raises(ConfigError, match="no metrics sink 'grafite'"):
        Submission.of(str(file), {"heron.metricsmgr.sinks": {"grafite": {}}}, f"file://{tmp_path}/state")

"""What an instance's process measures, and hands to the metrics manager each time it is due."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.queues import BoundedQueue
from ardea.heron_instance.shell import Shell
from ardea.heron_instance.snapshots import TaskSnapshots
from ardea.heron_instance.watermarks import BoltTime, SpoutTime
from ardea.metrics import Registry, observe_process
from ardea.metrics.user import UserMetric
from ardea.protocol.flow import Window
from ardea.windows.bolt import WindowBolt
from ardea.windows.open_windows import WindowCounts


class Meters:
    """Of one process; ``held_bytes`` is how much output waits."""

    def __init__(self, shell: Shell, outbox: BoundedQueue[OutMessage], held_bytes: Callable[[], int]) -> None:
        self._shell = shell
        self._registry = registry = shell.registry
        self._out: BoundedQueue[bytes] = BoundedQueue("metrics_out", 8, 1 << 20)
        self._user_metrics: dict[str, UserMetric] = {}
        observe_process(registry)
        self._lag = registry.histogram("ardea_process_loop_lag_seconds")
        for queue in (shell.inbox, outbox, self._out):
            registry.gauge("ardea_queue_depth", partial(_depth, queue), queue=queue.name)
            registry.gauge("ardea_queue_bytes", partial(_bytes, queue), queue=queue.name)
            registry.gauge("ardea_queue_capacity", partial(_capacity, queue), queue=queue.name)
        registry.gauge("ardea_instance_held_bytes", held_bytes)
        if shell.snapshots is not None:
            _of_snapshots(registry, shell.snapshots, shell.window)

    def lagged(self, seconds: float) -> None:
        """The gateway's loop was late by so much."""
        self._lag.observe(seconds)

    def hand_over(self, malformed: int, send: Callable[[bytes], None]) -> None:
        """Sends a snapshot; so many messages were dropped ahead of the gateway."""
        self._count_emits()
        counter = self._registry.counter("ardea_process_malformed_messages_total")
        counter.value = malformed + self._shell.gateway.malformed + self._shell.instruments.malformed
        self._out.put(self._registry.snapshot())
        while (snapshot := self._out.take()) is not None:
            send(snapshot)

    def _count_emits(self) -> None:
        executor = self._shell.executor
        if executor is None:
            return
        self._of_user(dict(executor.env.context.metrics))
        if executor.reporter.time is not None:
            self._of_time(executor.reporter.time)
        if isinstance(executor.env.component, WindowBolt):
            self._of_windows(self._shell.instruments.windows)
        for name, buffer in executor.task_output.buffers.items():
            counter = self._registry.counter("ardea_instance_tuples_emitted_total", stream=name)
            counter.value = buffer.emitted

    def _of_user(self, metrics: dict[str, UserMetric]) -> None:
        """Those that the component has now: after a rollback another object of it, which need not have the same."""
        former, self._user_metrics = self._user_metrics, metrics
        for name, metric in former.items():
            if metrics.get(name) is not metric:
                self._registry.retire(name)
        for name, metric in metrics.items():
            if former.get(name) is not metric:
                self._registry.user_metric(name, metric)

    def _of_time(self, time: SpoutTime | BoltTime) -> None:
        registry = self._registry
        if math.isfinite(watermark := time.watermark):
            registry.gauge("ardea_watermark_lag_seconds").value = time.now() - watermark
        else:
            registry.remove_gauge("ardea_watermark_lag_seconds")
        if isinstance(time, SpoutTime):
            for fault in ("late", "ahead", "none"):
                counter = registry.counter("ardea_spout_stamps_total", fault=fault)
                counter.value = getattr(self._shell.instruments.stamps, fault)

    def _of_windows(self, counts: WindowCounts) -> None:
        registry = self._registry
        for firing in ("early", "on time", "late"):
            registry.counter("ardea_windows_fired_total", firing=firing).value = counts.fired[firing]
        registry.counter("ardea_windows_rows_refused_total", why="late").value = counts.late
        registry.counter("ardea_windows_rows_refused_total", why="unstamped").value = counts.unstamped


def _of_snapshots(registry: Registry, snapshots: TaskSnapshots, window: Window) -> None:
    figures = snapshots.figures
    for step in ("align", "freeze", "write", "restore"):
        registry.gauge("ardea_instance_snapshot_seconds", partial(getattr, figures, step), step=step)
    registry.gauge("ardea_instance_snapshot_aside_bytes", lambda: window.aside_bytes)
    registry.gauge("ardea_instance_state_bytes", lambda: snapshots.state_bytes)
    registry.counter("ardea_instance_state_restored_bytes_total", lambda: figures.restored)


def _depth(queue: BoundedQueue[Any]) -> int:
    return queue.statistics().depth


def _bytes(queue: BoundedQueue[Any]) -> int:
    return queue.statistics().bytes


def _capacity(queue: BoundedQueue[Any]) -> int:
    return queue.capacity_bytes

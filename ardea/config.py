"""Every configuration key, declared once: name, type, unit, default, sentence, scope and the attribute of its value."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from ardea.config_keys import Key
from ardea.config_keys import declared as _key
from ardea.plan.resource import GIB, MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The values of all keys, typed.  Durations are in seconds or, where the name says so, ms; sizes in bytes."""

    # What the topology is, and how many tasks it gets.
    name: str | None = _key("topology.name", "text", "topology", None, "The topology's name; unset: that of its class.")
    tasks: int | None = _key(
        "topology.tasks", "count", "both", None, "Tasks of a component; unset: as many as its parallelism."
    )
    max_task_parallelism: int | None = _key(
        "topology.max.task.parallelism", "count", "both", None, "No component gets more tasks than this."
    )
    debug: bool = _key(
        "topology.debug", "bool", "both", False, "Logs a sample of what each task emits, ten lines a second."
    )
    task_hooks: Sequence[str] = _key(
        "topology.auto.task.hooks", "texts", "topology", (), "Hooks that every task gets, each as module:Class."
    )
    pickle: bool = _key(
        "topology.serializer.pickle",
        "bool",
        "topology",
        False,
        "Sends values that msgpack has no form for as pickles: whoever reaches the ports can then run code.",
    )

    masters: int = _key(
        "heron.topology.master.replicas",
        "count",
        "topology",
        1,
        "Topology masters: one acts, the others stand by and take over when it is gone. Unset on Kubernetes: 2, or "
        "what the chart's topology.masterReplicas says.",
    )

    initial_status: Literal["ACTIVE", "INACTIVE"] = _key(
        "topology.initial.status",
        "status",
        "topology",
        "ACTIVE",
        "INACTIVE: nothing is initialised before `ardea activate`, as with `ardea submit --deploy-deactivated`.",
    )

    tracing_share: float = _key(
        "topology.tracing.share",
        "share",
        "topology",
        0.0,
        "Of so many of 1 tracked tuples spans go to OpenTelemetry (the extra tracing); docs/tracing.md.",
    )

    # Reliability.
    reliability_mode: Literal["ATLEAST_ONCE", "ATMOST_ONCE", "EFFECTIVELY_ONCE"] = _key(
        "topology.reliability.mode",
        "mode",
        "topology",
        "ATLEAST_ONCE",
        "ATLEAST_ONCE tracks tuples emitted with an id; ATMOST_ONCE acks them at the emit and tracks nothing; "
        "EFFECTIVELY_ONCE takes snapshots of state, and goes back to the last one (docs/snapshots.md).",
    )
    message_timeout: float = _key(
        "topology.message.timeout.secs",
        "seconds",
        "topology",
        30.0,
        "A tuple whose tree is not complete after this time fails.",
    )
    message_timeouts: bool = _key(
        "topology.enable.message.timeouts", "bool", "topology", True, "Whether trees time out at all."
    )
    ackers: int | None = _key(
        "topology.acker.executors",
        "integer",
        "topology",
        None,
        "0 acks every tuple as it is emitted; other numbers change nothing: ledgers grow with spouts' containers.",
    )
    max_tuple_replays: int | None = _key(
        "topology.max.tuple.replays",
        "integer",
        "both",
        None,
        "A row that failed more often than this goes to the spout's stream __dead_letter; unset: it is sent for ever.",
    )
    snapshot_interval: float = _key(
        "topology.stateful.checkpoint.interval.secs", "seconds", "topology", 10.0, "From a snapshot to the next."
    )
    snapshot_timeout: float = _key(
        "topology.stateful.checkpoint.timeout.secs", "seconds", "topology", 600.0, "A slower snapshot is abandoned."
    )
    snapshot_storage: str | None = _key(
        "topology.stateful.storage",
        "text",
        "topology",
        None,
        "Where snapshots are kept: an absolute path, or an address of pyarrow.fs such as s3://bucket/folder; "
        "unset: beside the state, where that is a folder.",
    )
    state_backend: str = _key(
        "topology.stateful.backend",
        "backend",
        "both",
        "memory",
        "Where a task keeps the keys of its state while it runs: memory; rocksdb, a database on its disk "
        "(the extra rocksdb); or a class, as package.module:Class.",
    )
    barrier_queue_ms: float = _key(
        "topology.stateful.queue.millis",
        "milliseconds",
        "topology",
        500.0,
        "How much work may wait for a task, and for a snapshot's barrier with it.",
    )
    max_rollbacks: int = _key(
        "topology.stateful.max.rollbacks.per.row",
        "count",
        "topology",
        3,
        "A row that raised or killed this often is skipped: it goes to the bolt's stream __dead_letter.",
    )
    key_groups: int = _key(
        "topology.key.groups", "count", "topology", 720, "Into which keys of state are divided in snapshots."
    )

    # Limits.
    max_spout_pending: int = _key(
        "topology.max.spout.pending",
        "count",
        "both",
        20_000,
        "A spout task with this many open trees is not asked for more; docs/benchmarks.md has the sweep behind 20000.",
    )
    max_batch_size: int = _key(
        "topology.spout.max.batch.size",
        "count",
        "both",
        1000,
        "Trident: how often an ordinary spout that serves as a source is asked for tuples of one batch.",
    )
    max_spout_pending_bytes: int = _key(
        "topology.max.spout.pending.bytes",
        "bytes",
        "both",
        64 * MIB,
        "A spout task whose open rows and rows to be sent again take this much is not asked for more.",
    )
    max_held_bytes: int = _key(
        "topology.max.held.bytes",
        "bytes",
        "both",
        32 * MIB,
        "A call that has emitted this much to slow readers waits for them inside the emit.",
    )
    max_tuple_bytes: int = _key(
        "topology.max.tuple.bytes", "bytes", "topology", 10 * MIB, "A larger tuple is given up when it is to be sent."
    )

    # The executor.
    tick: float | None = _key(
        "topology.tick.tuple.freq.secs", "seconds", "both", None, "How often a bolt's task gets a tick; unset: never."
    )
    spout_wait_ms: float = _key(
        "topology.spout.wait.ms",
        "milliseconds",
        "both",
        10.0,
        "The longest sleep of a spout that emitted nothing; after a silence of seconds up to ten times as long.",
    )
    batch_rows: int = _key(
        "topology.executor.batch.rows", "count", "both", 1000, "Rows of the largest batch that is processed at once."
    )
    slice_ms: float = _key(
        "topology.executor.slice.ms", "milliseconds", "both", 10.0, "What was emitted leaves at the latest after this."
    )
    drain: float = _key(
        "topology.deactivate.drain.secs",
        "delay",
        "topology",
        10.0,
        "How long a topology that is told to stop waits for its open trees.",
    )

    # Trident.
    batch_interval_ms: float = _key(
        "topology.trident.batch.emit.interval.millis",
        "milliseconds",
        "topology",
        500.0,
        "Between two batches at least; 0: as soon as topology.max.spout.pending allows.",
    )
    max_batch_failures: int | None = _key(
        "topology.trident.batch.max.failures",
        "count",
        "topology",
        None,
        "A batch that failed so often comes again without its tuples, which are lost; not where the spout itself "
        "cannot read it. Unset: it is tried for ever.",
    )
    drpc_timeout: float = _key(
        "topology.trident.drpc.request.timeout.secs",
        "seconds",
        "topology",
        600.0,
        "A request without an answer after this time fails with SERVER_TIMEOUT.",
    )
    drpc_queue: int = _key(
        "topology.trident.drpc.queue.size",
        "count",
        "topology",
        128,
        "A function with so many requests waiting refuses more.",
    )

    state_access: bool = _key(
        "topology.state.access",
        "bool",
        "both",
        False,
        "Whether tasks may use the state manager: on Kubernetes they get a credential of their own for it.",
    )

    # What a task needs, and packing.
    containers: int = _key(
        "topology.stmgrs", "count", "topology", 1, "The number of containers; topology.workers means the same."
    )
    cpu_map: Mapping[str, float] | None = _key(
        "topology.component.cpumap",
        "cores by component",
        "topology",
        None,
        "What one task of a component needs; wins over spec(cpu=), so that it can be set at submit.",
    )
    ram_map: Mapping[str, int] | None = _key(
        "topology.component.rammap", "bytes by component", "topology", None, "The same for memory."
    )
    disk_map: Mapping[str, int] | None = _key(
        "topology.component.diskmap", "bytes by component", "topology", None, "The same for disk."
    )
    instance_cpu: float = _key(
        "heron.resources.instance.cpu", "cores", "topology", 1.0, "What a task needs where nothing else says."
    )
    instance_ram: int = _key("heron.resources.instance.ram", "bytes", "topology", 512 * MIB, "The same for memory.")
    instance_disk: int = _key("heron.resources.instance.disk", "bytes", "topology", GIB, "The same for disk.")
    packing: str = _key(
        "heron.class.packing.algorithm",
        "text",
        "topology",
        "RoundRobin",
        "How tasks are put into containers: RoundRobin, ResourceCompliantRR, FirstFitDecreasing, Even.",
    )
    sorting: Literal["RAM_FIRST", "CPU_FIRST"] = _key(
        "topology.packing.ffd.sorting.strategy",
        "sorting",
        "topology",
        "RAM_FIRST",
        "What first fit decreasing sorts tasks by.",
    )
    max_instances: int | None = _key(
        "topology.container.max.instances", "count", "topology", None, "A container holds at most so many tasks."
    )
    max_cpu: float | None = _key(
        "topology.container.max.cpu.hint", "cores", "topology", None, "A container asks for at most so many cores."
    )
    max_ram: int | None = _key(
        "topology.container.max.ram.hint", "bytes", "topology", None, "A container asks for at most so much memory."
    )
    max_disk: int | None = _key(
        "topology.container.max.disk.hint", "bytes", "topology", None, "A container asks for at most so much disk."
    )
    padding_percentage: float = _key(
        "topology.container.padding.percentage",
        "percent",
        "topology",
        0.0,
        "What a container asks for beyond its tasks' needs, where that is more than the paddings below.",
    )
    cpu_padding: float = _key(
        "topology.container.cpu.padding", "padding", "topology", 1.0, "Cores for a container's managers."
    )
    ram_padding: int = _key(
        "topology.container.ram.padding", "bytes", "topology", 0, "Memory beyond the tasks' and the managers'."
    )
    disk_padding: int = _key(
        "topology.container.disk.padding", "bytes", "topology", GIB, "Disk beyond the tasks', for logs."
    )
    stmgr_ram: int = _key("topology.stmgr.ram", "bytes", "topology", 256 * MIB, "Memory of a stream manager.")
    metricsmgr_ram: int = _key(
        "topology.metricsmgr.ram", "bytes", "topology", 128 * MIB, "Memory of a metrics manager."
    )
    master_cpu: float = _key(
        "topology.master.cpu", "cores", "topology", 0.1, "Cores that a topology master asks for, on Kubernetes."
    )
    master_ram: int = _key(
        "topology.master.ram", "bytes", "topology", 256 * MIB, "Memory of a topology master, on Kubernetes."
    )

    # Kubernetes.
    kubernetes_labels: Mapping[str, str] | None = _key(
        "heron.kubernetes.labels", "texts by name", "both", None, "More labels of pods; a component's: of pods with it."
    )
    kubernetes_annotations: Mapping[str, str] | None = _key(
        "heron.kubernetes.annotations", "texts by name", "both", None, "The same for annotations."
    )
    kubernetes_env: Mapping[str, str] | None = _key(
        "heron.kubernetes.env", "texts by name", "both", None, "More environment variables of instances."
    )
    kubernetes_env_from: Sequence[str] = _key(
        "heron.kubernetes.env.from", "texts", "both", (), "The same from secret/NAME or configmap/NAME."
    )
    kubernetes_volumes: Sequence[Mapping[str, Any]] = _key(
        "heron.kubernetes.volumes", "objects", "both", (), "Volumes of Kubernetes, each with its name and mountPath."
    )
    kubernetes_pod_spec: Mapping[str, Any] | None = _key(
        "heron.kubernetes.pod.spec", "object", "both", None, "A part of a PodSpec, merged into that of each pod."
    )
    kubernetes_nodes_grow: bool = _key(
        "heron.kubernetes.nodes.grow", "bool", "topology", False, "Whether to submit what no nodes have room for."
    )
    kubernetes_cpu_limits: bool = _key(
        "heron.kubernetes.cpu.limits", "bool", "topology", False, "Whether a task gets no more CPU than it asks for."
    )
    kubernetes_grace: float = _key(
        "heron.kubernetes.grace.secs", "seconds", "topology", 30.0, "What a pod that is deleted has to end."
    )
    kubernetes_ttl: float | None = _key(
        "heron.kubernetes.ttl.secs",
        "seconds or never",
        "topology",
        604_800.0,
        "How long an ended topology stays, with its pods and Secrets; never: until it is killed.",
    )

    # The installation.
    slots: int | Sequence[int] = _key(
        "supervisor.slots.ports", "slots", "system", 4, "Containers that the Even algorithm puts on one node."
    )
    curve: bool = _key(
        "heron.streammgr.curve",
        "bool",
        "topology",
        True,
        "Encrypts connections between machines, and lets only those connect who have one of the topology's keys.",
    )
    drain_frequency_ms: float = _key(
        "heron.streammgr.cache.drain.frequency.ms",
        "milliseconds",
        "system",
        10.0,
        "No tuple waits longer than this to be sent together with others.",
    )
    drain_size: int = _key(
        "heron.streammgr.cache.drain.size.bytes", "bytes", "system", MIB, "Nor is more than this sent together."
    )
    high_watermark_mb: int = _key(
        "heron.streammgr.network.backpressure.highwatermark.mb",
        "megabytes",
        "system",
        100,
        "When so much waits for a task, the spouts that can reach it pause.",
    )
    low_watermark_mb: int = _key(
        "heron.streammgr.network.backpressure.lowwatermark.mb",
        "megabytes",
        "system",
        50,
        "They go on when no more than this waits.",
    )
    queue_bytes: int = _key(
        "heron.instance.internal.queue.bytes",
        "bytes",
        "system",
        8 * MIB,
        "The largest that each queue between the two threads of an instance grows.",
    )
    metrics_interval: float = _key(
        "heron.metrics.export.interval.sec", "seconds", "system", 1.0, "How often metrics are collected."
    )
    metrics_port: int = _key(
        "heron.metricsmgr.port", "integer", "system", 0, "Where /metrics is served; 0: a free port for each container."
    )
    metrics_sinks: Mapping[str, Mapping[str, Any]] | None = _key(
        "heron.metricsmgr.sinks",
        "objects by name",
        "system",
        None,
        "Further receivers of metrics, each with its configuration; docs/metrics.md lists them.",
    )
    log_size_mb: int = _key(
        "heron.logging.maximum.size.mb", "megabytes", "system", 100, "A log file that reaches this size is rotated."
    )
    log_files: int = _key(
        "heron.logging.maximum.files", "count", "system", 5, "How many log files of a process are kept."
    )
    log_format: Literal["text", "json"] = _key(
        "heron.logging.format", "format", "system", "text", "How processes log: as text, or as json, an object a line."
    )

    @property
    def remembers(self) -> bool:
        """Whether snapshots are taken, and rolled back to."""
        return self.reliability_mode == "EFFECTIVELY_ONCE"

    @property
    def tree_timeout(self) -> float:
        """Seconds after which a tree times out; infinity: never."""
        return self.message_timeout if self.message_timeouts else math.inf

    @property
    def horizon(self) -> float:
        """Seconds of its work that may wait for a task, and a barrier with it: nothing else bounds what is queued."""
        return self.barrier_queue_ms / 1000 if self.remembers else self.message_timeout / 6

    @property
    def emptying_secs(self) -> float:
        """Of the grace of a pod on Kubernetes, those in which it is emptied; its processes end in the others."""
        return max(1.0, self.kubernetes_grace - 10.0)

    @classmethod
    def of(cls, *layers: Mapping[str, Any]) -> Self:
        """The settings that validated configurations give; later layers win, what none sets has its default."""
        merged = merge(*layers)
        return cls(**{attribute: merged[key.name] for attribute, key in _BY_ATTRIBUTE.items()})


_BY_ATTRIBUTE: dict[str, Key] = {field.name: field.metadata["key"] for field in dataclasses.fields(Settings)}
KEYS: dict[str, Key] = {key.name: key for key in _BY_ATTRIBUTE.values()}


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """What user code sees as its configuration: every key's default, and what the layers set, later ones winning."""
    merged = {name: key.default for name, key in KEYS.items()}
    for layer in layers:
        merged.update(layer)
    return merged

"""CPU, memory, threads, descriptors and garbage collections of the process that asks."""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
from functools import partial
from pathlib import Path

from ardea.metrics.registry import Registry

_LINUX = sys.platform == "linux"
_PAGE = os.sysconf("SC_PAGE_SIZE")


def observe_process(registry: Registry) -> None:
    """Adds the ``ardea_process_*`` series, read at each snapshot; every process calls it once."""
    registry.counter("ardea_process_cpu_seconds_total", cpu_seconds)
    registry.gauge("ardea_process_resident_memory_bytes", resident_memory_bytes)
    registry.gauge("ardea_process_threads", _threads)
    registry.gauge("ardea_process_open_fds", _open_fds)
    for generation in range(3):
        registry.counter("ardea_process_gc_collections_total", partial(_collections, generation), generation=generation)


def cpu_seconds() -> float:
    """User and system time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_memory_bytes() -> int:
    """Resident memory; macOS tells only its peak."""
    if _LINUX:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _threads() -> int:
    if _LINUX:
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    return threading.active_count()


def _open_fds() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir()) - 1  # the listing itself holds one


def _collections(generation: int) -> int:
    return int(gc.get_stats()[generation]["collections"])

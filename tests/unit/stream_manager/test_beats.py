"""A stream manager tells its supervisor each second that it works, however seldom its metrics are collected."""

from __future__ import annotations

import itertools
import secrets
from types import SimpleNamespace

import pytest

from ardea import Topology, parent_link
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.scheduler.packing import packing_for
from ardea.state import open_state
from ardea.stream_manager import process
from ardea.stream_manager.container_setup import ContainerSetup
from ardea.testing import CollectBolt, RowsSpout
from ardea.transport import ipc_address


class Pair(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    keep = CollectBolt.spec(inputs=[rows])


@pytest.mark.parametrize(("interval", "told"), [(0.25, 240), (1.0, 60), (60.0, 1)])
def test_beats_keep_to_the_second(tmp_path, monkeypatch, interval, told):
    now, beats, snapshots = 100.0, [], []
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(parent_link, "beat", lambda **_: beats.append(now))
    monkeypatch.setattr(process, "frames_of", lambda snapshot, **_: snapshots.append(now) or [snapshot])
    logical = Pair.plan({"heron.metrics.export.interval.sec": interval})
    packing = packing_to_bytes(packing_for(logical.config).pack(logical))
    state = f"file://{tmp_path}/state"
    open_state(state).close()
    definition = Definition(
        topology="pair-1", state=state, location="p", config={}, shape=shape_of(logical), packing=packing
    )
    addresses = [ipc_address(tmp_path, f"{secrets.token_hex(4)}-{name}") for name in ("control", "data", "metrics")]
    manager = process.StreamManagerProcess(definition, ContainerSetup(1, tmp_path, *addresses, "127.0.0.1"))
    monkeypatch.setattr(manager.sockets.poller, "wait", lambda *_: ())
    due = now
    while now < 160.0:
        due = manager.turn(due)
        now = max(now + 0.01, due)
    manager.close()
    assert 58 <= len(beats) <= 62
    assert max(later - earlier for earlier, later in itertools.pairwise(beats)) < 1.1
    assert len(snapshots) == pytest.approx(told, abs=max(1, told // 20))

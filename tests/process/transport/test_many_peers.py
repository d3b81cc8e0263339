"""A stream manager among six hundred: its sockets open, and every word arrives.

ZeroMQ's own limit, 1,023 sockets, is reached at 511.
"""

from __future__ import annotations

import time
from pathlib import Path

from ardea.plan.open_files import A_PEER
from ardea.supervision import kernel
from ardea.transport import MANY_SOCKETS, Bound, Dialled, context

PEERS = 600


def test_a_process_dials_six_hundred_others_twice():
    kernel.allow_files()
    ctx = context(MANY_SOCKETS)
    lanes, dialled = [Bound(ctx), Bound(ctx)], []
    ports = [lane.bind("tcp://127.0.0.1:0") for lane in lanes]
    before = files()
    try:
        for peer in range(PEERS):
            for port in ports:
                out = Dialled(ctx, b"m%d-0" % peer, f"tcp://127.0.0.1:{port}")
                dialled.append(out)
                assert out.send([b"%d" % peer])
        came = [set(), set()]
        deadline = time.monotonic() + 30.0
        while not all(len(heard) == PEERS for heard in came) and time.monotonic() < deadline:
            for lane, heard in zip(lanes, came, strict=True):
                heard.update(int(frames[0]) for _, frames in lane.receive(PEERS))
        assert came == [set(range(PEERS))] * 2
        # Here both ends are in one process: what a manager has of each peer is in it once.
        assert files() - before <= A_PEER * PEERS
    finally:
        for each in (*lanes, *dialled):
            each.close()
        ctx.destroy(linger=0)


def files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))

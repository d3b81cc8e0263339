"""What waits in a socket for a peer that is away: so much at most of what is said again and again."""

from __future__ import annotations

import itertools
import secrets
import socket
from types import SimpleNamespace

import pytest

from ardea.heron_instance.wires import Addresses, Wires
from ardea.metrics_manager.summaries import Summaries
from ardea.plan.names import MASTER_CONTAINER
from ardea.protocol.lane import Lane
from ardea.protocol.wire_pb2 import Address, Plan
from ardea.stream_manager import sockets as manager_sockets
from ardea.stream_manager.container_setup import ContainerSetup
from ardea.stream_manager.sockets import MOST_TO_MANAGER, MOST_TO_MASTER, ToMaster
from ardea.topology_master import sockets as master_sockets
from ardea.transport import FEW, Bound, Dialled, Poller, ipc_address

TIMES = 5_000
HERE = "127.0.0.1"


@pytest.fixture
def address(tmp_path):
    """Where nobody listens yet."""
    return ipc_address(tmp_path, secrets.token_hex(8))


@pytest.fixture
def heard(ctx, deadline):
    """What arrives where somebody begins to listen while ``say`` speaks on, each by its last frame, up to ``end``."""
    made = []

    def listens(address, say, end):
        made.append(Bound(ctx))
        made[-1].bind(address)
        arrived = []

        def ended():
            say()
            arrived.extend(frames[-1] for _, frames in made[-1].receive(TIMES))
            return end in arrived

        deadline(ended, f"{end} has arrived")
        return arrived

    yield listens
    for bound in made:
        bound.close()


def test_no_more_waits_than_the_socket_may_take(ctx, address, heard):
    dialled = Dialled(ctx, b"t1", address, most=FEW)
    sent = [dialled.send([b"", bytes(1000), b"%d" % number]) for number in range(TIMES)]
    assert sent == [True] * FEW + [False] * (TIMES - FEW)
    assert (dialled.statistics.sent, dialled.statistics.unroutable) == (FEW, TIMES - FEW)
    arrived = heard(address, lambda: dialled.send([b"end"]), b"end")
    assert arrived[:FEW] == [b"%d" % number for number in range(FEW)]
    assert set(arrived[FEW:]) == {b"end"}
    dialled.close(0)


def test_without_a_bound_all_wait(ctx, address):
    """What has a number is bounded by credit, and by what may be unconfirmed."""
    dialled = Dialled(ctx, b"t1", address)
    assert all(dialled.send([b"", bytes(100)]) for _ in range(TIMES))
    dialled.close(0)


def of_an_instance(folder, address):
    control, data = (ipc_address(folder, secrets.token_hex(8)) for _ in range(2))
    wires = Wires(1, Addresses(control, data, address))
    return lambda snapshot: wires.send_metrics(snapshot, last=False), wires.close


def of_a_stream_manager(folder, address):
    control, data = (ipc_address(folder, secrets.token_hex(8)) for _ in range(2))
    sockets = manager_sockets.Sockets(ContainerSetup(1, folder, control, data, address, HERE), {}, {})
    metrics = sockets.dial_metrics(address)

    def close():
        metrics.close()
        sockets.close()
        sockets.destroy()

    return lambda snapshot: metrics.send([snapshot]), close


def of_a_master(_folder, address):
    sockets = master_sockets.Sockets(HERE, address, {}, None)
    return sockets.tell_metrics, sockets.close


@pytest.mark.parametrize("process", [of_an_instance, of_a_stream_manager, of_a_master])
def test_few_snapshots_wait_for_a_metrics_manager_that_is_away(tmp_path, address, heard, process):
    """It may never come: its port can be taken, and each process would grow by a snapshot a second."""
    tell, close = process(tmp_path, address)
    for number in range(TIMES):
        tell(b"%d" % number)
    arrived = heard(address, lambda: tell(b"now"), b"now")
    assert len([snapshot for snapshot in arrived if snapshot != b"now"]) == FEW
    close()


def test_few_summaries_wait_for_a_master_that_is_cut_off(ctx, heard):
    numbers = itertools.count()
    with socket.socket() as held:  # nobody else gets the port, and nobody listens there
        held.bind((HERE, 0))
        port = held.getsockname()[1]
        metrics = SimpleNamespace(summary=lambda *_: b"%d" % next(numbers))
        watch = SimpleNamespace(master=SimpleNamespace(host=HERE, port=port), final=True)
        summaries = Summaries(metrics, None, watch, "t", MASTER_CONTAINER, ctx, None)
        for _ in range(TIMES):
            summaries.tell_master()
    metrics.summary = lambda *_: b"now"
    arrived = heard(f"tcp://{HERE}:{port}", summaries.tell_master, b"now")
    assert len([summary for summary in arrived if summary != b"now"]) == FEW
    summaries.close()


def test_hellos_wait_for_a_master_that_is_cut_off_but_not_without_end(ctx, address):
    poller = Poller()
    link = ToMaster(ctx, poller, b"m1", None, address)
    said = sum(link.send([b"hello"]) for _ in range(TIMES))
    assert said == MOST_TO_MASTER
    link.close(0)
    poller.close()


def test_hellos_wait_for_another_manager_that_is_away_but_not_without_end(manager, heard):
    sockets, link = manager({}), SimpleNamespace(key=2)
    with socket.socket() as held:
        held.bind((HERE, 0))
        port = held.getsockname()[1]
        sockets.reach(Plan(addresses=[Address(container=2, host=HERE, data_port=1, control_port=port)]))
        for _ in range(MOST_TO_MANAGER + TIMES):
            sockets.to_manager(link, Lane.CONTROL, [b"hello"])
    arrived = heard(f"tcp://{HERE}:{port}", lambda: sockets.to_manager(link, Lane.CONTROL, [b"now"]), b"now")
    assert len([said for said in arrived if said == b"hello"]) == MOST_TO_MANAGER

"""A real master under attack: what anybody sends to its port, and a stop; data flows on."""

from __future__ import annotations

import contextlib
import random
import signal
import socket

import msgspec
import pytest
import zmq

from ardea.metrics import Summary, TaskSummary
from ardea.plan.definition import Definition
from ardea.protocol.wire_pb2 import (
    ANSWER,
    ASK,
    HEARTBEAT,
    HELLO,
    ORDER,
    REGISTER,
    REPORT,
    SUMMARY,
    Answer,
    Ask,
    Header,
    Hello,
)
from ardea.scheduler.control import MasterClient
from ardea.scheduler.keys import keys_of
from ardea.state import open_state, paths, records
from ardea.state.records import MasterLocation
from ardea.transport import Dialled, Keyring, Poller, context, holder
from ardea.versions import PROTOCOL
from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster

STRANGERS = (b"m1", b"m2", b"m99", b"x1", b"m", b"\xff\xfe", b"t0")
NOT_UTF8 = msgspec.msgpack.encode(Summary(1, 1, (TaskSummary("heron_instance", "words", 1, 1, {}, {}, {}),))).replace(
    b"words", b"word\xff"
)
KINDS = (ASK, SUMMARY, HELLO, REGISTER, REPORT, HEARTBEAT, ORDER, 12345)


def location(topology) -> MasterLocation:
    with contextlib.closing(open_state(topology.run.submission.definition.state)) as state:
        path = paths.master(topology.run.topology)
        return records.decode(state.get(path).data, MasterLocation, path)


def callers(topology) -> Keyring:
    keys = Keyring.read(keys_of(topology.folder), Definition.read(topology.folder / "definition").keys)
    assert keys is not None
    return keys


def raw(port: int, noise: random.Random) -> None:
    """Bytes that are not ZeroMQ's, then ZeroMQ messages whose frames are noise."""
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", port)) as connection, contextlib.suppress(OSError):
            connection.sendall(noise.randbytes(noise.randrange(1, 5000)))
    ctx = zmq.Context()
    try:
        for name in STRANGERS:
            with ctx.socket(zmq.DEALER) as dealer:
                dealer.setsockopt(zmq.IDENTITY, name)
                dealer.setsockopt(zmq.LINGER, 1000)
                dealer.connect(f"tcp://127.0.0.1:{port}")
                for _ in range(50):
                    frames = [noise.randbytes(noise.randrange(40)) for _ in range(noise.randrange(1, 5))]
                    with contextlib.suppress(zmq.Again):  # it has been refused: a send would wait for ever
                        dealer.send_multipart(frames, zmq.DONTWAIT)
    finally:
        ctx.destroy(linger=1000)


def framed(port: int, noise: random.Random, keys: Keyring) -> None:
    """Messages that are framed well, with headers and bodies that are not, from somebody who has a key."""
    ctx = context()
    for name in STRANGERS:
        dialled = Dialled(ctx, name, f"tcp://127.0.0.1:{port}", keys, holder(0))
        for kind in KINDS:
            header = Header(kind=kind, sender=noise.choice([0, 1, 1 << 63]), sequence=noise.choice([0, 1, 99]))
            head = header.SerializeToString()
            for frames in (
                [noise.randbytes(9)], [head], [head, noise.randbytes(50)], [head, NOT_UTF8], [head, b"\xff"] * 3,
            ):  # fmt: skip
                dialled.send(frames)
        wrong = Hello(
            protocol=PROTOCOL, topology="another", digest="no", container=1, holder="nobody"
        ).SerializeToString()
        dialled.send([Header(kind=HELLO, sender=1).SerializeToString(), wrong])
        dialled.close()
    ctx.destroy(linger=1000)


def asked(port: int, keys: Keyring, *asks: Ask) -> list[str]:
    """The codes of the answers."""
    ctx, poller, codes = context(), Poller(), []
    dialled = Dialled(ctx, b"c1", f"tcp://127.0.0.1:{port}", keys, holder(0))
    poller.watch(dialled)
    for ask in asks:
        dialled.send([Header(kind=ASK).SerializeToString(), ask.SerializeToString()])
    for _ in range(100):
        poller.wait(0.1)
        for head, body in dialled.receive(16):
            assert Header.FromString(head).kind == ANSWER
            codes.append(Answer.FromString(body).code)
        if len(codes) == len(asks):
            break
    dialled.close()
    poller.close()
    ctx.destroy(linger=0)
    return codes


def test_what_anybody_sends_to_its_port_changes_nothing(tmp_path):
    with Running("survivors.py", tmp_path) as topology:
        topology.running()
        pid, place, noise = topology.pid("topology-master"), location(topology), random.Random(7)
        raw(place.port, noise)
        keys = callers(topology)
        framed(place.port, noise, keys)
        token = (topology.folder / "token").read_text()
        codes = asked(
            place.port,
            keys,
            Ask(verb="fail", token="guessed", arguments={"reason": "attacked"}),
            Ask(verb="fail", arguments={"reason": "attacked"}),
            Ask(verb="fly", token=token),
            Ask(verb="fail", token=token),
            Ask(verb="update", token=token),  # of a caller that names no protocol
            *(Ask(verb="drain", token=token, arguments={"wait": wait}) for wait in ("soon", "nan", "-1", "inf")),
        )
        assert codes == ["NOT_ALLOWED"] * 2 + ["UNKNOWN_VERB", "BAD_ARGUMENT", "OTHER_VERSION"] + ["BAD_ARGUMENT"] * 4
        topology.grows("acked", "numbers-0", 1000)
        assert topology.pid("topology-master") == pid
        assert topology.run.status.state == "RUNNING"
        with contextlib.closing(open_state(topology.run.submission.definition.state)) as state:
            client = MasterClient(state, topology.run.topology, topology.folder)
            with client:  # the managers that were impersonated take orders again
                client.ask("deactivate")
                topology.until(lambda: topology.run.status.state == "PAUSED", "it is deactivated")
                client.ask("activate")
        topology.grows("acked", "numbers-0", 1000)
        assert "dropped messages that cannot be read" in topology.log("topology-master")


def test_data_flows_on_while_the_master_is_stopped(tmp_path):
    """Its supervisor replaces it; meanwhile nobody needs it."""
    with Running("survivors.py", tmp_path) as topology:
        topology.running()
        topology.grows("acked", "numbers-0", 1000)
        life, acked = topology.kill("topology-master", signal.SIGSTOP), acked_by(topology)
        topology.until(lambda: acked_by(topology) > acked + 1000, "trees complete without a master")
        assert topology.processes()["topology-master"]["life"] == life
        topology.returned("topology-master", life)
        assert "it is stopped" in topology.ends("topology-master", 0)[-1].reason
        topology.grows("acked", "numbers-0", 1000)


def acked_by(topology) -> float:
    """What the spouts' own counters say, without the master."""
    return sum(sum(topology.metrics(c, "ardea_instance_tuples_acked_total").values()) for c in (1, 2))

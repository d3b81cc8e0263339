"""Messages as ZeroMQ frames: equal behind the wire, and nothing foreign gets through."""

import pytest
import zmq
from hypothesis import example, given
from hypothesis import strategies as st

from ardea.protocol.checked import MalformedError
from ardea.transport import Bound, Dialled, context, ipc_address
from ardea.transport.framing import MOST_FRAMES, pack, unpack

messages = st.lists(st.binary(max_size=40), max_size=6)


def rest_of(parts):
    left = list(parts)
    return lambda: left.pop(0) if left else None


@given(messages, st.integers(0, 100))
@example([], 10)
@example([b""], 0)
@example([b"", b""], 10)
def test_what_was_packed_is_unpacked(frames, copied_below):
    """In one frame below the limit, in frames of their own from there on."""
    first, *parts = pack(frames, copied_below)
    assert bool(parts) == (0 < sum(map(len, frames)) >= copied_below)
    assert unpack(first, rest_of(parts)) == frames


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=4))
def test_anything_else_is_malformed_or_means_the_same(parts):
    """Whatever bytes come: frames that pack to the same message, or MalformedError."""
    left = rest_of(parts[1:])
    try:
        frames = unpack(parts[0], left)
    except MalformedError:
        return
    assert left() is None
    assert b"".join(pack(frames, 1 << 20)) == b"".join(parts)


@pytest.mark.parametrize(
    "parts",
    [
        [b""],
        [b"\x01\0\0"],
        [(MOST_FRAMES + 1).to_bytes(4, "little") * 80],
        [b"\xff\xff\xff\xff"],
        [*pack([b"abc"], 10), b"more"],
        [pack([b"abc"], 10)[0] + b"x"],
        pack([b"abc", b"d"], 0)[:2],
        [pack([b"abc"], 0)[0], b"abcd"],
    ],
)
def test_malformed(parts):
    """Too short, too many, too long, too much."""
    with pytest.raises(MalformedError):
        unpack(parts[0], rest_of(parts[1:]))


def test_a_bound_socket_drops_foreign_messages_and_goes_on(tmp_path):
    """Counted; what the same peer sends behind them arrives whole."""
    ctx = context()
    address = ipc_address(tmp_path, f"framing-{tmp_path.name}")
    bound = Bound(ctx)
    bound.bind(address)
    dialled = Dialled(ctx, b"t1", address)
    raw = dialled.pollable
    for parts in ([b"garbage"], [b"", b"x"], [b"\xff" * 300, b"y", b"z"]):
        raw.send_multipart(parts)
    large = [b"h", bytes(300_000)]
    for frames in ([b"small", b""], large):
        dialled.send(frames)
    received = []
    while len(received) < 2:
        assert bound.pollable.poll(5000, zmq.POLLIN), "nothing arrived"
        received += bound.receive(8)
    assert received == [(b"t1", [b"small", b""]), (b"t1", large)]
    assert bound.statistics.malformed == 3
    dialled.close()
    bound.close()
    ctx.destroy(linger=0)

"""The thread that waits for others calls all that it is given, whatever that raises."""

from __future__ import annotations

import asyncio
import queue

import pytest

from ardea.heron_instance.worker import Worker


class PanicError(BaseException):
    """As a library in Rust raises one."""


@pytest.mark.parametrize(
    ("raised", "heard"),
    [
        (ConnectionError("refused"), "ConnectionError('refused')"),
        (asyncio.CancelledError("inside a client"), "RuntimeError('CancelledError: inside a client')"),
        (SystemExit(3), "RuntimeError('SystemExit: 3')"),
        (PanicError("index out of bounds"), "RuntimeError('PanicError: index out of bounds')"),
    ],
)
def test_whatever_is_raised_is_said_and_the_next_is_called(raised, heard):
    def raises():
        raise raised

    worker, done = Worker("outside"), queue.SimpleQueue()
    worker.call(raises, done.put)
    assert repr(done.get(timeout=5)) == heard
    worker.call(lambda: None, done.put)
    assert done.get(timeout=5) is None

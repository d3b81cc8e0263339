"""What a supervised process says while no I/O loop of its own runs."""

from __future__ import annotations

import os

import pytest

from ardea import parent_link


@pytest.fixture
def beats(monkeypatch):
    reading, writing = os.pipe()
    monkeypatch.setattr(parent_link, "_beat_fd", writing)
    yield reading
    os.close(reading)
    os.close(writing)


@pytest.mark.timeout(30)
def test_a_call_of_user_code_beats_as_long_as_it_lasts(beats):
    """An import that waits for something says all the time that it is one call, and nothing once it is over."""
    with parent_link.beating(in_user_code=True, every=0.001):
        said = b""
        while len(said) < 4:
            said += os.read(beats, 4 - len(said))
    assert said == b"uccc"
    os.set_blocking(beats, False)
    while True:
        try:
            os.read(beats, 4096)
        except BlockingIOError:
            break
    with pytest.raises(ZeroDivisionError), parent_link.beating(in_user_code=True, every=60.0):
        _ = 1 / 0
    assert os.read(beats, 10) == b"u"

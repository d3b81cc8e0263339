"""What a supervised process says while no I/O loop of its own runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ardea import parent_link


@pytest.fixture
def beats(monkeypatch):
    reading, writing = os.pipe()
    monkeypatch.setattr(parent_link, "_beat_fd", writing)
    yield reading
    os.close(reading)
    os.close(writing)


WAITS = """
import sys, threading, concurrent.futures
from ardea import parent_link
parent_link.LEAVES_WITHIN = 0.1
parent_link.attach()
print("said", end="")
concurrent.futures.ThreadPoolExecutor(1, "pool").submit(threading.Event().wait)
threading.Thread(target=threading.Event().wait, name="poll").start()
sys.exit(parent_link.ended(75))
"""


@pytest.mark.timeout(30)
def test_a_process_that_has_ended_waits_for_no_thread():
    """Of a pool, which Python joins at the exit, or one that is no daemon."""
    parent, ours = os.pipe()
    beats = os.pipe()
    env = {**os.environ, "ARDEA_PARENT_LINK": f"{parent},{beats[1]},{parent}"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", WAITS], env=env, pass_fds=(parent, beats[1]), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (75, "said")
    assert "waits for none of its threads: " in done.stderr
    assert "poll, pool_0" in done.stderr
    for descriptor in (parent, ours, *beats):
        os.close(descriptor)


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

"""Threads that are the first to decode a document, all at once."""

from __future__ import annotations

import subprocess
import sys

FIRST = """
import sys, threading
import msgspec
from ardea.console import decoding
from ardea.scheduler.control import Status

body = msgspec.json.encode(Status("t", "RUNNING", "", 1, 1, [], [], 0, [], None, {}, {}, []))
decoding.prepare()
sys.setswitchinterval(1e-6)
ready = threading.Barrier(8)

def decode():
    ready.wait(20)
    for _ in range(20):
        msgspec.json.decode(body, type=Status)

threads = [threading.Thread(target=decode) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_they_do_not_take_the_process_down():
    assert subprocess.run([sys.executable, "-P", "-c", FIRST], timeout=60, check=False).returncode == 0

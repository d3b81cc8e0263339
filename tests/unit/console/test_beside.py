"""The console beside a run: reached by its link, and gone with whoever has started it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.process.waiting import alive, eventually

RUN = """
import os, sys
from ardea.console.beside import Beside
from ardea.scheduler.registry import Place
with Beside(Place("local", {"state": sys.argv[1]})) as beside:
    print(beside.link("Word Count"), beside._process.pid, flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), 9)
"""


def test_it_answers_whoever_has_the_link_and_ends_with_a_run_that_was_killed(tmp_path):
    command = [sys.executable, "-P", "-c", RUN, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        link, pid = run.stdout.readline().split()
        parts, fragment = urlsplit(link), parse_qs(urlsplit(link).fragment)
        assert (parts.hostname, fragment["topology"]) == ("127.0.0.1", ["Word Count"])
        headers = {"Authorization": f"Bearer {fragment['token'][0]}"}
        ask = urllib.request.Request(f"http://{parts.netloc}/api/v1/topologies", headers=headers)
        with urllib.request.urlopen(ask, timeout=30) as answer:
            assert json.load(answer)["topologies"] == []
        run.communicate("\n", timeout=60)
    assert run.returncode == -signal.SIGKILL
    eventually(lambda: not alive(int(pid)), 30, "its process is gone")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((parts.hostname, parts.port), 5).close()

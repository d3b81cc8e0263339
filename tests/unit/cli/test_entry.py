"""The command itself, as a process: how it begins, and what becomes of it when it is told to stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

SLOW = """
import os, signal, sys
from ardea.cli.__main__ import main
class Loading:
    def find_spec(self, name, *_):
        if name == "{at}":
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Loading())
sys.argv[1:] = {arguments}
main()
"""


def command(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, preexec_fn=unignored
    )


def unignored() -> None:
    """Whoever runs the tests in the background, or by nohup, ignores some, and its children inherit that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def ardea(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 60, "check": False}
    return subprocess.run([sys.executable, "-P", "-m", "ardea.cli", *args], **{**streams, **options})


@pytest.fixture
def refuses(tmp_path: Path) -> Iterator[TextIO]:
    """A file that takes no byte, as a full disk does not."""
    with (tmp_path / "empty").open("x"), (tmp_path / "empty").open() as file:
        yield file


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_its_verbs_are_loaded_ends_it_silently(number):
    run = command(SLOW.format(at="typer", number=int(number), arguments=["version"]))
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_inside_a_verb_ends_it_silently(tmp_path: Path, number):
    file = tmp_path / "topology_of_signals.py"
    file.write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n")
    run = command(SLOW.format(at="", number=0, arguments=["run", "--dry-run", os.fspath(file)]))
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


def test_until_then_it_loads_the_standard_library_only():
    code = "import sys; before = set(sys.modules); import ardea.cli.__main__; print(*set(sys.modules) - before)"
    loaded = {name.partition(".")[0] for name in command(code).stdout.split()}
    assert loaded - sys.stdlib_module_names == {"ardea"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["version", "-o", "json"], ["config"]])
def test_a_stdout_that_cannot_be_written_is_named_once(refuses, arguments):
    run = ardea(*arguments, stdout=refuses)
    assert (run.returncode, run.stderr) == (1, "error: stdout cannot be written: Bad file descriptor\n")


def test_a_stdout_that_is_closed_is_a_stdout_that_cannot_be_written():
    run = ardea("config", stdout=None, preexec_fn=lambda: os.close(1))
    assert (run.returncode, run.stderr) == (1, "error: stdout cannot be written: Bad file descriptor\n")


def test_who_reads_no_further_hears_nothing_of_it():
    reader, writer = os.pipe()
    os.close(reader)
    run = ardea("config", stdout=writer)
    os.close(writer)
    assert (run.returncode, run.stderr) == (1, "")


def test_a_stderr_that_cannot_be_written_changes_nothing(refuses):
    assert ardea("nothing", stderr=refuses).returncode == 2
    assert ardea("logs", "nothing", "--state", "/nowhere", stderr=refuses).returncode == 3
    assert ardea("logs", "nothing", "--state", "/nowhere", stderr=None, preexec_fn=lambda: os.close(2)).returncode == 3


def test_what_an_authors_file_writes_past_print_stays_out_of_the_data(tmp_path: Path):
    file = tmp_path / "topology_that_talks.py"
    file.write_text(
        "import os, subprocess\n"
        "from ardea import Bolt, Spout, Topology\n"
        "print('print')\n"
        "os.write(1, b'write\\n')\n"
        "subprocess.run(['echo', 'echo'], check=True)\n"
        "class S(Spout):\n    outputs = ['n']\n    def next_tuple(self): pass\n"
        "class B(Bolt):\n    def process(self, tup): pass\n"
        "class T(Topology):\n    s = S.spec()\n    b = B.spec(inputs=[s])\n"
    )
    run = ardea("run", os.fspath(file), "--dry-run", "-o", "json", "--state", os.fspath(tmp_path / "none"))
    assert json.loads(run.stdout)["topology"] == "T"
    assert sorted(run.stderr.split()) == ["echo", "print", "write"]

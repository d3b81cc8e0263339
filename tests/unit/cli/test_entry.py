"""The command itself, as a process: how it begins, and what becomes of it when it is told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

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
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


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

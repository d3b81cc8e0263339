"""The main job: what `make run` does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.machine import patient

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[3]


def test_the_words_of_the_standard_library_are_counted_exactly(tmp_path):
    """Twenty words, and a total that equals the plain Counter's; the topology itself compares word by word."""
    makefile = (ROOT / "Makefile").read_text()
    arguments = re.search(r"\$\(BIN\)/ardea (run .*)", makefile)[1].split()
    command = [sys.executable, "-P", "-m", "ardea.cli", *arguments, "--state", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=patient(250), check=False)
    assert run.returncode == 0, run.stderr
    *common, counted, plain, equal = run.stdout.splitlines()
    assert len(common) == 20
    assert counted.split()[0] == plain.split()[0]
    assert int(plain.split()[0].replace(",", "")) > 1_000_000
    assert equal.strip() == "equal, word by word"
    assert "failed 0" in run.stderr

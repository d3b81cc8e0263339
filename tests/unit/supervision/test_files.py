"""How many files the processes of a topology may have open, whatever the shell's limit is."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

ASKS = """
import resource
from ardea.supervision import kernel
kernel.MOST_FILES = 500
kernel.allow_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE), kernel.open_files())
"""


@pytest.mark.parametrize(
    ("soft", "hard", "allowed"),
    [
        (100, 300, (300, 300, 300)),  # all that the system allows
        (100, 600, (500, 600, 500)),  # no more than is of use
        (550, 600, (550, 600, 500)),  # what was asked for stays
    ],
)
def test_a_supervisor_and_what_it_starts_may_open_many(soft, hard, allowed):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    run = subprocess.run([sys.executable, "-c", ASKS], preexec_fn=limit, capture_output=True, check=True, timeout=30)
    assert tuple(map(int, run.stdout.split())) == allowed

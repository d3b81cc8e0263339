"""The former version, as tests of an upgrade run it: its files out of git."""

from __future__ import annotations

import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMIT = "72bfe26"
BOTH = "(format 1), and this is Ardea"
"""What every verb says of a topology that this version has submitted."""


def unpacked(folder: Path) -> Path:
    """The folder, with its tree in it; skips the test where git does not have that."""
    archived = subprocess.run(["git", "-C", str(ROOT), "archive", COMMIT], capture_output=True)
    if archived.returncode != 0:
        pytest.skip(f"commit {COMMIT} is not here: {archived.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(archived.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder

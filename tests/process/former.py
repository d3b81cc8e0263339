"""The former version, as tests of an upgrade run it: its files out of git."""

from __future__ import annotations

import subprocess
import tarfile
import tomllib
from io import BytesIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMIT, VERSION = "72bfe26", "0.1.0.dev0"
BOTH = "(format 1), and this is Ardea"
"""What every verb says of a topology that this version has submitted."""


def unpacked(folder: Path) -> Path:
    """The folder, with its tree in it; skips the test where git does not have that."""
    archived = subprocess.run(["git", "-C", str(ROOT), "archive", COMMIT], capture_output=True)
    if archived.returncode != 0:
        pytest.skip(f"commit {COMMIT} is not here: {archived.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(archived.stdout)) as files:
        files.extractall(folder, filter="data")
    _announced(folder)
    return folder


def _announced(folder: Path) -> None:
    """Its own entry points count where the folder is in PYTHONPATH, not those of the version that is installed."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    told = folder / f"ardea-{VERSION}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ardea\nVersion: {VERSION}\n")
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in {**project["entry-points"], "console_scripts": project["scripts"]}.items()
    )
    (told / "entry_points.txt").write_text("\n".join(groups))

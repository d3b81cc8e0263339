"""One name stands in site-packages, and an author's modules may have any other, however Ardea came there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.machine import patient

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[3]
ORDERS = Path(__file__).parent / "import_names" / "orders.py"


def run(*command: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """What it prints; fails with what it says if it fails."""
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=patient(200), check=False, env=environment, cwd=cwd
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory) -> Path:
    """The interpreter of an environment that has what Ardea needs, but not Ardea."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # Folders that a .pth file names are searched, but their own .pth files are not read: Ardea's is one.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The source archive lies beside it."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, cwd=ROOT)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(dependencies, wheel) -> Path:
    """The interpreter of an environment that has Ardea from its wheel."""
    pip = (sys.executable, "-m", "pip", "--python", dependencies, "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-index", "--no-deps", "--no-compile", wheel)
    return dependencies


def test_the_wheel_has_one_name(wheel):
    """And in it all modules that the checkout has, as in the source archive, of which others build a wheel."""
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    tops = {name.parts[0] for name in names}
    assert tops == {"ardea", *(top for top in tops if top.startswith("ardea-") and top.endswith(".dist-info"))}
    checkout = {file.relative_to(ROOT) for file in (ROOT / "ardea").rglob("*.py")}
    for link in (file for file in (ROOT / "ardea").iterdir() if file.is_symlink()):
        checkout |= {link.relative_to(ROOT) / file.relative_to(link.resolve()) for file in link.resolve().rglob("*.py")}
    assert {name for name in names if name.suffix == ".py"} == checkout
    (sources,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        packed = {Path(*Path(member.name).parts[1:]) for member in archive if member.isfile()}
    assert {name for name in packed if name.suffix == ".py" and name.parts[0] == "ardea"} == checkout


@pytest.mark.parametrize("way", ["checkout", "editable", "wheel"])
def test_simulated_the_authors_modules_are_imported(way, dependencies, request, tmp_path):
    """By ``python FILE``, as an author does it: a checkout without an install is found by PYTHONPATH."""
    env = {"PYTHONPATH": str(ROOT / ".editable")} if way == "checkout" else {}
    python = {"checkout": dependencies, "editable": Path(sys.executable)}.get(way) or request.getfixturevalue(
        "installed"
    )
    told = run(python, ORDERS, env=env, cwd=tmp_path)
    assert told == "SUCCEEDED [(7,), (8,)]\n"


def test_from_the_root_of_a_checkout_that_is_not_installed_its_folders_hide_nothing(dependencies):
    """``python -m`` puts the current directory on the path, which ``ardea`` and all tasks do without."""
    told = run(dependencies, "-m", "ardea", "run", ORDERS, "--dry-run", "-o", "json", cwd=ROOT)
    assert '"crossing"' in told


def test_from_the_wheel_ardea_run_imports_the_authors_modules(installed, tmp_path):
    code = "import ardea.scheduler as s; print(s.__file__)"
    assert "site-packages/ardea/scheduler/" in run(installed, "-c", code, cwd=tmp_path)
    command = (installed, "-m", "ardea", "run", ORDERS, "--state", tmp_path / "state", "-o", "json")
    assert '"SUCCEEDED"' in run(*command, cwd=ORDERS.parent)


@pytest.mark.usefixtures("daemons")
def test_from_a_checkout_submit_local_imports_the_authors_modules(ardea):
    told = ardea("submit", "local", ORDERS, "--wait", "-o", "json", cwd=ORDERS.parent)
    assert (told.returncode, '"SUCCEEDED"' in told.stdout) == (0, True), told.stderr

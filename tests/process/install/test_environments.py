"""The wheel of `make dist` in environments that had nothing: installed by pip, and used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.machine import patient
from tests.process.cli.verbs import topology

pytestmark = [pytest.mark.thorough, pytest.mark.cluster, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[3]
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
AS_ENGINE = "import sys; sys.executable = sys.argv.pop(1); from ardea.cli.__main__ import main; main()"
WEB = ("rich", "starlette", "typer", "uvicorn")
IN_AN_IMAGE = f"""
import sys
from importlib.util import find_spec

import ardea, ardea.topology_master, ardea.stream_manager, ardea.heron_instance, ardea.metrics_manager
absent = [name for name in {WEB} if find_spec(name) is None]
print("Python %d.%d; absent: %s" % (*sys.version_info[:2], ", ".join(absent)))
"""


def run(command: Sequence[str | Path], **options: object) -> str:
    """Its output; the test fails with all that it said unless it ends with 0."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [*map(str, command)],
        text=True,
        capture_output=True,
        check=False,
        timeout=patient(300),
        env=environment,
        **options,
    )
    assert ended.returncode == 0, f"{command}: exit {ended.returncode}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    return ended.stdout


def interpreter(version: str) -> Path:
    """Debian's, or one of pyenv's; the test is left out where there is none."""
    places = [Path(f"/usr/bin/python{version}"), *sorted(PYENV.glob(f"{version}.*/bin/python"))]
    for place in places:
        if place.exists() and subprocess.run([place, "-c", "import ensurepip, venv"], check=False).returncode == 0:
            return place
    pytest.skip(f"neither Debian nor pyenv has Python {version} here")


@pytest.fixture(scope="module")
def debian(tmp_path_factory) -> Iterator[Callable[[str], Path]]:
    """Makes the folder of a release of Debian, once.  It has devices: nobody may copy it as files."""
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("only root on a Debian can make another one in a folder")
    folder = tmp_path_factory.mktemp("debian")

    def made(release: str) -> Path:
        run([ROOT / "scripts/debian.sh", release, folder / release])
        return folder / release

    yield made
    shutil.rmtree(folder)


def inside(root: Path, script: str) -> str:
    """What a shell prints that sees nothing but that folder, and whose processes and mounts end with it."""
    own = ("unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={root}/proc")
    return run([*own, "chroot", root, "sh", "-euc", script])


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    """The folder of wheel and sdist, which twine has checked."""
    folder = tmp_path_factory.mktemp("dist")
    checked = run([ROOT / "scripts/dist.sh", folder])
    assert checked.count("PASSED") == 2, checked
    return folder


@pytest.fixture
def wheel(dist) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def test_wheel_and_sdist_hold_what_belongs_to_them(dist, wheel):
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert {re.sub(r"-.*\.", ".", top) for top in tops} == {"ardea", "ardea.dist-info"}
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"requirements-engine.txt", "requirements-extras.txt", "Dockerfile", "README.md", "LICENSE"} <= inside
    assert not [name for name in inside if name.startswith((".venv", "build/", "dist/"))]


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_an_environment_that_had_nothing(wheel, tmp_path, version):
    run([interpreter(version), "-m", "venv", tmp_path / "env"])
    python = tmp_path / "env/bin/python"
    run([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel])
    run([python, "-m", "pip", "check"])
    options = ("--containers", "2", "--state", tmp_path / "state", "--logs", "add", "--set", "test.numbers=100")
    assert run([tmp_path / "env/bin/ardea", "run", topology("Sum"), *options]) == "the sum is 9900\n"
    assert "topology.stmgrs" in run([python, "-m", "ardea", "config"], cwd=tmp_path)


@pytest.mark.parametrize(("release", "python"), [("trixie", "3.13"), ("forky", "3.14")])
def test_debians_later_releases(debian, wheel, release, python):
    root = debian(release)
    with tempfile.TemporaryDirectory(dir=root / "tmp") as folder:
        here = "/" + str(Path(folder).relative_to(root))
        for file in (wheel, Path(topology("Sum").partition(":")[0])):
            shutil.copy(file, folder)
        told = inside(
            root,
            f"""cd {here}
            python3 -m venv env
            env/bin/pip install --quiet --only-binary :all: {wheel.name}
            env/bin/pip check
            env/bin/python -c 'import sys; print("Python %d.%d" % sys.version_info[:2])'
            env/bin/ardea run topologies.py:Sum --containers 2 --state state --logs add --set test.numbers=100""",
        )
    assert told.splitlines()[-2:] == [f"Python {python}", "the sum is 9900"]


@pytest.mark.skipif(shutil.which("buildah") is None, reason="there is no buildah")
def test_an_image_of_another_python_and_of_the_engine_alone(debian, dist):
    """By build arguments; the second is built on the first one's base."""
    base, image = "localhost/python:3.13-slim", f"localhost/ardea-{os.getpid()}:engine"
    root = debian("trixie")
    try:
        container = run(["buildah", "from", "scratch"]).strip()
        run(["tar", "-C", root, "-cf", dist / "root.tar", "."])  # which keeps the owners
        run(["buildah", "add", "--quiet", container, dist / "root.tar", "/"])
        run(["buildah", "commit", "--quiet", "--rm", container, base])
        run(["make", "-s", "image", f"IMAGE={image}", f"BASE={base}", "EXTRAS="], cwd=ROOT)
        container = run(["buildah", "from", "--pull-never", image]).strip()
        told = run(["buildah", "run", container, "--", "python", "-c", IN_AN_IMAGE])
        assert told == "Python 3.13; absent: rich, starlette, typer, uvicorn\n"
    finally:
        for command in (["rm", container], ["rmi", "--force", image], ["rmi", "--force", base]):
            subprocess.run(["buildah", *command], capture_output=True, check=False)


def test_the_engine_alone_has_no_command_line_and_runs_topologies(wheel, tmp_path):
    """As in an image: the locked versions, the wheel, and nothing else."""
    run([sys.executable, "-m", "venv", tmp_path / "env"])
    python = tmp_path / "env/bin/python"
    install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--no-deps"]
    run([*install, "-r", ROOT / "requirements-engine.txt"])
    run([*install, wheel])
    there = run([python, "-m", "pip", "list", "--format=freeze"])
    assert not [name for name in WEB if f"{name}==" in there]
    told = subprocess.run([tmp_path / "env/bin/ardea", "list"], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (1, "")
    lacks = r"error: the command line needs (rich|typer|watchfiles), which is not installed"
    assert re.fullmatch(rf"{lacks}\n  hint: pip install 'ardea\[cli\]'\n", told.stderr)
    options = ("--containers", "2", "--state", tmp_path / "state", "--logs", "add", "--set", "test.numbers=100")
    by_engine = [sys.executable, "-P", "-c", AS_ENGINE, python]
    assert run([*by_engine, "run", topology("Sum"), *options]) == "the sum is 9900\n"


def test_from_nothing_to_a_running_project_in_four_commands(wheel, tmp_path):
    """And its checks: mypy and pyright, both strict."""
    run([sys.executable, "-m", "venv", tmp_path / "env"])
    here = {"cwd": tmp_path, "shell": True}
    began = time.monotonic()
    commands = (
        f"env/bin/pip install --quiet {wheel}",
        "env/bin/ardea init word-tally",
        "cd word-tally && ../env/bin/ardea run word_tally.py --containers 2 --logs count --state ../state",
    )  # the third stands for two: `cd` is one
    *_, counted = (subprocess.run(command, **here, capture_output=True, text=True, check=True) for command in commands)
    took = time.monotonic() - began
    print(f"from nothing to a running project: {took:.1f} s")
    assert sorted(line.partition(": ")[2] for line in counted.stdout.splitlines()) == [
        "fish 1", "gone 1", "heron 2", "is 1", "strikes 1", "the 3", "waits 1",
    ]  # fmt: skip
    assert took <= 60
    project = tmp_path / "word-tally"
    run([sys.executable, "-m", "mypy"], cwd=project)
    (project / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    run([Path(sys.executable).with_name("basedpyright"), "--pythonpath", sys.executable], cwd=project)

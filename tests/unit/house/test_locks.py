"""What images install: locks that go with pyproject.toml; the engine's has no command line and no web server in it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return {canonicalize_name(n): v for n, v in (line.split("==") for line in lines if not line.startswith("#"))}


def required(*extras: str) -> list[Requirement]:
    command = [sys.executable, ROOT / "scripts/requirements.py", ROOT / "pyproject.toml", *extras]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    return [Requirement(line) for line in said.splitlines()]


@pytest.fixture
def engine() -> dict[str, str]:
    return pins("requirements-engine.txt")


def test_the_engines_lock_is_of_what_it_requires(engine):
    for requirement in required("engine", "kubernetes", "zookeeper"):
        assert requirement.specifier.contains(engine[canonicalize_name(requirement.name)]), requirement
    assert not engine.keys() & {"rich", "starlette", "structlog", "typer", "uvicorn", "watchfiles"}


def test_the_other_lock_is_of_all_extras(engine):
    every = engine | pins("requirements-extras.txt")
    assert len(every) == len(engine) + len(pins("requirements-extras.txt")), "none is in both"
    for requirement in required(*(extra for extra in PROJECT["optional-dependencies"] if extra != "all")):
        assert requirement.specifier.contains(every[canonicalize_name(requirement.name)]), requirement


def test_all_is_all_but_what_everybody_has():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    named = set(re.fullmatch(r"ardea\[(.*)\]", everything)[1].split(","))
    assert named == PROJECT["optional-dependencies"].keys() - {"all", "cli", "drpc"}


def test_the_extras_of_images_are_dependencies_too():
    """`pip install ardea` brings the command line and DRPC."""
    extras = PROJECT["optional-dependencies"]
    assert {*extras["cli"], *extras["drpc"]} < set(PROJECT["dependencies"])

"""Schedulers: the built-in one keeps the contract, and one that somebody else has installed is used."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from ardea.scheduler.schedulers import load
from ardea.testing.schedulers import check_scheduler
from tests.process.cli.verbs import describe, left_in_state, topology

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("daemons")]
PAGE = Path(__file__).parents[3] / "docs" / "schedulers.md"


def test_local_keeps_the_contract(state, tmp_path):
    check_scheduler(lambda: load("local")(state=str(state)), tmp_path)
    assert left_in_state(state) == []


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The example of the page, as pip would leave it."""
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (entry,) = re.findall(r'^nice = "(.*)"$', PAGE.read_text(), re.MULTILINE)
    folder = tmp_path / "site-packages"
    info = folder / "ardea_nice-1.dist-info"
    info.mkdir(parents=True)
    (folder / "ardea_nice.py").write_text(code)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ardea-nice\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[ardea.schedulers]\nnice = {entry}\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.usefixtures("installed")
def test_the_example_of_the_page_is_a_scheduler(ardea, state):
    told = ardea("submit", "nice", topology("Never"), "--niceness", 7, "-o", "json")
    assert told.returncode == 0, told.stderr
    document = json.loads(told.stdout)
    assert (document["topology"], document["state"], document["reason"]) == ("Never", "RUNNING", "")
    assert Path(document["folder"]).is_relative_to(state)
    known = describe(ardea, "Never")
    pids = [known["kept_by"]["pid"], *(process["pid"] for process in known["processes"])]
    assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in pids} == {os.getpriority(os.PRIO_PROCESS, 0) + 7}
    assert ardea("kill", "Never").returncode == 0
    assert left_in_state(state) == []

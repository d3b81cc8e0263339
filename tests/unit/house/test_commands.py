"""What the README promises of the two commands and of its example."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


def test_ci_is_make_test_on_a_cluster():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1] == 'make "$target"', "no exec: the cluster is stopped afterwards"


def test_help_lists_the_targets_that_people_use():
    run = subprocess.run(["make", "-s", "help"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    targets = re.findall(r"^  make ([\w-]+) +\S", run.stdout, re.MULTILINE)
    people_use = "help run test test-all check format soak bench proto image dist lock chart clean"
    assert targets == people_use.split()


def prerequisites(target: str) -> set[str]:
    found = re.findall(rf"^{re.escape(target)}: ([^#\n]*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return set(found[-1].split())


def test_make_test_checks_all_that_make_check_does():
    assert prerequisites("check") - prerequisites("test") == set()
    assert prerequisites("test-all") == prerequisites("test") == {*prerequisites("check"), "processes"}


def test_whoever_starts_servers_has_them_installed_and_the_pages_name_them():
    """Those of the tests of real processes, which the long tests are among."""
    assert all(".venv/.system" in prerequisites(target) for target in ("together", "alone", "soak"))
    installed = {
        "scripts/prometheus.sh": {"Prometheus"},
        "scripts/zookeeper.sh": {"ZooKeeper"},
        "scripts/java.sh": {"Java"},
        "scripts/stores.sh": {"Redis", "Memcached"},
        "scripts/browser.sh": {"Chromium"},
    }
    assert prerequisites(".venv/.system") - {".venv/.installed"} == installed.keys()
    for page in ("Makefile", "CONTRIBUTING.md"):
        introduction = " ".join((ROOT / page).read_text().splitlines()[:7])
        assert [name for name in set().union(*installed.values()) if name not in introduction] == [], page


def test_the_readmes_topology_builds():
    example, _ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "readme"}
    exec(example, names)
    assert [component.name for component in names["WordCount"].plan().components] == ["count", "words"]


def test_every_script_can_be_started():
    scripts = sorted((ROOT / "scripts").glob("*.sh"))
    assert scripts != []
    assert [p.name for p in scripts if not os.access(p, os.X_OK) or not p.read_text().startswith("#!/bin/sh\n")] == []

"""What a server of the chart does before it starts, when a backup lies on its volume."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.unit.helm.charts import needs_helm, render

pytestmark = needs_helm


@pytest.fixture
def start(tmp_path):
    """Starts a server whose volumes are folders here; what it says, and what it starts with."""
    stateful = render("--set", "zookeeper.persistence.enabled=true")["StatefulSet", "streams-ardea-zookeeper"]
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    shell, option, script = container["command"]
    for volume in ("data", "datalog"):
        (tmp_path / volume / "version-2").mkdir(parents=True)
        (tmp_path / volume / "version-2" / "old").write_text(volume)
    script = re.sub(r"(?<!new)/data", f"{tmp_path}/data", script).replace("/docker-entrypoint.sh", "echo starts")

    def start():
        command = [shell, option, script]
        environment = {"HOSTNAME": "zookeeper-2", "PATH": "/usr/bin:/bin"}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=30)
        assert ended.stdout == "starts zkServer.sh start-foreground /conf/zoo.cfg\n"
        return ended.stderr

    return start


def backup(folder, *volumes):
    for volume in volumes:
        (folder / "copy" / volume / "version-2").mkdir(parents=True)
        (folder / "copy" / volume / "version-2" / "new").write_text(volume)
    subprocess.run(["tar", "-czf", folder / "data" / "restore.tgz", "-C", folder / "copy", *volumes], check=True)


def there(folder):
    return {str(file.relative_to(folder)) for name in ("data", "datalog") for file in (folder / name).rglob("*")}


OLD = {"data/version-2", "data/version-2/old", "datalog/version-2", "datalog/version-2/old"}
NEW = {name.replace("old", "new") for name in OLD}


def test_without_one_it_keeps_what_it_has(start, tmp_path):
    assert start() == ""
    assert there(tmp_path) == OLD


def test_one_takes_the_place_of_what_there_is_once(start, tmp_path):
    backup(tmp_path, "data", "datalog")
    assert "has taken the place" in start()
    assert there(tmp_path) == NEW
    assert start() == ""


def test_one_that_was_half_in_place_is_put_there_again(start, tmp_path):
    backup(tmp_path, "data", "datalog")
    (tmp_path / "data" / "restored" / "data").mkdir(parents=True)
    (tmp_path / "data" / "version-2" / "old").rename(tmp_path / "data" / "version-2" / "half")
    start()
    assert there(tmp_path) == NEW


@pytest.mark.parametrize("broken", ["no archive", "half of it", "cut off"])
def test_what_is_none_is_put_aside_and_changes_nothing(start, tmp_path, broken):
    backup(tmp_path, *(("data",) if broken == "half of it" else ("data", "datalog")))
    file = tmp_path / "data" / "restore.tgz"
    if broken != "half of it":
        file.write_bytes(b"x" if broken == "no archive" else file.read_bytes()[:-40])
    assert "is no backup: nothing is changed" in start()
    assert there(tmp_path) == OLD | {"data/restore.failed"}
    assert "no backup" not in start()

"""Each example, run as its first lines say; those of Kafka and Spark, and the main job, have tests of their own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.machine import patient
from tests.process.pages import blocks
from tests.process.ports import free_ports
from tests.process.waiting import eventually

pytestmark = pytest.mark.cluster
EXAMPLES = Path(__file__).parents[3] / "examples"
PRINTS = {
    "hello.py": ("greet", ["hello, ann", "hello, bob", "hello, carla"]),
    "joins.py": ("report", ["ann Oslo 12", "ann Oslo 30", "bob Rome 5"]),
    "custom_grouping.py": ("pack", ["table 0: order 1, 500", "table 0: order 4, 900"]),
    "columns.py": ("sum", ["the sum of the even numbers is 2499950000"]),
    "custom_state.py": ("b-0", ["chair 95", "clock 45", "lamp 5"]),
}
OFTEN = ("hello.py", "joins.py")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OFTEN else [pytest.mark.thorough]) for name in PRINTS]
)
def test_an_example_prints_what_it_should(ardea, tmp_path, monkeypatch, name):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    component, lines = PRINTS[name]
    run = ardea("run", EXAMPLES / name, "--containers", 2, "--logs", component)
    assert run.returncode == 0, run.stderr
    printed = [line.removeprefix(f"{component}-{n}: ") for line in run.stdout.splitlines() for n in range(3)]
    assert set(lines) <= set(printed), run.stdout


@pytest.mark.thorough
def test_a_file_is_followed(start, tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"INFO one\nWARNING two\nINFO thr")
    run = start("run", EXAMPLES / "tail_file.py", "--set", f"tail.file={file}", "--logs", "count")
    assert {run.stdout.readline().partition(": ")[2] for _ in range(2)} == {"INFO 1\n", "WARNING 1\n"}
    with file.open("ab") as log:
        log.write(b"ee\n")
    assert run.stdout.readline().endswith("INFO 2\n")
    run.send_signal(signal.SIGINT)
    assert run.wait(120) == 130


@pytest.mark.thorough
def test_a_function_is_asked_over_http(start, tmp_path):
    [port] = free_ports(1)
    file = tmp_path / "drpc.py"
    file.write_text((EXAMPLES / "drpc.py").read_text().replace("8800", str(port)))
    run = start("run", file)

    def asked():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/drpc/counts", b"the heron", timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    eventually(lambda: asked() == '[["the",3],["heron",2]]', 60, asked)
    run.send_signal(signal.SIGINT)
    assert run.wait(120) == 130


def test_the_tests_of_an_example():
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "-p", "no:cacheprovider", "test_hello.py"]
    ended = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, check=False, timeout=patient(200))
    assert ended.returncode == 0, ended.stdout
    assert "4 passed" in ended.stdout


def test_the_list_names_every_example_and_the_short_ones_are_short():
    short, others = (EXAMPLES / "README.md").read_text().split("| others |")
    listed = [re.findall(r"^\| \[(\w+\.py)\]\(\1\)", part, re.MULTILINE) for part in (short, others)]
    assert sorted(listed[0] + listed[1]) == sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert len(listed[0]) == 10
    assert [name for name in listed[0] if len((EXAMPLES / name).read_text().splitlines()) >= 60] == []


def test_the_spark_example_is_the_one_of_the_page():
    """Which is followed, from an empty folder, by a test of its own; this one asks for tenths of a core."""
    first = next(block for block in blocks("docs/spark.md") if block.file)
    code, config, _ = first.text.partition("    config = {")
    assert config
    assert f"annotations\n\n{code}{config}" in (EXAMPLES / "spark_totals.py").read_text()

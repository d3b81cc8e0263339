"""The first steps on a cluster: the same words on every page, and each command of a page is one that there is."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import typer
import yaml

from ardea import __version__
from ardea.cli.verbs import app
from ardea.scheduler.kubernetes import capacity, pods
from ardea.scheduler.kubernetes.manifest_file import CHART
from ardea.scheduler.kubernetes.submission import Options, prepare

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "helm" / "README.md"]
NOTES = ROOT / "helm" / "templates" / "NOTES.txt"


def commands(text: str) -> list[list[str]]:
    """What the blocks of a page tell people to type, block by block: lines after ``$``, or all of a shell's."""
    found = []
    for kind, block in re.findall(r"^```(console|sh)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        lines = block.replace("\\\n", " ").splitlines()
        typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ") or kind == "sh"]
        found.append([line for line in typed if line and not line.startswith("#")])
    return found


def page(name: str) -> list[list[str]]:
    return commands((ROOT / name).read_text())


FIRST_STEPS = next(block for block in page("README.md") if any(line.startswith("helm install") for line in block))


def test_the_pages_tell_the_same_steps():
    assert page("docs/kubernetes.md")[0] == FIRST_STEPS
    for name in ("docs/helm.md", "helm/README.md"):
        assert page(name)[0][0] in FIRST_STEPS, name
    notes = NOTES.read_text().replace("{{ $n }}", "streams")
    told = re.findall(r"^  (ardea .*)", notes, re.MULTILINE)
    assert told == [line for line in FIRST_STEPS if line.startswith("ardea ")]


def test_the_image_of_the_first_step_is_that_of_the_chart_and_of_the_pages():
    made = subprocess.run(["make", "-sn", "image"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shlex.split(made.replace("\\\n", " ")) == ["BASE=", "PUSH=", "scripts/image.sh", f"ardea:{__version__}"]
    for path in PAGES:
        assert set(re.findall(r"(?<![\w-])ardea:(\d[\w.-]*\w)", path.read_text())) <= {__version__}, path


def test_the_chart_that_a_page_takes_from_a_registry_is_this_one():
    chart = yaml.safe_load((ROOT / "helm" / "Chart.yaml").read_text())
    taken = re.findall(r"oci://\S+/charts/(\S+) --version (\S+)", (ROOT / "docs" / "helm.md").read_text())
    assert taken == [(chart["name"], chart["version"])]


def test_the_topology_of_the_first_steps_asks_for_what_the_readme_says():
    (line,) = (line for line in FIRST_STEPS if line.startswith("ardea submit"))
    example, containers = shlex.split(line)[3], int(line.split("--containers ")[1].split()[0])
    inputs = prepare(str(ROOT / example), {"topology.stmgrs": containers}, Options(), CHART).inputs
    asked = sum(capacity.requests(job["spec"]["template"]["spec"])["cpu"] for job in pods.jobs(inputs, None))
    assert f"asks for {asked / 1000:g} cores in all" in (ROOT / "README.md").read_text().replace("\n", " ")


TYPED = sorted({line for path in PAGES for block in page(str(path.relative_to(ROOT))) for line in block})
ARDEA = [line for line in TYPED if re.match(r"(\.venv/bin/)?ardea (?!submit nice)", line)]
"""But for the scheduler that a page shows how to write."""


@pytest.mark.parametrize("line", ARDEA)
def test_a_verb_of_the_pages_has_these_options(line):
    words = shlex.split(line, comments=True)[1:]
    words = words[: next((n for n, word in enumerate(words) if word in ("|", ">", "&&")), len(words))]
    command = typer.main.get_command(app)
    verb = words[:2] if words[0] == "submit" else words[:1]
    if command.get_command(None, both := " ".join(words[:2])) is not None:  # debug profile
        verb = [both]
    for word in verb:
        command = command.get_command(None, word)
    known = {"--help", *(option for each in command.params for option in (*each.opts, *each.secondary_opts))}
    assert {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)} <= known


def test_what_people_type_is_found():
    text = "```console\n$ a \\\n    b\nsays\n# no\n```\n```sh\nc  # d\n\n# e\n```\n```python\n$ f\n```\n"
    assert commands(text) == [["a      b"], ["c  # d"]]

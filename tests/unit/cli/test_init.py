"""`ardea init`: what it writes, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib

import pytest
from typer.testing import CliRunner

from ardea.cli.init import FILES, names
from ardea.cli.verbs import app
from ardea.errors import ExitCode, UserError


def init(path):
    return CliRunner().invoke(app, ["init", str(path)], prog_name="ardea")


@pytest.fixture
def project(tmp_path):
    made = tmp_path / "word-tally"
    ended = init(made)
    assert ended.exit_code == 0, ended.stderr
    assert f"cd {made} && ardea run word_tally.py --logs count" in ended.stderr
    return made


def test_nothing_of_the_template_is_left_open(project):
    found = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    assert found == {target.format(module="word_tally") for target in FILES.values()}
    for path in found:
        assert "$title" not in (project / path).read_text()
    assert "class WordTally(Topology)" in (project / "word_tally.py").read_text()
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    assert settings["project"]["name"] == "word-tally"
    for needed in settings["project"]["dependencies"]:
        assert f"pip install '/path/to/{needed}'" in (project / "README.md").read_text()
    assert "dev" in settings["dependency-groups"], "which the README installs"
    launch = json.loads((project / ".vscode/launch.json").read_text())
    assert launch["configurations"][0]["program"] == "${workspaceFolder}/word_tally.py"


def test_its_own_tests_pass(project):
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    assert "3 passed" in ended.stdout


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("1st", "no name for a project"),
        ("a.b", "no name for a project"),
        ("class", "no name for a project"),
        ("näme", "no name for a project"),
        ("json", "Python here has a module json already"),
        ("ardea", "Python here has a module ardea already"),
    ],
)
def test_names_that_would_not_work(tmp_path, name, says):
    with pytest.raises(UserError, match=says):
        names(name)
    assert init(tmp_path / name).exit_code == ExitCode.INVALID
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_stays_as_it_is(tmp_path):
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "notes").write_text("mine")
    ended = init(tmp_path / "words")
    assert ended.exit_code == ExitCode.CONFLICT
    assert "exists already; nothing was written" in ended.stderr
    assert [path.name for path in (tmp_path / "words").iterdir()] == ["notes"]


def test_a_name_that_is_one_word():
    assert names("words") == ("words", "Words")
    assert names("my_Words2") == ("my_Words2", "MyWords2")

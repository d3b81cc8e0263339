"""The author's files arrive as they were, and nothing else does."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from ardea.errors import NotFound, UserError
from ardea.scheduler.kubernetes import bundle


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    for name, text in {
        "top.py": "import helpers.words",
        "helpers/__init__.py": "",
        "helpers/words.py": "WORDS = 'ä'",
        "data/list.csv": "1,2",
        "notes.txt": "private",
        ".git/hook.py": "x",
        "__pycache__/top.py": "x",
        "env/pyvenv.cfg": "",
        "env/lib/module.py": "x",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def files(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_python_files_arrive_and_nothing_hidden_does(project, tmp_path):
    bundle.unpack(bundle.pack(project / "top.py").data, tmp_path / "there")
    assert files(tmp_path / "there") == {
        "top.py": "import helpers.words",
        "helpers/__init__.py": "",
        "helpers/words.py": "WORDS = 'ä'",
    }


def test_modules_that_are_called_as_ardeas_folders_arrive(tmp_path):
    for name in ("top.py", "scheduler.py", "stream_manager/__init__.py", "heron_instance/inside.py"):
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    bundle.unpack(bundle.pack(tmp_path / "here" / "top.py").data, tmp_path / "there")
    assert files(tmp_path / "there") == files(tmp_path / "here")


def test_a_file_of_a_package_brings_its_package(project, tmp_path):
    bundle.unpack(bundle.pack(project / "helpers" / "words.py").data, tmp_path / "there")
    assert "helpers/words.py" in files(tmp_path / "there")
    assert bundle.import_root(project / "helpers" / "words.py") == project.resolve()


def test_data_comes_when_it_is_named(project, tmp_path):
    bundle.unpack(bundle.pack(project / "top.py", ["data/*.csv"]).data, tmp_path / "there")
    assert files(tmp_path / "there")["data/list.csv"] == "1,2"
    with pytest.raises(NotFound, match=r"data/\*\.json"):
        bundle.pack(project / "top.py", ["data/*.json"])


@pytest.mark.parametrize("pattern", ["", ".", "/etc/passwd", "../secret.csv", "data/../../x"])
def test_a_pattern_names_files_below_the_folder(project, pattern):
    with pytest.raises(UserError, match=rf"--include '{re.escape(pattern)}'.* nothing was submitted"):
        bundle.pack(project / "top.py", [pattern])


def test_folders_that_cannot_be_read_are_left_out(project, tmp_path, monkeypatch):
    """As those of others in /tmp: nobody could import anything from there, either."""
    (project / "helpers" / "locked").mkdir()
    (project / "helpers" / "locked" / "module.py").write_text("")
    iterdir = Path.iterdir

    def locked(self):
        if self.name == "locked":
            raise PermissionError(13, "Permission denied", str(self))
        return iterdir(self)

    monkeypatch.setattr(Path, "iterdir", locked)
    packed = bundle.pack(project / "top.py").data
    monkeypatch.undo()
    bundle.unpack(packed, tmp_path / "there")
    assert set(files(tmp_path / "there")) == {"top.py", "helpers/__init__.py", "helpers/words.py"}


def test_files_that_cannot_be_read_are_left_out_unless_they_are_named(project, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, _: Path(path).name not in ("words.py", "list.csv"))
    bundle.unpack(bundle.pack(project / "top.py").data, tmp_path / "there")
    assert set(files(tmp_path / "there")) == {"top.py", "helpers/__init__.py"}
    with pytest.raises(UserError, match=r"--include data/\*: .*/data/list.csv may not be read; nothing was submitted"):
        bundle.pack(project / "top.py", ["data/*"])


@pytest.mark.parametrize(("name", "pattern"), [(b"caf\xe9.py", "caf*.py"), (b"caf\xe9/module.py", "caf*/*.py")])
def test_files_whose_name_is_no_utf_8_are_left_out_unless_they_are_named(project, tmp_path, name, pattern):
    path = project / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    bundle.unpack(bundle.pack(project / "top.py").data, tmp_path / "there")
    assert set(files(tmp_path / "there")) == {"top.py", "helpers/__init__.py", "helpers/words.py"}
    with pytest.raises(UserError, match=r"--include caf.*: .*/caf\\udce9.* has a name that is no UTF-8; nothing was"):
        bundle.pack(project / "top.py", [pattern])


def test_equal_files_are_equal_bundles_and_unpacking_can_be_repeated(project, tmp_path):
    one = bundle.pack(project / "top.py")
    (project / "top.py").touch()
    assert bundle.pack(project / "top.py") == one
    for _ in range(2):
        bundle.unpack(one.data, tmp_path / "there")


@pytest.mark.thorough
def test_too_large_names_the_largest(project):
    noise = random.Random(1).randbytes(1 << 20)
    (project / "large.py").write_text(f"X = {noise!r}")
    with pytest.raises(
        UserError, match=r"900 KiB fit.*the largest are large\.py \([\d,]+ KiB\).*nothing was submitted"
    ):
        bundle.pack(project / "top.py")


def test_another_python_is_refused():
    bundle.check_python("")
    bundle.check_python(bundle.python_version())
    with pytest.raises(UserError, match=r"submitted with Python 2\.7, and this image has 3\."):
        bundle.check_python("2.7")

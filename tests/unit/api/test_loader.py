"""Finding the topology in an author's file."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import traceback
from importlib import import_module

import pytest

import ardea
from ardea import UserError
from ardea.code import Code
from ardea.errors import NotFound, StateError
from ardea.loader import forget, kept, load, place_of, root_of

GOOD = """
from ardea import Bolt, Spout, Topology, TopologyBuilder

class Lines(Spout):
    outputs = ["line"]
    def next_tuple(self): ...

class Count(Bolt):
    def process(self, tup): ...

class Words(Topology):
    lines = Lines.spec()
    count = Count.spec(inputs=[lines])
"""
BUILT = """
builder = TopologyBuilder("built")
builder.add_bolt("count", Count, inputs=[builder.add_spout("lines", Lines)])
topology = builder.build()
"""


@pytest.fixture(autouse=True)
def import_state(monkeypatch):
    """Puts the module table and the import path back."""
    before = dict(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]


@pytest.fixture
def write(tmp_path):
    def write(text, name="topology_file.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def failure(target) -> UserError:
    with pytest.raises(UserError) as caught:
        load(str(target))
    return caught.value


def test_the_only_topology_of_a_file(write):
    topology = load(str(write(GOOD)))
    assert (topology.__name__, len(topology.plan().components)) == ("Words", 2)


def test_a_topology_by_its_name(write):
    path = write(GOOD + BUILT)
    assert load(f"{path}:Words").plan().name == "Words"
    assert load(f"{path}:topology").plan().name == "built"


def test_what_a_builder_made_is_found(write):
    assert load(str(write(GOOD.partition("class Words")[0] + BUILT))).plan().name == "built"


def test_imported_topologies_do_not_count(write):
    write(GOOD, "base.py")
    path = write("from base import Words\nclass Mine(Words):\n    pass\nalso = Mine\n")
    assert load(str(path)).__name__ == "Mine"
    assert load(f"{path}:Words").__name__ == "Words"


def test_two_topologies(write):
    path = write(GOOD + BUILT)
    error = failure(path)
    assert "has 2 topologies: Words, topology" in error.message
    assert error.hint == f"Say which: {path}:Words."


def test_no_topology(write):
    assert "has no topology" in failure(write("x = 1")).message


def test_a_name_that_is_no_topology(write):
    path = write(GOOD)
    for name in ("Lines", "Nothing", "Topology"):
        assert failure(f"{path}:{name}").message == f"{path} has no topology {name!r}; it has Words"


def test_a_missing_file(tmp_path):
    for target in (tmp_path / "none.py", f"{tmp_path / 'none.py'}:Words"):
        with pytest.raises(NotFound, match="there is no topology file"):
            load(str(target))
    with pytest.raises(NotFound, match="is a folder"):
        load(str(tmp_path))


def test_a_file_that_raises_shows_the_cause_and_the_authors_lines_only(write):
    path = write("def read():\n    return {}['key']\n\nvalue = read()\n")
    assert failure(path).message.splitlines() == [
        "KeyError: 'key'",
        f"  {path}:4, in <module>",
        "    value = read()",
        f"  {path}:2, in read",
        "    return {}['key']",
        f"while {path} was imported",
    ]


def test_the_first_cause_comes_first(write):
    lines = failure(
        write("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('no rate') from e\n")
    ).message.splitlines()
    assert lines[0] == "ZeroDivisionError: division by zero"
    assert lines[3:5] == ["which led to", "ValueError: no rate"]


def test_ardeas_own_frames_are_not_shown(write):
    message = failure(write("from ardea import Stream\nStream(fields='word')\n")).message
    assert "UserError: Stream(fields='word')" in message
    assert "component.py" not in message


def test_frames_of_folders_that_a_checkout_links_are_ardeas_too(write):
    message = failure(write("from ardea.scheduler import registry\nregistry.load('nobody')\n")).message
    assert "topology_file.py:2" in message
    assert "schedulers.py" not in message


def test_a_syntax_error_shows_its_place(write):
    path = write("def f(:\n")
    message = failure(path).message
    assert f'File "{path}", line 1' in message
    assert "SyntaxError" in message


def test_a_missing_module_and_an_exit(write):
    assert failure(write("import no_such_module_anywhere")).message.startswith("ModuleNotFoundError: No module named")
    assert failure(write("raise SystemExit('bye')", "other.py")).message.startswith("SystemExit: bye")


def test_a_failed_import_leaves_no_half_module(write):
    failure(write("x = 1\n1 / 0\n"))
    assert "topology_file" not in sys.modules
    assert load(str(write(GOOD))).__name__ == "Words"


@pytest.mark.parametrize("raised", ["GeneratorExit('x')", "Own('x')"])
def test_whatever_an_import_raises_is_the_authors(write, raised):
    refused = failure(write(f"class Own(BaseException): pass\nraise {raised}\n"))
    assert re.match(r"(topology_file\.)?\w+: x\n", refused.message)
    assert "topology_file" not in sys.modules


def test_an_error_of_any_length_is_told_in_short(write):
    assert len(failure(write("raise ValueError('x' * 10_000_000)")).message) < 5000


def test_ctrl_c_during_an_import_stays_ctrl_c(write):
    with pytest.raises(KeyboardInterrupt):
        load(str(write("raise KeyboardInterrupt\n")))
    assert "topology_file" not in sys.modules


def test_a_file_is_imported_once_and_another_of_its_name_replaces_it(write):
    first = load(str(write(GOOD, "a/same.py")))
    assert load(str(write(GOOD, "a/same.py"))) is first
    assert load(str(write(GOOD, "b/same.py"))) is not first


def test_a_file_named_like_a_module_is_refused(write):
    error = failure(write(GOOD, "json.py"))
    assert "cannot be imported as 'json'" in error.message
    assert error.hint == "Give the file another name."


@pytest.mark.parametrize(
    "name", ["heron_instance", "metrics_manager", "scheduler", "stream_manager", "topology_master"]
)
def test_a_file_may_be_called_as_one_of_ardeas_folders(write, name):
    importlib.import_module(f"ardea.{name}")
    assert load(str(write(GOOD, f"{name}.py"))).__module__ == name


def test_a_file_with_a_dot_in_its_name_is_refused(write):
    error = failure(write(GOOD, "words.v2.py"))
    assert "words.v2.py cannot be imported: 'words.v2' has a dot in it" in error.message
    assert error.hint == "Give the file another name."


def test_a_file_whose_name_is_no_text_is_refused(write):
    error = failure(write(GOOD, "w\udcffrds.py"))
    assert error.message.endswith("w\\udcffrds.py has bytes in its name that are no UTF-8")
    assert error.hint == "Give the file or its folder another name."


def test_a_recursion_without_end_is_told_briefly(write):
    lines = failure(write("def again():\n    again()\n\nagain()\n")).message.splitlines()
    assert lines[0].startswith("RecursionError")
    assert lines[-2].startswith("  ... and ")
    assert len(lines) < 50


def test_a_file_of_a_package_imports_its_siblings(write):
    write("", "house/__init__.py")
    write("", "house/rooms/__init__.py")
    write(GOOD, "house/parts.py")
    path = write("from ..parts import Words\nclass Kitchen(Words): ...\n", "house/rooms/kitchen.py")
    assert load(str(path)).__module__ == "house.rooms.kitchen"


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "with an installed part"])
def test_modules_of_a_folder_without_init_are_imported_anew(write, tmp_path_factory, monkeypatch, shared):
    if shared:
        elsewhere = tmp_path_factory.mktemp("elsewhere") / "kept_parts"
        elsewhere.mkdir()
        (elsewhere / "installed.py").touch()
        monkeypatch.syspath_prepend(str(elsewhere.parent))
        import_module("kept_parts.installed")
    target = write(f"from kept_parts.deep import bolts\n{GOOD}\nCount.fields = bolts.FIELDS\n")
    bolts = write("FIELDS = [1]", "kept_parts/deep/bolts.py")
    assert load(str(target)).count.cls.fields == [1]
    bolts.write_text("FIELDS = [1, 2]")
    forget(root_of(str(target)))
    assert load(str(target)).count.cls.fields == [1, 2]
    assert not shared or sys.modules["kept_parts"].installed is sys.modules["kept_parts.installed"]


def test_a_file_that_is_no_python(write):
    assert "is no Python file" in failure(write("x", "notes.txt")).message


def test_two_processes_agree_on_the_digest(write):
    """With different hash seeds, and whatever the folder they are started in."""
    path = write(GOOD)
    code = "import sys; from ardea.loader import load; print(load(sys.argv[1]).plan().digest())"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, path],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert digests == {load(str(path)).plan().digest() + "\n"}


def test_every_public_name_can_be_imported():
    for name in ardea.__all__:
        assert getattr(ardea, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Nope'"):
        _ = ardea.Nope


def test_the_public_api_loads_nothing_heavy():
    """Every task of a topology pays for these imports, in memory and in start-up."""
    code = (
        "import sys, ardea, ardea.loader\n"
        "for name in ardea.__all__: getattr(ardea, name)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"pydantic", "rich", "typer", "zmq", "prometheus_client", "starlette", "uvicorn", "numpy", "kubernetes"}
    assert heavy & set(run.stdout.split()) == set()
    assert "ardea" in run.stdout.split()


@pytest.mark.parametrize(
    "module", ["ardea.cli.verbs", "ardea.topology_master.__main__", "ardea.metrics_manager.__main__"]
)
def test_only_who_handles_columns_of_ids_loads_numpy(module):
    """These start with every topology, or with every verb."""
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pyarrow", "kazoo"} & set(run.stdout.split())


def test_importing_ardea_alone_loads_the_standard_library_only():
    code = "import sys; before = set(sys.modules); import ardea; print(*set(sys.modules) - before)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert {name.partition(".")[0] for name in run.stdout.split()} - sys.stdlib_module_names == {"ardea"}


PARTED = (
    GOOD
    + """
import helper
from parts import deep, same

def fails():
    raise ValueError(helper.VALUE, deep.VALUE, same.VALUE)  # as submitted
"""
)


@pytest.fixture
def submitted(write, tmp_path):
    """A topology's file and its code, kept; then its modules are another process'."""
    file = write(PARTED)
    write("VALUE = 1", "helper.py")
    write("VALUE = 3", "unused.py")
    write("", "parts/__init__.py")
    write("VALUE = 2", "parts/deep.py")
    write("VALUE = 5", "parts/same.py")
    before = set(sys.modules)
    load(str(file))
    code = kept(str(file))
    code.write(tmp_path)
    for name in set(sys.modules) - before:
        del sys.modules[name]
    return file, Code.read(tmp_path, code.digest)


def test_kept_code_is_what_its_file_and_its_neighbours_have_been(submitted, write, tmp_path):
    """Whatever has become of them; under their own paths, and with their own lines."""
    file, code = submitted
    assert sorted(code.modules) == ["helper", "parts", "parts.deep", "parts.same", "topology_file"]
    write("def (", file.name)
    (tmp_path / "helper.py").unlink()
    write("VALUE = 77", "parts/deep.py")
    topology = load(f"{file}:Words", code)
    with pytest.raises(ValueError, match=r"\(1, 2, 5\)") as caught:
        sys.modules["topology_file"].fails()
    line = PARTED.splitlines().index(next(x for x in PARTED.splitlines() if "as submitted" in x)) + 1
    assert place_of(caught.value) == f"topology_file.py:{line}"
    assert f'File "{file}", line {line}, in fails' in "".join(traceback.format_exception(caught.value))
    assert "# as submitted" in "".join(traceback.format_exception(caught.value))
    assert inspect.getsource(topology).startswith("class Words(Topology):\n    lines = Lines.spec()")


def test_kept_code_goes_on_without_its_files(submitted, tmp_path):
    file, code = submitted
    file.unlink()
    for path in (tmp_path / "parts").iterdir():
        path.unlink() if path.is_file() else None
    assert load(str(file), code).__name__ == "Words"
    assert sys.modules["parts.deep"].VALUE == 2


def test_code_is_called_by_what_is_in_it(submitted, write, tmp_path):
    """Other code of the same file is another version; one that nobody kept is None."""
    file, code = submitted
    write("VALUE = 4", "helper.py")
    load(str(file))
    assert kept(str(file)).digest != code.digest
    assert Code.read(tmp_path, "0") is None
    assert Code.read(tmp_path, "") is None
    damaged = tmp_path / "code" / code.digest
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(StateError, match=f"the submitted code in {damaged} cannot be read"):
        Code.read(tmp_path, code.digest)


def test_the_file_of_a_topology_is_kept_where_it_is_installed(tmp_path, monkeypatch):
    monkeypatch.setattr("ardea.loader._PYTHONS", (tmp_path,))
    monkeypatch.setattr("sys.path", list(sys.path))
    file = tmp_path / "installed_words.py"
    file.write_text("from ardea import Topology\n\nclass Words(Topology): pass\n")
    load(str(file))
    assert kept(str(file)).path == file

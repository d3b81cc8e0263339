"""The verbs that start nothing, the exit codes, and what docs/ says of both."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ardea import __version__
from ardea.cli import reference
from ardea.cli.change import asked
from ardea.cli.verbs import VERBS as ALL
from ardea.cli.verbs import app
from ardea.config import KEYS
from ardea.errors import ExitCode, UsageError
from ardea.scheduler.home import Home
from ardea.scheduler.registry import installed
from ardea.state import paths, topologies
from ardea.state.records import TopologyRecord
from ardea.state.topologies import register

ROOT = Path(__file__).parents[3]
WORD_COUNT = str(ROOT / "examples" / "word_count.py")
TRIDENT = str(ROOT / "examples" / "trident_word_count.py")

GOOD = """
from ardea import Bolt, Grouping, Spout, Topology
print("imported")
class S(Spout):
    outputs = ["number"]
    def next_tuple(self): self.finish()
class B(Bolt):
    outputs = ["number"]
    def process(self, tup): pass
"""

VERBS = [[verb] for verb in ALL if verb != "submit"] + [["submit", name] for name in installed()]


def ardea(*args: object):
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="ardea")


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / f"topology_{abs(hash(text))}.py"
        path.write_text(text)
        return str(path)

    return write


def test_version():
    assert ardea("version").stdout == f"{__version__}\n"
    assert ardea("--version").stdout == f"{__version__}\n"
    assert json.loads(ardea("version", "-o", "json").stdout)["ardea"] == __version__


def test_config_prints_every_key():
    document = json.loads(ardea("config", "-o", "json").stdout)
    assert [key["name"] for key in document["keys"]] == list(KEYS)
    text = ardea("config").stdout
    assert all(name in text for name in KEYS)
    advanced = [key["name"] for key in document["keys"] if key["advanced"]]
    page = reference.as_markdown().partition("## Advanced")[2]
    assert 12 <= len(advanced) <= 20, "few stand apart, and none that everybody sets"
    assert [name for name in advanced if f"| `{name}` |" not in page] == []


def test_the_page_of_keys_is_what_the_command_prints():
    """`ardea config -o markdown > docs/config.md` brings the page up to date."""
    assert (ROOT / "docs" / "config.md").read_text() == reference.as_markdown()
    assert ardea("config", "-o", "markdown").stdout == reference.as_markdown()


def test_the_page_of_verbs_names_each_verb_and_option():
    page = (ROOT / "docs" / "cli.md").read_text()
    for verb in VERBS:
        assert f"`ardea {' '.join(verb)}" in page
        help_text = ardea(*verb, "--help").stdout
        options = {option for option in re.findall(r"--[a-z][a-z-]+", help_text) if option != "--help"}
        assert {option for option in options if option not in page} == set()


def test_the_page_of_verbs_lists_the_exit_codes():
    page = (ROOT / "docs" / "cli.md").read_text()
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert documented == {int(code) for code in ExitCode}


def test_a_dry_run_prints_the_plan_as_a_table_and_as_json(tmp_path):
    run = ardea("run", WORD_COUNT, "--containers", 2, "--dry-run", "-o", "json", "--state", tmp_path / "none")
    document = json.loads(run.stdout)
    assert document["totals"]["containers"] == 2
    assert {i["component"] for c in document["containers"] for i in c["instances"]} == {
        "lines", "split", "count", "report"
    }  # fmt: skip
    assert "WordCount" in ardea("run", WORD_COUNT, "--dry-run").stdout
    assert not (tmp_path / "none").exists()


def test_the_plan_of_a_trident_topology_shows_its_components():
    """What the coordinators are, what each group does, and how rows, reports and commits reach it."""
    document = json.loads(ardea("describe", TRIDENT, "--plan", "-o", "json").stdout)
    found = {row["component"]: row for row in document["components"]}
    assert document["topology"] == "TridentWordCount"
    assert {"$mastercoord-bg0", "$spoutcoord-spout-files", "spout-files"} < found.keys()
    (state,) = [row for row in found.values() if "persist state1" in row["operations"]]
    (split,) = [row for row in found.values() if "each line -> word" in row["operations"]]
    assert (state["kind"], state["tasks"], split["tasks"]) == ("bolt", 2, 1)
    assert (state["component"].startswith("b-"), split["component"].startswith("b-")) == (True, True)
    assert state["inputs"]["$mastercoord-bg0:$commit"] == "all"
    assert state["inputs"][f"{split['component']}:$coord-bg0"] == "direct"
    assert "fields(word)" in {
        way for source, way in state["inputs"].items() if source.startswith(f"{split['component']}:s")
    }
    text = ardea("describe", TRIDENT, "--plan").stdout
    assert all(name in text for name in found)
    assert "persist state1" in text


def test_a_plan_for_programs_that_draw():
    drawn = ardea("describe", WORD_COUNT, "--plan", "-o", "mermaid").stdout
    assert drawn.startswith("flowchart LR\n")
    assert drawn.count("-->") == 3
    assert ardea("describe", WORD_COUNT, "--plan", "-o", "dot").stdout.count(" -> ") == 3
    refused = ardea("describe", "WordCount", "-o", "dot")
    assert (refused.exit_code, refused.stdout) == (ExitCode.USAGE, "")
    assert "hint: --plan -o dot" in refused.stderr


@pytest.mark.parametrize(("verb", "option"), [("run", "--dry-run"), ("describe", "--plan")])
def test_what_the_file_prints_stays_out_of_the_data(file, tmp_path, verb, option):
    path = file(GOOD + f"class T(Topology):\n    s = S.spec()\n    b = B.spec(inputs=[s])\n# for {verb}\n")
    run = ardea(verb, path, option, "-o", "json", "--state", tmp_path / "none")
    assert json.loads(run.stdout)["topology"] == "T"
    assert "imported" in run.stderr


@pytest.mark.parametrize(
    ("text", "options", "code", "says"),
    [
        ("import nothing_of_that_name", [], ExitCode.INVALID, "No module named 'nothing_of_that_name'"),
        ("x = (", [], ExitCode.INVALID, "SyntaxError"),
        ("x = 1", [], ExitCode.INVALID, "has no topology"),
        (GOOD + "class T(Topology): s = S.spec()\nclass U(T): pass\n", [], ExitCode.INVALID, "has 2 topologies: T, U"),
        (GOOD + "class T(Topology):\n    s = S.spec()\n", [], ExitCode.INVALID, "[s] is a spout that nobody reads"),
        (
            GOOD + "class T(Topology):\n    s = S.spec()\n    b = B.spec(inputs=[s, 'c'])\n    c = B.spec(inputs=[b])",
            [], ExitCode.INVALID, "cycle: ",
        ),
        (
            GOOD + "class T(Topology):\n    s = S.spec()\n    b = B.spec(inputs={s: Grouping.fields('nmber')})\n",
            [], ExitCode.INVALID, "non-existent fields: [nmber]; it has [number]",
        ),
        (
            GOOD + "class T(Topology):\n    s = S.spec()\n    b = B.spec(inputs=[s])\n",
            ["--set", "topology.max.spout.pendin=1"], ExitCode.INVALID, "did you mean 'topology.max.spout.pending'",
        ),
        (
            GOOD + "class T(Topology):\n    s = S.spec()\n    b = B.spec(inputs=[s])\n",
            ["--set", "topology.max.spout.pending=many"], ExitCode.INVALID, "the command line: 'topology.max.spout.",
        ),
        (
            GOOD + "class T(Topology):\n    s = S.spec()\n    b = B.spec(inputs=[s])\n",
            ["--logs", "bb"], ExitCode.INVALID, "did you mean 'b'?",
        ),
        (GOOD, ["--logs", "b", "-o", "json"], ExitCode.USAGE, "choose one of them"),
        (GOOD, ["--set", "foo"], ExitCode.USAGE, "error: --set takes key=value, not 'foo'"),
        (GOOD, ["--set", "topology.stmgrs=0"], ExitCode.INVALID, "hint: `ardea config` prints every key"),
        (GOOD, ["--name", ""], ExitCode.INVALID, "the command line: 'topology.name' takes a text, not ''"),
        (
            GOOD + "class T(Topology):\n    s = S.spec()\n    b = B.spec(inputs=[s])\n",
            ["--name", "a b"], ExitCode.INVALID, "error: the command line: 'a b' is not a valid topology name",
        ),
        (GOOD, ["--containers", "0"], ExitCode.USAGE, "Invalid value"),
        (GOOD, ["--unknown"], ExitCode.USAGE, "No such option"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_a_reason_and_a_code(file, tmp_path, text, options, code, says):
    path = file(text)
    for verb in (["run"], ["submit", "local"]):
        if "--logs" in options and verb != ["run"]:
            continue
        run = ardea(*verb, path, *options, "--state", tmp_path / "none")
        assert run.exit_code == code
        assert says in run.stderr
        assert run.stdout == ""
        assert "Traceback" not in run.stderr
        assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("text", ["add", "add:", ":2", "add:two", "add:" + "9" * 5000])
def test_a_malformed_parallelism_is_a_wrong_command_line(text):
    with pytest.raises(UsageError, match=f"--component-parallelism takes NAME:N, not '{text}'"):
        asked([text], None, moving=False, dropping=False)


SECONDS = [([verb], "--wait-secs") for verb in ("kill", "restart", "savepoint", "update")]
SECONDS += [(["submit", "local"], "--wait-secs"), (["top"], "--interval"), (["run"], "--give-up")]


@pytest.mark.parametrize(("verb", "option"), SECONDS)
@pytest.mark.parametrize("seconds", ["inf", "nan"])
def test_nobody_waits_for_what_is_no_number_of_seconds(tmp_path, verb, option, seconds):
    told = ardea(*verb, "words", option, seconds, "--state", tmp_path / "state")
    assert (told.exit_code, f"Invalid value for '{option}'" in told.stderr) == (ExitCode.USAGE, True)


def test_no_reading_is_further_from_the_next_than_a_machine_can_sleep(tmp_path):
    told = ardea("top", "words", "--interval", "1e10", "--state", tmp_path / "state")
    assert (told.exit_code, "Invalid value for '--interval'" in told.stderr) == (ExitCode.USAGE, True)


def test_errors_begin_with_error_and_end_with_a_hint():
    run = ardea("run", "nowhere.py")
    assert run.exit_code == ExitCode.NOT_FOUND
    assert run.stderr == (
        "error: there is no topology file nowhere.py\nhint: Give FILE or FILE:Class, for example wc.py:WordCount.\n"
    )


def test_debug_shows_the_traceback():
    assert "Traceback" in ardea("--debug", "run", "nowhere.py").stderr
    assert "Traceback" not in ardea("run", "nowhere.py").stderr


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_verbs_help_begins_with_one_sentence_on_one_line(verb):
    lines = [line.strip() for line in ardea(*verb, "--help").stdout.splitlines() if line.strip()]
    assert lines[1].endswith(".")
    assert lines[1][0].isupper()


@pytest.mark.parametrize(
    "verb", [["describe"], ["logs"], ["activate"], ["deactivate"], ["kill"], ["restart"], ["top"], ["debug"]]
)
def test_an_unknown_topology_is_not_found(tmp_path, verb):
    rest = ["words"] if verb == ["debug"] else []
    run = ardea(*verb, "nothing", *rest, "--state", tmp_path)
    assert run.exit_code == ExitCode.NOT_FOUND
    assert "nothing" in run.stderr


def test_an_empty_state_lists_nothing(tmp_path):
    assert json.loads(ardea("list", "-o", "json", "--state", tmp_path).stdout) == {"topologies": []}
    run = ardea("list", "--state", tmp_path)
    assert (run.stdout, run.stderr.replace("\n", "")) == ("", f"no topologies in {tmp_path}")


def test_doctor_finds_a_state_directory_that_others_may_write(tmp_path):
    umask = os.umask(0)
    try:
        assert ardea("doctor", "--state", tmp_path / "new").exit_code == ExitCode.OK, "it is made for this user only"
    finally:
        os.umask(umask)
    (tmp_path / "new").chmod(0o777)
    run = ardea("doctor", "-o", "json", "--state", tmp_path / "new")
    assert run.exit_code == ExitCode.FAILED
    (wrong,) = [check for check in json.loads(run.stdout)["checks"] if not check["ok"]]
    assert wrong["name"] == "its permissions"
    assert f"`chmod go-w {tmp_path / 'new'}`" in wrong["found"]


def test_doctor_finds_a_state_directory_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    run = ardea("doctor", "-o", "json", "--state", tmp_path / "file" / "x")
    assert run.exit_code == ExitCode.FAILED
    checks = {check["name"]: check["ok"] for check in json.loads(run.stdout)["checks"]}
    assert checks["state directory"] is False
    assert ardea("doctor", "--state", tmp_path).exit_code == ExitCode.OK


@pytest.fixture
def state(tmp_path):
    """Of a topology ``words``, which has died, and one that has ended."""
    with Home(tmp_path).open_state() as state:
        for name in ("words", "others"):
            record = TopologyRecord(
                id=f"{name}-00000000", name=name, location="w.py", topology_class="W", config={}, submitted_by="u",
                submitted_at=datetime.now(UTC), submitted_from="h", ardea_version="0", digest="0", components={},
            )  # fmt: skip
            register(state, record)
        yield state


def names_of(tmp_path) -> dict[str, bool]:
    document = json.loads(ardea("doctor", "-o", "json", "--state", tmp_path).stdout)
    return {check["name"]: check["ok"] for check in document["checks"]}


def test_a_damaged_name_is_found_by_doctor_and_freed_by_kill(tmp_path, state):
    assert names_of(tmp_path)["names"]
    for name in ("words", "nobodys"):
        (tmp_path / "state" / "names" / f"{name}.node").write_text("nonsense")
        assert not names_of(tmp_path)["names"]
        assert ardea("kill", name, "--state", tmp_path).exit_code == 0
        assert names_of(tmp_path)["names"]
        assert ardea("kill", name, "--state", tmp_path).exit_code == ExitCode.NOT_FOUND
    assert topologies.find(state, "others")


def test_a_damaged_name_of_a_topology_that_runs_is_not_freed(tmp_path, state):
    with state.lease(paths.scheduler("words-00000000"), b""):
        (tmp_path / "state" / "names" / "words.node").write_text("nonsense")
        assert topologies.free(state, "words") is False


def test_a_folder_in_place_of_a_node_disturbs_no_other_topology(tmp_path, state):
    node = tmp_path / "state" / "topologies" / "words-00000000.node"
    node.unlink()
    node.mkdir()
    listed = json.loads(ardea("list", "-o", "json", "--state", tmp_path).stdout)["topologies"]
    assert {each["name"] for each in listed} == {"words", "others"}
    assert ardea("doctor", "--state", tmp_path).exit_code == ExitCode.FAILED
    assert ardea("describe", "others", "--state", tmp_path).exit_code == 0
    assert ardea("kill", "words", "--state", tmp_path).exit_code == 0
    assert [t.id for t in topologies.listing(state)] == ["others-00000000"]

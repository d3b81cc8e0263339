"""The import rules cover the whole house and bite.  ``make layers`` checks that the code keeps them."""

from __future__ import annotations

import ast
import configparser
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CONTRACT = "importlinter:contract:"
PROCESSES = {"ardea.topology_master", "ardea.stream_manager", "ardea.heron_instance", "ardea.metrics_manager"}

# For each contract of .importlinter, a module and an import that it must refuse there.
OFFENCES = {
    "layers": ("ardea.plan", "ardea.cli"),
    "zmq": ("ardea.scheduler", "zmq"),
    "kazoo": ("ardea.transport", "kazoo"),
    "confluent-kafka": ("ardea.trident", "confluent_kafka"),
    "psycopg": ("ardea.trident", "psycopg"),
    "rocksdict": ("ardea.heron_instance", "rocksdict"),
    "kubernetes": ("ardea.scheduler", "kubernetes"),
    "pyspark": ("ardea.cli", "pyspark"),
    "payloads": ("ardea.stream_manager", "pyarrow"),
    "instances": ("ardea.heron_instance", "prometheus_client"),
    "engine": ("ardea.topology_master", "typer"),
    "supervisor": ("ardea.parent_link", "numpy"),
    "processes": ("ardea.scheduler", "ardea.heron_instance"),
    "command-line": ("ardea.cli", "ardea.scheduler.kubernetes"),
    "console": ("ardea.testing", "ardea.console"),
}


@pytest.fixture(scope="module")
def rules() -> configparser.ConfigParser:
    rules = configparser.ConfigParser()
    rules.read_string((ROOT / ".importlinter").read_text())
    return rules


@pytest.fixture(scope="module")
def layers(rules) -> list[str]:
    """The lines of the first contract, from the top layer down."""
    return rules[f"{CONTRACT}layers"]["layers"].strip().splitlines()


@pytest.fixture(scope="module")
def modules(layers) -> set[str]:
    return {name for line in layers for name in re.findall(r"[\w.]+", line)}


@pytest.fixture
def verdicts(tmp_path, rules, modules):
    """Runs the real contracts on a house of empty modules, but for some imports."""
    kinds = ("source_modules", "forbidden_modules")
    named = {name for section in rules.values() for kind in kinds for name in section.get(kind, "").split()}
    house = modules | {name for name in named if name.startswith("ardea.") and "*" not in name}

    def lint(*offences: tuple[str, str]) -> dict[str, str]:
        for module in house:
            folder = tmp_path.joinpath(*module.split("."))
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").touch()
            (tmp_path / module.split(".")[0] / "__init__.py").touch()
        for module, imported in offences:
            tmp_path.joinpath(*module.split("."), "__init__.py").write_text(f"import {imported}\n")
        command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", ROOT / ".importlinter"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200", "PYTHONUTF8": "1"}
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        found = dict(re.findall(r"^(.+) (KEPT|BROKEN)$", run.stdout, re.MULTILINE))
        return {contract: found.get(rules[f"{CONTRACT}{contract}"]["name"], run.stdout) for contract in OFFENCES}

    return lint


def test_every_module_of_ardea_has_a_layer(modules):
    entries = (p for p in (ROOT / "ardea").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists())
    assert {f"ardea.{p.stem}" for p in entries if p.stem != "__init__"} - modules == set()


def test_the_processes_share_a_layer_and_never_import_one_another(layers):
    assert [set(line.split(" | ")) for line in layers if "ardea.stream_manager" in line] == [PROCESSES]


def test_the_page_has_the_same_layers(layers):
    """In the same order, with the same modules, and says which of them must not import one another."""
    page = (ROOT / "docs" / "architecture.md").read_text().split("\n## Layers\n", 1)[1].split("\n## ", 1)[0]
    rows = [row.strip("|").split("|") for row in page.splitlines() if re.match(r"\| \d", row)]
    told = [sorted(re.sub(r"^\.", "ardea.", name) for name in re.findall(r"`([\w.]+)`", cell)) for _, cell in rows]
    assert told == [sorted(re.findall(r"[\w.]+", line)) for line in layers]
    assert [int(number) for number, _ in rows] == list(range(1, len(layers) + 1))
    assert [bool(re.search("neither the other|never one another", cell)) for _, cell in rows] == [
        " | " in line for line in layers
    ]


def test_every_contract_is_tried(rules):
    contracts = {name.removeprefix(CONTRACT) for name in rules.sections() if name.startswith(CONTRACT)}
    assert contracts == OFFENCES.keys()


def test_a_house_without_imports_keeps_every_contract(verdicts):
    assert verdicts() == dict.fromkeys(OFFENCES, "KEPT")


@pytest.mark.parametrize("contract", OFFENCES)
def test_contract_refuses_its_offence_and_no_other_does(verdicts, contract):
    assert verdicts(OFFENCES[contract]) == {**dict.fromkeys(OFFENCES, "KEPT"), contract: "BROKEN"}


MANAGERS = ("stream_manager", "topology_master", "metrics_manager")

# Where managers read or write msgpack, and what: files, snapshots and summaries of the engine's own, never rows.
MSGPACK = {
    ("stream_manager/container_setup.py", "encode"),  # manager.plan beside its life
    ("stream_manager/container_setup.py", "decode Remembered"),
    ("metrics_manager/metrics_state.py", "decode Snapshot"),  # what a process of its container counted
    ("metrics_manager/server.py", "encode"),  # the summary for the master
    ("metrics_manager/supervised.py", "encode"),  # whether a row can be in it
    ("metrics_manager/supervised.py", "decode list[ProcessRow]"),
}


def msgpack_in(source: str) -> set[str]:
    """What it does with msgspec's msgpack: ``encode``, ``decode TYPE``; ``import``, which hides the rest, or ``other``.

    Names of modules are taken as written: ``msgspec`` has no other one in this house.
    """
    tree, found, called = ast.parse(source), set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] in {"msgspec", "msgpack"}:
                found |= {"import"} if module != "msgspec" or "msgpack" in {alias.name for alias in names} else set()
            case ast.Import(names=names):
                module_names = {alias.name for alias in names}
                renamed = any(alias.asname and alias.name.startswith("msgspec") for alias in names)
                found |= {"import"} if renamed or module_names & {"msgpack", "msgspec.msgpack"} else set()
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr="msgpack") as module, attr=verb), keywords=keywords
            ):
                called.add(id(module))
                types = [ast.unparse(keyword.value) for keyword in keywords if keyword.arg == "type"]
                found.add(" ".join([verb, *types]))
    named = {id(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "msgpack"}
    return found | ({"other"} if named - called else set())


LOADED = """
import importlib, pkgutil, sys
before = set(sys.modules)
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}."):
        importlib.import_module(module.name)
print(*{name.split(".")[0] for name in sys.modules.keys() - before})
"""


def loaded_by(*names: str) -> set[str]:
    """Top-level names that a fresh interpreter holds after importing the packages with all their modules."""
    command = [sys.executable, "-c", LOADED, *names]
    return set(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.split())


def test_instances_load_nothing_of_the_command_line():
    heavy = {"prometheus_client", "pydantic", "rich", "starlette", "typer", "uvicorn"}
    assert loaded_by("ardea.heron_instance") & heavy == set()


def test_managers_read_msgpack_of_their_own_only():
    files = [path for package in MANAGERS for path in (ROOT / package).rglob("*.py")]
    used = {(str(path.relative_to(ROOT)), use) for path in files for use in msgpack_in(path.read_text())}
    assert used == MSGPACK


@pytest.mark.parametrize(
    ("source", "uses"),
    [
        ("import msgspec\nmsgspec.msgpack.decode(frame)", {"decode"}),
        ("import msgspec\nmsgspec.msgpack.decode(frame, type=list[Row])", {"decode list[Row]"}),
        ("import msgspec\nmsgspec.msgpack.Decoder(list)", {"Decoder"}),
        ("import msgspec\nread = msgspec.msgpack", {"other"}),
        ("from msgspec import Struct, msgpack", {"import"}),
        ("from msgspec.msgpack import decode", {"import"}),
        ("import msgspec as m", {"import"}),
        ("import msgpack", {"import"}),
        ("import msgspec\nfrom msgspec import Struct\nmsgspec.json.decode(frame)", set()),
    ],
)
def test_msgpack_is_recognised(source, uses):
    assert msgpack_in(source) == uses


def test_the_supervisor_loads_the_standard_library_only():
    assert loaded_by("ardea.supervisor", "ardea.supervision") - sys.stdlib_module_names == {"ardea"}


def test_sockets_are_made_in_one_place():
    """Only there have they the bounds on what strangers may cost; nothing else imports zmq (``zmq`` above)."""
    found = [
        f"{path.name}:{node.lineno}"
        for path in sorted((ROOT / "ardea" / "transport").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "socket"
    ]
    assert [place.partition(":")[0] for place in found] == ["sockets.py"], found

"""What a dry run prints, and how a packing plan is stored."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from rich.console import Console

from ardea.errors import StateError
from ardea.plan import Resource
from ardea.plan.resource import GIB, MIB
from ardea.plan.wire import packing_from_bytes, packing_to_bytes
from ardea.scheduler.packing import EvenPacking, RoundRobinPacking
from ardea.scheduler.packing.amounts import format_bytes, format_resource
from ardea.scheduler.packing.report import as_json, as_table
from tests.unit.scheduler.packing import plans
from tests.unit.scheduler.packing.plans import GB, component, herons_example, storms_example, topology


def printed(plan, algorithm) -> list[str]:
    console = Console(width=140, file=io.StringIO())
    with console.capture() as capture:
        console.print(as_table(algorithm.pack(plan), plan))
    return [" ".join(line.replace("│", " ").replace("┃", " ").split()) for line in capture.get().splitlines()]


def test_the_table_shows_executors_tasks_managers_and_the_cost_of_equal_containers():
    lines = printed(herons_example(), RoundRobinPacking())
    assert "1 2 2 bolt 1 2 15 GB 2 GiB" in lines
    assert "4 4 all instances 4 25 GB 4 GiB" in lines
    assert "managers 2 768 MiB 2 GiB" in lines
    assert "in all 6 25.81 GB 6 GiB" in lines
    assert "if containers were equal 4 30 GB 4 GiB" in lines


def test_the_table_names_the_tasks_of_each_executor():
    lines = printed(storms_example(), EvenPacking())
    assert "1 5 6 blue-spout 1 6 3 GiB 6 GiB" in lines
    assert "green-bolt [3-4]" in lines
    assert "yellow-bolt 7, 9, 11" in lines


def test_the_document_is_stable():
    plan = herons_example()
    document = json.loads(json.dumps(as_json(RoundRobinPacking().pack(plan), plan)))
    assert document["totals"] == {
        "containers": 2,
        "executors": 4,
        "tasks": 4,
        "instances": {"cpu": 4.0, "ram": 25 * GB, "disk": 4 * GIB},
        "managers": {"cpu": 2.0, "ram": 768 * MIB, "disk": 2 * GIB},
        "required": {"cpu": 6.0, "ram": 25 * GB + 768 * MIB, "disk": 6 * GIB},
        "equal_containers": {"cpu": 4.0, "ram": 30 * GB, "disk": 4 * GIB},
    }
    assert (document["topology"], document["algorithm"]) == ("t", "RoundRobin")
    assert document["containers"][1] == {
        "container": 2,
        "executors": [
            {"component": "spout", "executor": 0, "tasks": [2]},
            {"component": "spout", "executor": 2, "tasks": [4]},
        ],
        "instances": [
            {"name": "spout-0", "component": "spout", "index": 0, "task": 2, "cpu": 1.0, "ram": 5 * GB, "disk": GIB},
            {"name": "spout-2", "component": "spout", "index": 2, "task": 4, "cpu": 1.0, "ram": 5 * GB, "disk": GIB},
        ],
        "resources": {
            "instances": {"cpu": 2.0, "ram": 10 * GB, "disk": 2 * GIB},
            "managers": {"cpu": 1.0, "ram": 384 * MIB, "disk": GIB},
            "required": {"cpu": 3.0, "ram": 10 * GB + 384 * MIB, "disk": 3 * GIB},
        },
    }


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (384 * MIB, "384 MiB"),
        (3 * GIB // 2, "1.5 GiB"),
        (25 * GB, "25 GB"),
        (256 * 10**6, "256 MB"),
    ],
)
def test_amounts_are_shown_in_the_unit_they_were_written_in(amount, text):
    assert format_bytes(amount) == text


def test_sums_of_cores_are_shown_without_the_noise_of_binary_fractions():
    assert format_resource(Resource(0.1 + 0.2, 0, 0)) == "0.3 cpu, 0 B RAM, 0 B disk"
    plan = topology(component("a", 3, resource=Resource(cpu=0.1)))
    assert as_json(RoundRobinPacking().pack(plan), plan)["totals"]["instances"]["cpu"] == 0.3


@given(plan=plans.topologies())
def test_a_stored_plan_comes_back_equal(plan):
    packing = RoundRobinPacking().pack(plan)
    stored = packing_to_bytes(packing)
    assert packing_from_bytes(stored) == packing
    assert packing_to_bytes(packing_from_bytes(stored)) == stored


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"algorithm":"\xff"}', b'{"algorithm":"Even","containers":[{"number":"one"}]}']
)
def test_what_is_no_plan_is_refused(data):
    with pytest.raises(StateError, match="stored packing plan cannot be read"):
        packing_from_bytes(data)

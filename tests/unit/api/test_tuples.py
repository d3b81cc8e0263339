"""What a bolt reads from a tuple."""

from __future__ import annotations

import gc
from dataclasses import dataclass

import pytest

from ardea.tuples import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_FIELDS, TICK_STREAM, Tuple, TupleBatch, is_tick


@dataclass(frozen=True)
class Rows:
    component: str = "lines"
    stream: str = "default"
    task: int = 3
    fields: tuple[str, ...] = ("line", "number")

    def id_of(self, index: int) -> str:
        return f"{self.component}:7:{index}"


def test_values_are_read_by_position_and_by_field():
    tup = Tuple(("to be", 12), 5, Rows())
    assert (tup[0], tup[-1], tup["line"], tup["number"]) == ("to be", 12, "to be", 12)
    assert (len(tup), list(tup), tup.values) == (2, ["to be", 12], ("to be", 12))
    assert (tup.as_dict(), tup.select(["number", "line"])) == ({"line": "to be", "number": 12}, (12, "to be"))
    assert tup.fields_index("number") == 1


def test_origin_comes_from_the_batch():
    tup = Tuple(("to be", 12), 5, Rows())
    assert (tup.component, tup.stream, tup.task, tup.fields) == ("lines", "default", 3, ("line", "number"))
    assert tup.id == "lines:7:5"


def test_contains_asks_for_a_field():
    tup = Tuple(("to be", 12), 0, Rows())
    assert "line" in tup
    assert "to be" not in tup


def test_unknown_field_names_component_stream_and_fields():
    with pytest.raises(KeyError, match=r"stream 'default' of component 'lines' has no field 'lin'.* line, number"):
        Tuple(("to be", 12), 0, Rows())["lin"]


def test_a_tuple_is_printed_with_its_fields():
    assert repr(Tuple(("to be", 12), 0, Rows())) == "Tuple(lines:default, line='to be', number=12)"


def test_tuples_with_equal_values_stay_apart_as_keys():
    held = {Tuple(([1],), 0, Rows()): "a", Tuple(([1],), 0, Rows()): "b"}
    assert sorted(held.values()) == ["a", "b"]


def test_tuples_cost_the_garbage_collector_nothing():
    assert not gc.is_tracked(Tuple((1,), 0, Rows()))


@pytest.mark.parametrize(
    ("component", "stream", "expected"),
    [(SYSTEM_COMPONENT, TICK_STREAM, True), ("lines", TICK_STREAM, False), (SYSTEM_COMPONENT, "__system", False)],
)
def test_is_tick(component, stream, expected):
    assert is_tick(Tuple((1.0,), 0, Rows(component, stream, SYSTEM_TASK, TICK_FIELDS))) is expected


def test_tuples_of_a_batch_are_the_same_however_they_are_read():
    batch = TupleBatch([("to be", 1), ("or not", 2), ("to be", 3)], Rows())
    assert (batch.component, batch.stream, batch.task, len(batch)) == ("lines", "default", 3, 3)
    held = set(batch)
    assert all(tup in held for tup in [batch[0], batch[-1], *batch[1:]])
    assert [tup["number"] for tup in batch] == [1, 2, 3]
    assert [tup.id for tup in batch] == ["lines:7:0", "lines:7:1", "lines:7:2"]
    assert not TupleBatch([], Rows())

"""Columns of views and of runs, of which Arrow takes no rows: they are cut up like all others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ardea import Bolt, Spout, Topology
from ardea.heron_instance.parcels import part_of
from ardea.protocol.arrow import decode_batch, encode_batch
from ardea.protocol.column_types import travelling
from ardea.protocol.ids import NO_IDS
from ardea.protocol.wire_pb2 import ROWS, VERDICTS, Header
from tests.unit.heron_instance.bench import Bench

WORDS = [None if n % 7 == 3 else f"{n:0>100}" for n in range(200)]
LARGE = pa.large_string()


def encoded(values):
    return pa.DictionaryArray.from_arrays(pa.array(range(200), pa.int32()), pa.array(values, pa.string_view()))


def runs(values):
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(values) + 1), pa.int32()), values)


COLUMNS = [
    (pa.array(WORDS, pa.string_view()), LARGE),
    (pa.array([word and word.encode() for word in WORDS], pa.binary_view()), pa.large_binary()),
    (pa.array([word and [word, None] for word in WORDS], pa.list_(pa.string_view())), pa.list_(LARGE)),
    (pa.array([word and [word] for word in WORDS], pa.large_list(pa.string_view())), pa.large_list(LARGE)),
    (pa.array([word and [word] for word in WORDS], pa.list_(pa.string_view(), 1)), pa.list_(LARGE, 1)),
    (pa.array([word and {"w": word} for word in WORDS], pa.struct({"w": pa.string_view()})), pa.struct({"w": LARGE})),
    (pa.array([word and {"w": word} for word in WORDS], pa.map_(LARGE, pa.string_view())), pa.map_(LARGE, LARGE)),
    (pc.run_end_encode(pa.array(WORDS)), pa.string()),
    (runs(pa.array(WORDS, pa.string_view())), LARGE),
    (runs(pa.array(["b", *WORDS], pa.string_view())).slice(1), LARGE),
    (runs(encoded(WORDS)), pa.dictionary(pa.int32(), LARGE)),
    (encoded(WORDS), pa.dictionary(pa.int32(), LARGE)),
]


class Words(Spout):
    outputs = ("word",)
    batch = None

    def next_tuple(self):
        self.emit_batch(self.batch, range(200))
        self.finish()


class Reads(Bolt):
    def process_columns(self, columns): ...


def bench(column, readers):
    words = Words.spec("words")
    reads = Reads.spec("reads", par=readers, inputs=[words])
    made = Bench(type("T", (Topology,), {"words": words, "reads": reads}), "words")
    made.component.batch = pa.record_batch({"word": column})
    made.turn()
    return made


def left(made):
    """What has, by its frames."""
    sent = [message.frames for message in made.output.messages if message.header.kind == ROWS]
    made.output.messages.clear()
    return sent


@pytest.mark.parametrize("readers", [1, 2])
@pytest.mark.parametrize(("column", "kind"), COLUMNS, ids=[str(column.type) for column, _ in COLUMNS])
def test_pieces_have_their_own_values_only_and_rows_that_fail_come_again(column, kind, readers):
    made = bench(column, readers)
    parts = left(made)
    assert len(parts) > 10
    assert sum(len(frames[0]) for frames in parts) < 45_000
    batches = [decode_batch(frames[0]) for frames in parts]
    got = [value for batch in batches for value in batch["word"].to_pylist()]
    assert sorted(got, key=repr) == sorted(column.to_pylist(), key=repr)
    if not pa.types.is_dictionary(kind):
        assert {batch.schema.types[0] for batch in batches} == {kind}
    none = NO_IDS.tobytes()
    made.executor.handle((Header(kind=VERDICTS), [none, parts[0][-2], none, none]))
    again = made.executor.runner._open.replays.take().batch
    assert again["word"].to_pylist() == batches[0]["word"].to_pylist()


def test_runs_inside_other_columns_and_names_like_types_change_nothing():
    inside = pa.StructArray.from_arrays([runs(pa.array(WORDS))], names=["w"])
    batch = pa.record_batch({"page_view": inside}).replace_schema_metadata({"k": "v"})
    assert travelling(batch) is batch


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed", "struct", "map"])
def test_parts_leave_dictionaries_inside_other_columns_too(kind):
    word = pa.dictionary(pa.int32(), pa.string())
    columns = {
        "list": ([[w, None] for w in WORDS], pa.list_(word)),
        "large_list": ([[w] for w in WORDS], pa.large_list(word)),
        "fixed": ([[w] for w in WORDS], pa.list_(word, 1)),
        "struct": ([w and {"w": w} for w in WORDS], pa.struct({"w": word})),
        "map": ([w and {"w": w} for w in WORDS], pa.map_(pa.string(), word)),
    }
    batch = pa.record_batch({"word": pa.array(*columns[kind])})
    for picked in (np.arange(3, 6), np.array([1, 17, 99])):
        part = part_of(batch, picked)
        assert part["word"].to_pylist() == [batch["word"][int(row)].as_py() for row in picked]
        assert len(encode_batch(part)) < 2000
    assert part_of(batch, None) is batch

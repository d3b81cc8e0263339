"""Record batches on the wire."""

import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import ConfigError, EncodingError, ProtocolError
from ardea.protocol.arrow import decode_batch, encode_batch, rows_of
from ardea.protocol.keys import key_hash

rows = st.lists(
    st.tuples(st.text(), st.integers(-(2**63), 2**63 - 1), st.none() | st.floats(allow_nan=False)), max_size=9
)


def batch_of(sample):
    columns = list(zip(*sample, strict=True)) or [(), (), ()]
    types = (pa.string(), pa.int64(), pa.float64())
    return pa.record_batch([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["word", "n", "x"])


@given(rows)
def test_round_trip(sample):
    """Schema, values and rows come back; keys meet those of the row path."""
    batch = batch_of(sample)
    arrived = decode_batch(encode_batch(batch))
    assert arrived.equals(batch)
    assert arrived.schema.equals(batch.schema)
    assert rows_of(arrived) == sample
    assert [key_hash(scalars) for scalars in zip(*arrived.columns, strict=True)] == [key_hash(row) for row in sample]


def test_dictionary_columns_and_metadata_travel():
    batch = pa.record_batch({"w": pa.array(["a", "b", "a"]).dictionary_encode()}).replace_schema_metadata({"k": "v"})
    arrived = decode_batch(encode_batch(batch))
    assert arrived.schema.metadata == {b"k": b"v"}
    assert rows_of(arrived) == [("a",), ("b",), ("a",)]


def test_decoding_copies_nothing():
    """The column lies inside the buffer that arrived."""
    content = encode_batch(pa.record_batch({"n": pa.array(range(1000))}))
    base = pa.py_buffer(content).address
    column = decode_batch(content).column(0).buffers()[1]
    assert base <= column.address < base + len(content)


def test_a_batch_without_columns_has_its_rows():
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert rows_of(batch) == [(), ()]


@given(st.binary(max_size=200))
def test_malformed_bytes_are_an_error_of_the_protocol(content):
    with pytest.raises(ProtocolError, match="MALFORMED_ROWS"):
        decode_batch(content)


def test_truncated_bytes_are_an_error_of_the_protocol():
    content = encode_batch(batch_of([("a", 1, 1.0)]))
    for end in range(0, len(content) - 16, 8):
        with pytest.raises(ProtocolError, match="MALFORMED_ROWS"):
            decode_batch(content[:end])


def test_only_record_batches_are_encoded():
    with pytest.raises(EncodingError, match="Table"):
        encode_batch(pa.table({"n": [1]}))


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError) as caught:
        decode_batch(b"")
    assert "ardea[arrow]" in caught.value.hint

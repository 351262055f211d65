"""Messages that are one value each, as columns; and what all decoders and errors have in common."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common import ByteArraySchema, SimpleStringSchema
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.formats.raw import (
    MalformedMessageError,
    RawColumnarDecoder,
    RawColumnarEncoder,
    StringColumnarDecoder,
)


@given(st.lists(st.binary()))
def test_bytes_are_passed_on_as_rows_do(messages: list[bytes]) -> None:
    batch = RawColumnarDecoder().decode(messages)
    assert batch.column("value").to_pylist() == list(map(ByteArraySchema().deserialize, messages))
    assert RawColumnarEncoder().encode(batch) == messages


@given(st.lists(st.text() | st.binary(max_size=3)))
def test_texts_are_read_as_rows_do_and_what_is_no_text_is_found(values: list[str | bytes]) -> None:
    messages = [value.encode() if isinstance(value, str) else value for value in values]
    read, wanted, wrong = SimpleStringSchema(), [], []
    for index, message in enumerate(messages):
        try:
            wanted.append(read.deserialize(message))
        except UnicodeDecodeError:
            wrong.append(index)
    batch, malformed = StringColumnarDecoder("text").decode_well_formed(messages)
    assert (batch.column("text").to_pylist(), [error.index for error in malformed]) == (
        wanted,
        wrong,
    )
    assert RawColumnarEncoder("text").encode(batch) == [text.encode() for text in wanted]


def test_a_message_without_a_value_is_null_and_a_null_is_an_empty_message() -> None:
    assert StringColumnarDecoder().decode([None, b"", b"\xc3\xa9"]).to_pydict() == {
        "value": [None, "", "é"]
    }
    assert StringColumnarDecoder().decode_well_formed([None, b"\xff"]).batch.to_pydict() == {
        "value": [None]
    }
    assert RawColumnarEncoder().encode(RawColumnarDecoder().decode([None, b"a"])) == [b"", b"a"]
    assert RawColumnarEncoder("n").encode(
        pa.RecordBatch.from_pydict({"n": pa.array(["é"], pa.large_string()), "m": [1]})
    ) == [b"\xc3\xa9"]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.binary(2),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int8(), pa.binary()),
    ],
    ids=str,
)
def test_bytes_and_texts_of_all_types_are_messages(kind: pa.DataType) -> None:
    of_text = "string" in str(kind)
    column = pa.array(["é", None] if of_text else [b"\xc3\xa9", None], kind)
    assert RawColumnarEncoder().encode(pa.record_batch([column], names=["n"])) == [b"\xc3\xa9", b""]


def test_a_column_that_is_no_message_is_refused() -> None:
    two = pa.RecordBatch.from_pydict({"a": [1], "b": ["x"]})
    for field, why in [
        (None, r"a raw message is one column, and there are 2 \(a, b\)"),
        ("c", r"there is no column 'c' .*\(there are a, b\)"),
        ("a", "a raw message is bytes or text, and the column is int64"),
    ]:
        with pytest.raises(ProgramError, match=why):
            RawColumnarEncoder(field).encode(two)


def test_an_error_keeps_the_beginning_of_a_long_message_only() -> None:
    error = pickle.loads(pickle.dumps(MalformedMessageError(3, "why", b"x" * 1000)))
    assert str(error) == f"message 3 cannot be decoded: why: {b'x' * 60!r}…"
    assert str(error.at(5)) == str(error).replace("3", "5")
    assert str(MalformedMessageError(None, "why")) == "the message cannot be decoded: why"
    with pytest.raises(MalformedMessageError, match="message 1 cannot be decoded: it is no UTF-8"):
        StringColumnarDecoder().decode([b"a", b"\xff", b"\xff"])

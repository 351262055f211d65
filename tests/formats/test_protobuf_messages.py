"""Protobuf messages: rows and columns mean the same, no value is changed, and a malformed message
is found."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.empty_pb2 import Empty
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import Int32Value
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.values.conversion import batch_of_rows, rows_of_batch
from flinkpy.common import Row
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.formats.protobuf import (
    ProtobufColumnarDecoder,
    ProtobufColumnarEncoder,
    ProtobufDeserializationSchema,
    ProtobufRowDeserializationSchema,
    ProtobufRowSerializationSchema,
    ProtobufSerializationSchema,
)
from flinkpy.formats.port import MalformedMessageError
from tests.formats.drawn import damaged, outcome, outcomes_of_columns, same
from tests.formats.messages_of_all_kinds import kinds, old_kinds

KINDS, ROWS = kinds()
FEW = settings(max_examples=20)


@FEW
@given(ROWS)
def test_what_is_written_is_read_again(row: Any) -> None:
    found = ProtobufRowDeserializationSchema(KINDS).deserialize(
        ProtobufRowSerializationSchema(KINDS).serialize(row)
    )
    assert same(found) == same(row)


@FEW
@given(st.lists(ROWS, min_size=1, max_size=3))
def test_columns_are_written_as_rows_are(rows: Any) -> None:
    messages = ProtobufColumnarEncoder(KINDS).encode(
        batch_of_rows(rows, ProtobufColumnarDecoder(KINDS).schema)
    )
    assert [
        same(ProtobufRowDeserializationSchema(KINDS).deserialize(message)) for message in messages
    ] == same(rows)


@FEW
@given(st.lists(ROWS, max_size=3), st.data())
def test_columns_are_read_as_rows_are_and_find_the_same_malformed_messages(
    rows: Any, data: st.DataObject
) -> None:
    messages = data.draw(damaged(list(map(ProtobufRowSerializationSchema(KINDS).serialize, rows))))
    read = ProtobufRowDeserializationSchema(KINDS)
    assert outcomes_of_columns(ProtobufColumnarDecoder(KINDS), messages) == [
        outcome(read.deserialize, message) for message in messages
    ]


def test_a_class_that_no_module_has_travels_with_its_schema() -> None:
    for made in (ProtobufRowDeserializationSchema(KINDS), ProtobufColumnarDecoder(KINDS)):
        assert pickle.loads(pickle.dumps(made)).registered() == made.registered()
    row = Row(seconds=7, nanos=0)
    assert (
        pickle.loads(pickle.dumps(ProtobufRowSerializationSchema(Timestamp))).serialize(row)
        == b"\x08\x07"
    )
    assert ProtobufRowDeserializationSchema(Timestamp).get_produced_type().get_field_names() == [  # type: ignore[attr-defined]
        "seconds",
        "nanos",
    ]


def test_objects_of_the_class_are_read_and_written() -> None:
    assert ProtobufDeserializationSchema(Timestamp).deserialize(
        ProtobufSerializationSchema().serialize(Timestamp(seconds=7))
    ) == Timestamp(seconds=7)
    with pytest.raises(
        ProgramError,
        match=r"'no message' is no object of a generated class: .* ProtobufRowSerializationSchema",
    ):
        ProtobufSerializationSchema().serialize("no message")


def test_a_none_where_protobuf_has_none_is_refused() -> None:
    with pytest.raises(
        ProgramError,
        match="field 'value': it is None, and the field has no presence; declare it optional",
    ):
        ProtobufRowSerializationSchema(Int32Value).serialize(Row(None))
    with pytest.raises(
        ProgramError, match=r"field 'value': 2.9 \(float\) is no value of Types.INT"
    ):
        ProtobufRowSerializationSchema(Int32Value).serialize(Row(2.9))


def test_two_members_of_a_oneof_are_refused_as_only_one_would_be_written() -> None:
    message_class = old_kinds()
    row = {"number": 1, "text": "x", "name": None}
    batch = pa.RecordBatch.from_pylist([row], ProtobufColumnarDecoder(message_class).schema)
    for write in (
        lambda: ProtobufRowSerializationSchema(message_class).serialize(row),
        lambda: ProtobufColumnarEncoder(message_class).encode(batch),
    ):
        with pytest.raises(
            ProgramError,
            match="has several members of the oneof 'either', and a message has one of them",
        ):
            write()
    for one in (
        {**row, "number": None},
        {**row, "text": None},
        {**row, "text": None, "number": None},
    ):
        message = ProtobufRowSerializationSchema(message_class).serialize(one)
        assert ProtobufRowDeserializationSchema(message_class).deserialize(message) == Row(**one)
        assert ProtobufColumnarDecoder(message_class).decode([message]).to_pylist() == [one]


def test_a_text_of_proto2_that_is_no_utf_8_is_malformed() -> None:
    message_class = old_kinds()
    with pytest.raises(MalformedMessageError, match="is no UTF-8, in which Protobuf holds texts"):
        ProtobufRowDeserializationSchema(message_class).deserialize(b"\x1a\x01\xff")
    assert outcomes_of_columns(ProtobufColumnarDecoder(message_class), [b"\x1a\x01\xff", b""]) == [
        "malformed",
        same(Row(number=None, text=None, name=None)),
    ]


def test_unknown_fields_are_left_out() -> None:
    more = Int32Value(value=7).SerializeToString() + b"\x98\x06\x01"
    assert ProtobufRowDeserializationSchema(Int32Value).deserialize(more) == Row(value=7)
    assert outcomes_of_columns(ProtobufColumnarDecoder(Int32Value), [more]) == [same(Row(value=7))]


def test_messages_without_fields_are_rows_without_fields() -> None:
    batch = ProtobufColumnarDecoder(Empty).decode([b"", b""])
    assert list(map(tuple, rows_of_batch(batch))) == [(), ()]
    assert ProtobufColumnarEncoder(Empty).encode(pa.RecordBatch.from_pydict({"more": [1, 2]})) == [
        b"",
        b"",
    ]


def test_something_else_than_a_generated_class_is_refused() -> None:
    with pytest.raises(ProgramError, match="takes a class that protoc generated"):
        ProtobufRowDeserializationSchema(Timestamp())


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        (
            "fastavro",
            (
                "from flinkpy.datastream.formats.avro import *; "
                "AvroRowDeserializationSchema(avro_schema_string='{}')"
            ),
            "avro",
        ),
        (
            "google.protobuf.message",
            (
                "from flinkpy.datastream.formats.protobuf import *; "
                "ProtobufRowDeserializationSchema(int)"
            ),
            "protobuf",
        ),
    ],
)
def test_without_its_package_a_format_says_which_extra_it_needs(
    package: str, code: str, extra: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['{package}'] = None; {code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"needs the extra: pip install 'flinkpy[{extra}]'" in run.stderr.splitlines()[-1]


def test_pyflinks_paths_lead_to_the_formats() -> None:
    names = {
        "json": "JsonRowDeserializationSchema",
        "csv": "CsvRowSerializationSchema",
        "avro": "AvroRowSerializationSchema",
    }
    imports = [
        f"from pyflink.datastream.formats.{module} import {name}" for module, name in names.items()
    ]
    subprocess.run(
        [
            sys.executable,
            "-c",
            "; ".join(
                ["from flinkpy.common.pyflink_imports import install", "install()", *imports]
            ),
        ],
        check=True,
    )

"""Avro messages: rows and columns mean the same, no value is changed, and a malformed message is
found."""

from __future__ import annotations

import datetime
import json
import pickle
import re
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.columns.values.conversion import batch_of_rows, rows_of_batch
from flinkpy.common import Instant, Row, Types
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.formats.avro import (
    AvroColumnarDecoder,
    AvroColumnarEncoder,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)
from flinkpy.formats.avro import avro_columns
from flinkpy.formats.port import MalformedMessageError
from tests.formats.drawn import (
    avro_schema_of,
    damaged,
    outcome,
    outcomes_of_columns,
    same,
    typed_rows,
)


def values(found: Any) -> Any:
    """Without the names of fields, which are others in Avro."""
    return (
        [values(each) for each in found[2]]
        if isinstance(found, tuple) and found[0] == "row"
        else (
            [values(each) for each in found]
            if isinstance(found, list)
            else {key: values(each) for key, each in found[1].items()}
            if isinstance(found, tuple) and found[0] == "dict"
            else found
        )
    )


@given(typed_rows())
def test_what_is_written_is_read_again(drawn: Any) -> None:
    type_info, rows = drawn
    schema = avro_schema_of(type_info)
    write = AvroRowSerializationSchema(None, schema)
    read = AvroRowDeserializationSchema(None, schema)
    assert [values(same(read.deserialize(write.serialize(tuple(row))))) for row in rows] == [
        values(same(row)) for row in rows
    ]


@given(typed_rows())
def test_columns_are_written_as_rows_are_to_the_byte(drawn: Any) -> None:
    type_info, rows = drawn
    schema = avro_schema_of(type_info)
    if rows:
        batch = batch_of_rows([tuple(row) for row in rows], AvroColumnarDecoder(schema).schema)
        write = AvroRowSerializationSchema(None, schema)
        assert AvroColumnarEncoder(schema).encode(batch) == [
            write.serialize(tuple(row)) for row in rows
        ]


@given(typed_rows(), st.data())
def test_columns_are_read_as_rows_are_and_find_the_same_malformed_messages(
    drawn: Any, data: st.DataObject
) -> None:
    type_info, rows = drawn
    schema = avro_schema_of(type_info)
    write = AvroRowSerializationSchema(None, schema)
    read = AvroRowDeserializationSchema(None, schema)
    messages = data.draw(damaged([write.serialize(tuple(row)) for row in rows]))
    with mock.patch.object(avro_columns, "_FEW", 1):
        assert outcomes_of_columns(AvroColumnarDecoder(schema), messages) == [
            outcome(read.deserialize, message) for message in messages
        ]


def record(*kinds: Any, **more: Any) -> str:
    return json.dumps(
        {
            "type": "record",
            "name": "test",
            "fields": [{"name": f"f{at}", "type": kind} for at, kind in enumerate(kinds)],
            **more,
        }
    )


def several(row: Any) -> list[Any]:
    return [row] * 30  # enough to be decoded all at once


UTC = datetime.timezone.utc
KINDS: list[tuple[Any, Any, Any]] = [  # a type, a value of it, its declared type
    ("null", None, Types.PICKLED_BYTE_ARRAY()),
    ("boolean", True, Types.BOOLEAN()),
    ("int", -(1 << 31), Types.INT()),
    ("long", (1 << 63) - 1, Types.LONG()),
    ("float", 0.5, Types.FLOAT()),
    ("double", 0.1, Types.DOUBLE()),
    ("bytes", b"\xff", Types.PRIMITIVE_ARRAY(Types.BYTE())),
    ("string", "né", Types.STRING()),
    ({"type": "enum", "name": "suit", "symbols": ["SPADES", "HEARTS"]}, "HEARTS", Types.STRING()),
    ({"type": "fixed", "name": "pair", "size": 2}, b"ab", Types.PRIMITIVE_ARRAY(Types.BYTE())),
    (
        {
            "type": "array",
            "items": {
                "type": "record",
                "name": "item",
                "fields": [{"name": "int", "type": "int"}, {"name": "double", "type": "double"}],
            },
        },
        [Row(int=1, double=2.0), Row(int=3, double=4.0)],
        Types.LIST(Types.ROW_NAMED(["int", "double"], [Types.INT(), Types.DOUBLE()])),
    ),
    ({"type": "map", "values": "long"}, {"a": 1, "b": 2}, Types.MAP(Types.STRING(), Types.LONG())),
    ({"type": "int", "logicalType": "date"}, datetime.date(1, 1, 1), Types.SQL_DATE()),
    (
        {"type": "int", "logicalType": "time-millis"},
        datetime.time(23, 59, 59, 999_000),
        Types.SQL_TIME(),
    ),
    (
        {"type": "long", "logicalType": "time-micros"},
        datetime.time(23, 59, 59, 999_999),
        Types.SQL_TIME(),
    ),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        datetime.datetime(2024, 5, 1, 12, 0, 0, 1000, UTC),
        Types.INSTANT(),
    ),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        datetime.datetime(2024, 5, 1, 12, 0, 0, 1, UTC),
        Types.INSTANT(),
    ),
    (
        {"type": "long", "logicalType": "local-timestamp-millis"},
        datetime.datetime(2024, 5, 1, 12),
        Types.SQL_TIMESTAMP(),
    ),
    (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        datetime.datetime(1969, 5, 1, 12, 0, 0, 1),
        Types.SQL_TIMESTAMP(),
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        Decimal("-123.45"),
        Types.BIG_DEC(),
    ),
    (
        {
            "type": "fixed",
            "name": "money",
            "size": 3,
            "logicalType": "decimal",
            "precision": 5,
            "scale": 2,
        },
        Decimal("123.45"),
        Types.BIG_DEC(),
    ),
    ({"type": "string", "logicalType": "uuid"}, str(uuid.UUID(int=7)), Types.STRING()),
    (["string", "null"], None, Types.STRING()),
]


@pytest.mark.parametrize(("kind", "value", "type_info"), KINDS, ids=lambda each: str(each)[:40])
def test_every_type_of_avro_is_written_and_read_as_rows_and_columns(
    kind: Any, value: Any, type_info: Any
) -> None:
    schema = record(kind, ["null", "string"])
    write = AvroRowSerializationSchema(avro_schema_string=schema)
    read = AvroRowDeserializationSchema(avro_schema_string=schema)
    rows = [Row(f0=value, f1=None), Row(f0=value, f1="x")] * 20
    messages = list(map(write.serialize, rows))
    assert list(map(read.deserialize, messages)) == rows
    assert read.get_produced_type() == Types.ROW_NAMED(["f0", "f1"], [type_info, Types.STRING()])
    decoder, encoder = AvroColumnarDecoder(schema), AvroColumnarEncoder(schema)
    batch = decoder.decode(messages)
    assert rows_of_batch(batch) == rows
    assert rows_of_batch(decoder.decode([None, *messages])) == [Row(f0=None, f1=None), *rows]
    assert encoder.encode(batch) == messages


def test_pyflinks_example_writes_rows_of_other_names_by_position() -> None:
    schema = """{"type": "record", "name": "TestRecord", "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]}"""
    message = AvroRowSerializationSchema(avro_schema_string=schema).serialize(Row(f0=6, f1="hello"))
    assert AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(message) == Row(
        id=6, name="hello"
    )


def test_a_named_type_may_be_used_again() -> None:
    suit = {"type": "enum", "name": "cards.suit", "symbols": ["SPADES"]}
    schema = record(
        suit,
        {
            "type": "record",
            "name": "hand",
            "namespace": "cards",
            "fields": [{"name": "best", "type": "suit"}],
        },
        "cards.suit",
    )
    message = AvroRowSerializationSchema(avro_schema_string=schema).serialize(
        ("SPADES", {"best": "SPADES"}, "SPADES")
    )
    assert AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(message) == Row(
        f0="SPADES", f1=Row(best="SPADES"), f2="SPADES"
    )


def test_a_union_of_several_types_is_for_rows_only() -> None:
    schema = record(["int", "double", "null"])
    write = AvroRowSerializationSchema(avro_schema_string=schema)
    read = AvroRowDeserializationSchema(avro_schema_string=schema)
    assert [tuple(read.deserialize(write.serialize((value,)))) for value in (1, 2.5, None)] == [
        (1,),
        (2.5,),
        (None,),
    ]
    for made in (AvroColumnarDecoder, AvroColumnarEncoder):
        with pytest.raises(
            ProgramError, match=r"a column has one type, and field .* is a union of several"
        ):
            made(schema)


OLD = record("int", "string", ["null", "float"], "long")
NEW = json.dumps(
    {
        "type": "record",
        "name": "test",
        "fields": [
            {"name": "f3", "type": "double"},
            {"name": "f0", "type": ["null", "long"]},
            {"name": "f1", "type": "bytes"},
            {"name": "new", "type": "string", "default": "n"},
            {"name": "none", "type": ["null", "int"], "default": None},
            {"name": "f2", "type": ["null", "double"]},
        ],
    }
)


def test_a_changed_schema_is_resolved_in_rows_and_columns_alike() -> None:
    messages = list(
        map(
            AvroRowSerializationSchema(avro_schema_string=OLD).serialize,
            several((1, "x", 0.5, 1 << 40)) + several((-1, "", None, 2)),
        )
    )
    read = AvroRowDeserializationSchema(avro_schema_string=NEW, writer_schema=OLD)
    decoder = AvroColumnarDecoder(NEW, writer_schema=OLD)
    assert decoder._columns is not None
    rows = rows_of_batch(decoder.decode(messages))
    assert rows == list(map(read.deserialize, messages))
    assert rows[0] == Row(f3=float(1 << 40), f0=1, f1=b"x", new="n", none=None, f2=0.5)
    assert rows_of_batch(pickle.loads(pickle.dumps(decoder)).decode(messages[:2])) == rows[:2]


def test_a_new_field_has_its_default_as_a_value_of_its_type() -> None:
    defaults: list[tuple[Any, Any, Any]] = [
        ({"type": "int", "logicalType": "date"}, 1, datetime.date(1970, 1, 2)),
        ("bytes", "\u00ff", b"\xff"),
        ("string", "x", "x"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            1500,
            datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            1,
            datetime.datetime(1970, 1, 1, 0, 0, 0, 1),
        ),
        ({"type": "int", "logicalType": "time-millis"}, 1500, datetime.time(0, 0, 1, 500_000)),
        (["null", "int"], None, None),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            "\u0001\u0000",
            Decimal("2.56"),
        ),
        ({"type": "array", "items": "int"}, [1], [1]),
        ("float", 0.1, 0.10000000149011612),
        (
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": "bytes"}]},
            {"a": "b"},
            Row(a=b"b"),
        ),
    ]
    new = json.dumps(
        {
            "type": "record",
            "name": "test",
            "fields": [
                {"name": f"g{at}", "type": kind, "default": default}
                for at, (kind, default, _) in enumerate(defaults)
            ],
        }
    )
    messages = list(
        map(AvroRowSerializationSchema(avro_schema_string=OLD).serialize, several((1, "x", 0.5, 2)))
    )
    row = AvroRowDeserializationSchema(avro_schema_string=new, writer_schema=OLD).deserialize(
        messages[0]
    )
    assert list(row) == [value for _, _, value in defaults]
    assert rows_of_batch(AvroColumnarDecoder(new, writer_schema=OLD).decode(messages)) == several(
        row
    )


@pytest.mark.parametrize(
    "wanted",
    [
        {"name": "other", "aliases": ["f0"], "type": "int"},
        {"name": "f0", "type": ["null", "int", "string"]},
        {"name": "f0", "type": ["int", "string"]},
        {"name": "new", "type": {"type": "array", "items": "int"}, "default": []},
    ],
)
def test_what_only_fastavro_can_resolve_is_left_to_it(wanted: Any) -> None:
    new = json.dumps({"type": "record", "name": "test", "fields": [wanted]})
    messages = list(
        map(AvroRowSerializationSchema(avro_schema_string=OLD).serialize, several((1, "x", 0.5, 2)))
    )
    read = AvroRowDeserializationSchema(avro_schema_string=new, writer_schema=OLD)
    found = read.deserialize(messages[0])
    assert found[0] == (1 if "f0" in str(wanted) else [])
    if "string" not in str(wanted):
        assert (
            rows_of_batch(AvroColumnarDecoder(new, writer_schema=OLD).decode(messages))
            == [found] * 30
        )


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("written", "wanted", "value", "found"),
    [
        (
            logical("long", "timestamp-millis"),
            logical("long", "timestamp-micros"),
            datetime.datetime(2024, 5, 1, tzinfo=UTC),
            None,
        ),
        (
            logical("int", "time-millis"),
            logical("long", "time-micros"),
            datetime.time(1, 2, 3),
            None,
        ),
        (
            logical("bytes", "decimal", precision=6, scale=2),
            logical("bytes", "decimal", precision=9, scale=2),
            Decimal("-12.34"),
            None,
        ),
        (logical("bytes", "decimal", precision=6, scale=2), "bytes", Decimal("2.56"), b"\x01\x00"),
        (
            "long",
            logical("long", "timestamp-millis"),
            1500,
            datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
        ),
        (logical("string", "uuid"), "string", str(uuid.UUID(int=7)), None),
        ("string", logical("string", "uuid"), "no uuid", None),
        ("int", "float", 16_777_217, 16_777_216.0),
        ("long", "float", (1 << 60) + 1, float(1 << 60)),
        ("long", "double", (1 << 60) + 1, float(1 << 60)),
        (
            {"type": "map", "values": "int"},
            {"type": "map", "values": "float"},
            {"a": 16_777_217},
            {"a": 16_777_216.0},
        ),
        (
            {"type": "array", "items": "int"},
            {"type": "array", "items": ["null", "long"]},
            [1],
            None,
        ),
    ],
    ids=str,
)
def test_a_value_stays_what_it_is_when_the_schema_changes(
    written: Any, wanted: Any, value: Any, found: Any
) -> None:
    messages = several(
        AvroRowSerializationSchema(avro_schema_string=record(written)).serialize(Row(value))
    )
    read = AvroRowDeserializationSchema(
        avro_schema_string=record(wanted), writer_schema=record(written)
    )
    row = Row(f0=value if found is None else found)
    assert (read.deserialize(messages[0]), type(read.deserialize(messages[0])[0])) == (
        row,
        type(row[0]),
    )
    assert rows_of_batch(
        AvroColumnarDecoder(record(wanted), writer_schema=record(written)).decode(messages)
    ) == several(row)


@pytest.mark.parametrize(
    ("written", "wanted", "why"),
    [
        (
            logical("bytes", "decimal", precision=6, scale=2),
            logical("bytes", "decimal", precision=6, scale=4),
            "field 'f0' was written as decimal(6, 2), and cannot be read as decimal(6, 4)",
        ),
        (
            logical("long", "timestamp-millis"),
            "long",
            "written as timestamp-millis, and cannot be read as long",
        ),
        (logical("int", "date"), ["null", "int"], "written as date, and cannot be read as int"),
        (
            logical("long", "local-timestamp-millis"),
            logical("long", "timestamp-millis"),
            "cannot be read as timestamp-millis",
        ),
        (
            {"type": "array", "items": logical("int", "date")},
            {"type": "array", "items": "int"},
            "written as date",
        ),
    ],
)
def test_a_value_that_would_become_another_one_is_refused_when_the_schema_changes(
    written: Any, wanted: Any, why: str
) -> None:
    for made in (
        lambda text, writer: AvroRowDeserializationSchema(
            avro_schema_string=text, writer_schema=writer
        ),
        lambda text, writer: AvroColumnarDecoder(text, writer_schema=writer),
    ):
        with pytest.raises(ProgramError, match=re.escape(why)):
            made(record(wanted), record(written))


def test_what_has_another_name_is_refused_by_columns_as_by_rows() -> None:
    def inner(name: str) -> Any:
        return {"type": "record", "name": name, "fields": [{"name": "a", "type": "int"}]}

    for written, wanted, value in (
        (record("int"), record("int").replace("test", "other"), 5),
        (record(inner("p")), record(inner("q")), Row(5)),
    ):
        messages = several(
            AvroRowSerializationSchema(avro_schema_string=written).serialize(Row(value))
        )
        read = AvroRowDeserializationSchema(avro_schema_string=wanted, writer_schema=written)
        assert outcome(read.deserialize, messages[0]) == "malformed"
        assert outcomes_of_columns(
            AvroColumnarDecoder(wanted, writer_schema=written), messages
        ) == several("malformed")


def test_a_decimal_in_a_union_of_several_types_is_read_as_it_was_written() -> None:
    schema = record(["null", "string", logical("bytes", "decimal", precision=6, scale=2)])
    write = AvroRowSerializationSchema(avro_schema_string=schema)
    read = AvroRowDeserializationSchema(avro_schema_string=schema)
    assert [
        read.deserialize(write.serialize((value,)))[0] for value in (Decimal("1.50"), "x", None)
    ] == [Decimal("1.50"), "x", None]


def test_a_uuid_is_its_text_to_the_letter() -> None:
    schema = record(logical("string", "uuid"))
    message = AvroRowSerializationSchema(avro_schema_string=schema).serialize(
        Row("ABCDEF00-0000-0000-0000-000000000007")
    )
    assert (
        AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(message)[0]
        == "ABCDEF00-0000-0000-0000-000000000007"
    )


def test_a_decimal_without_digits_is_bytes_and_one_of_too_many_is_for_rows_only() -> None:
    assert AvroColumnarDecoder(record(logical("bytes", "decimal"))).schema.types == [pa.binary()]
    schema = record(logical("bytes", "decimal", precision=100))
    assert AvroRowSerializationSchema(avro_schema_string=schema).serialize(Row(Decimal(10) ** 90))
    with pytest.raises(
        ProgramError,
        match=re.escape(
            "decimals of 1 to 76 digits, and the Avro schema has decimal(100, 0); read it as rows"
        ),
    ):
        AvroColumnarDecoder(schema)


def test_messages_of_a_record_without_fields_are_rows_without_fields() -> None:
    batch = AvroColumnarDecoder(record()).decode([b"", b""])
    assert list(map(tuple, rows_of_batch(batch))) == [(), ()]
    assert AvroColumnarEncoder(record()).encode(batch) == [b"", b""]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"", "it ends within the record"),
        (b"\x02", "it ends within the record"),
        (b"\x02\x02a\x00\x04!", "1 of its 6 bytes are left behind the record"),
        (b"\x02\x02\xff\x00\x04", "it is no record of the schema (UnicodeDecodeError"),
        (b"\x02\x02a\x08\x04", "it is no record of the schema"),
    ],
)
def test_a_malformed_message_is_shown_with_the_reason(message: bytes, why: str) -> None:
    with pytest.raises(MalformedMessageError, match=re.escape(why)):
        AvroRowDeserializationSchema(avro_schema_string=OLD).deserialize(message)
    good = b"\x02\x02a\x00\x04"
    batch, malformed = AvroColumnarDecoder(OLD).decode_well_formed(
        [*several(good), message, *several(good)]
    )
    assert (batch.num_rows, [error.index for error in malformed]) == (60, [30])
    assert why in malformed[0].why


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("int", 2.9, "2.9 (float) is no value of Types.INT()"),
        ("int", 1 << 31, "is outside"),
        ("string", None, "it is None, and the schema allows no null"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            datetime.datetime(2024, 5, 1, 0, 0, 0, 1, UTC),
            "has parts of milliseconds",
        ),
        (
            {"type": "int", "logicalType": "time-millis"},
            datetime.time(0, 0, 0, 1),
            "has parts of milliseconds",
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            datetime.datetime(2024, 5, 1),
            "has no zone",
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            Instant(0, 1),
            "give a datetime with a zone",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            Decimal("1.234"),
            "has more than 2 decimals",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            Decimal("123.45"),
            "has more digits than a decimal(4, 2)",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            Decimal("NaN"),
            "is no number of a decimal(4, 2)",
        ),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "B", "is none of the enum's symbols: A"),
        ({"type": "map", "values": "int"}, {1: 1}, "those are texts"),
        ({"type": "fixed", "name": "f", "size": 2}, b"abc", "3 bytes do not fill a fixed of 2"),
        ({"type": "array", "items": "int"}, [None], "allows no null"),
        ("string", "\ud800", "half of a surrogate pair"),
    ],
)
def test_a_value_that_avro_would_cut_or_refuse_is_refused(kind: Any, value: Any, why: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(why)):
        AvroRowSerializationSchema(avro_schema_string=record(kind)).serialize(Row(value))


def test_columns_that_the_schema_does_not_have_are_refused() -> None:
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    for kind, column, why in [
        ("int", [2.5], "the columns cannot be written as Avro: column 'f0'"),
        ("int", [None], "column 'f0' cannot be written as Avro: it has a null"),
        (millis, [datetime.datetime(2024, 5, 1, 0, 0, 0, 1, UTC)], "parts of milliseconds"),
        (
            {"type": "enum", "name": "e", "symbols": ["A"]},
            ["B"],
            "'B' is none of the enum's symbols: A",
        ),
        (
            {
                "type": "fixed",
                "name": "f",
                "size": 1,
                "logicalType": "decimal",
                "precision": 2,
                "scale": 0,
            },
            [Decimal(-129)],
            "cannot be written as Avro",
        ),
    ]:
        with pytest.raises(ProgramError, match=re.escape(why)):
            AvroColumnarEncoder(record(kind)).encode(pa.RecordBatch.from_pydict({"f0": column}))
    with pytest.raises(ProgramError, match="no column f0"):
        AvroColumnarEncoder(record("int")).encode(pa.RecordBatch.from_pydict({"other": [1]}))


def test_wrong_arguments_are_refused_with_what_to_give(tmp_path: Path) -> None:
    tree = {
        "type": "record",
        "name": "tree",
        "fields": [{"name": "left", "type": ["null", "tree"]}],
    }
    calls: list[tuple[Any, str]] = [
        (
            lambda: AvroRowDeserializationSchema(record_class="org.Visit"),
            "record_class names a class of Java",
        ),
        (lambda: AvroRowSerializationSchema(), "needs avro_schema_string"),
        (lambda: AvroSchema.parse_string("{"), "the Avro schema is no JSON"),
        (lambda: AvroSchema.parse_string('{"type": "nothing"}'), "this is no Avro schema"),
        (
            lambda: AvroRowDeserializationSchema(avro_schema_string='"int"'),
            "takes the schema of a record, this is one of int",
        ),
        (
            lambda: AvroRowDeserializationSchema(avro_schema_string=json.dumps(tree)),
            "the Avro record 'tree' contains itself",
        ),
        (
            lambda: AvroSchema.parse_file(str(tmp_path / "none.avsc")),
            "the Avro schema cannot be read",
        ),
        (lambda: GenericRecordAvroTypeInfo("schema"), "takes an AvroSchema"),  # type: ignore[arg-type]
    ]
    for call, why in calls:
        with pytest.raises(ProgramError, match=re.escape(why)):
            call()


def test_a_schema_is_read_from_a_file_and_is_equal_to_its_text(tmp_path: Path) -> None:
    (tmp_path / "visit.avsc").write_text(OLD)
    schema = AvroSchema.parse_file(str(tmp_path / "visit.avsc"))
    assert schema == AvroSchema.parse_string(OLD) == pickle.loads(pickle.dumps(schema))
    assert json.loads(str(schema)) == json.loads(OLD)
    turned = AvroSchema.parse_string(json.dumps(dict(reversed(json.loads(OLD).items()))))
    assert (turned, hash(turned)) == (schema, hash(schema))
    assert GenericRecordAvroTypeInfo(schema) == GenericRecordAvroTypeInfo(
        AvroSchema.parse_string(OLD)
    )


def test_messages_that_all_end_too_early_are_found_however_many_fields_are_missing() -> None:
    schema = record(*["long"] * 40, *["double"] * 5, "string")
    batch, malformed = AvroColumnarDecoder(schema).decode_well_formed([b""] * 20 + [b"\x02"] * 20)
    assert (batch.num_rows, [error.index for error in malformed]) == (0, list(range(40)))


LONG = b"\xff" * 9 + b"\x01"  # the least long


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (["string", "int"], b"\x01"),
        (["string"], b"\x80\x80\x80\x80\x80\x80\x02"),
        (["bytes"], LONG),
        (["string", "string"], b"\x03\x02ab"),
        ([["null", "int"]], b"\x04\x02"),
        ([["null", "int"]], b"\x01\x02"),
        (["boolean"], b"\x02"),
        (["int"], LONG),
        (["int"], b"\x80\x80\x80\x80\x10"),
        (["long"], b"\xff" * 10),
        (["long"], b"\xff" * 9 + b"\x02"),
        (["long"], b"\x80" * 11 + b"\x01"),
        (["long"], b"\x80\x00"),
        (["double"], b"1234567"),
        ([{"type": "enum", "name": "e", "symbols": ["A", "B"]}], b"\x04"),
        ([{"type": "fixed", "name": "f", "size": 3}], b"ab"),
        ([{"type": "array", "items": "int"}], b"\x02\x02"),
        ([{"type": "array", "items": "int"}], LONG),
        ([{"type": "array", "items": "int"}], b"\x7e\x02\x00"),
        ([{"type": "array", "items": "null"}], b"\x04\x00"),
        ([{"type": "map", "values": "int"}], b"\x04\x02a\x02\x02a\x04\x00"),
        ([{"type": "int", "logicalType": "date"}], b"\xff\xff\xff\xff\x0f"),
        ([{"type": "int", "logicalType": "time-millis"}], b"\x01"),
        ([{"type": "long", "logicalType": "timestamp-micros"}], LONG),
        ([{"type": "long", "logicalType": "local-timestamp-millis"}], LONG),
        (
            [{"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 0}],
            b"\x04\x7f\xff",
        ),
        ([{"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 0}], b"\x00"),
    ],
)
def test_odd_bytes_mean_the_same_in_rows_and_columns(kinds: list[Any], message: bytes) -> None:
    schema = record(*kinds)
    read = AvroRowDeserializationSchema(avro_schema_string=schema)
    decoder = AvroColumnarDecoder(schema)
    assert outcomes_of_columns(decoder, several(message)) == several(
        outcome(read.deserialize, message)
    )


def test_blocks_of_lists_with_their_size_and_several_blocks_are_read() -> None:
    schema = record({"type": "array", "items": "long"})
    # two elements with the block's size, one without
    message = b"\x03\x04\x02\x04" + b"\x02\x06" + b"\x00"
    assert AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(message) == Row(
        f0=[1, 2, 3]
    )
    assert AvroColumnarDecoder(schema).decode(several(message)).to_pydict() == {
        "f0": [[1, 2, 3]] * 30
    }

"""JSON messages: rows and columns mean the same, no value is changed, and a malformed message is
found."""

from __future__ import annotations

import datetime
import pickle
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.columns.values.conversion import batch_of_rows
from flinkpy.common import Row, Types
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.formats.csv import CsvColumnarEncoder, CsvRowSerializationSchema
from flinkpy.datastream.formats.json import (
    JsonColumnarDecoder,
    JsonColumnarEncoder,
    JsonDeserializationSchema,
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
    JsonSerializationSchema,
)
from flinkpy.formats.port import MalformedMessageError
from tests.formats.drawn import (
    BYTES,
    SINGLE,
    damaged,
    outcome,
    outcomes_of_columns,
    same,
    typed_rows,
)
from tests.formats.odd_texts import ARROW_TYPES, ODD_TEXTS, check_arrow_against_rows


@given(typed_rows())
def test_what_is_written_is_read_again(drawn: Any) -> None:
    type_info, rows = drawn
    write, read = JsonRowSerializationSchema(type_info), JsonRowDeserializationSchema(type_info)
    assert [same(read.deserialize(write.serialize(row))) for row in rows] == same(rows)


@given(typed_rows())
def test_columns_are_written_as_rows_are(drawn: Any) -> None:
    type_info, rows = drawn
    decoder, read = JsonColumnarDecoder(type_info), JsonRowDeserializationSchema(type_info)
    if rows:
        messages = JsonColumnarEncoder().encode(batch_of_rows(rows, decoder.schema))
        assert [same(read.deserialize(message)) for message in messages] == same(rows)


@given(typed_rows(), st.data())
def test_columns_are_read_as_rows_are_and_find_the_same_malformed_messages(
    drawn: Any, data: st.DataObject
) -> None:
    type_info, rows = drawn
    write = JsonRowSerializationSchema(type_info)
    messages = data.draw(damaged([write.serialize(row) for row in rows]))
    required = data.draw(st.booleans())
    read = JsonRowDeserializationSchema(type_info, required)
    decoder = JsonColumnarDecoder(type_info, required)
    assert outcomes_of_columns(decoder, messages) == [
        outcome(read.deserialize, message) for message in messages
    ]


VISIT = Types.ROW_NAMED(
    ["shop", "n", "tags", "place"],
    [
        Types.STRING(),
        Types.INT(),
        Types.LIST(Types.STRING()),
        Types.ROW_NAMED(["x"], [Types.DOUBLE()]),
    ],
)


def test_pyflinks_example_is_read_and_written_as_there() -> None:
    row_schema = Types.ROW_NAMED(
        ["svt", "ops", "ids"],
        [
            Types.STRING(),
            Types.ROW_NAMED(["id"], [Types.STRING()]),
            Types.PRIMITIVE_ARRAY(Types.INT()),
        ],
    )
    write = JsonRowSerializationSchema.builder().with_type_info(row_schema).build()
    read = JsonRowDeserializationSchema.builder().type_info(row_schema).build()
    short = b'{"svt":"2020-02-24T12:58:09.209+0800"}'
    full = b'{"svt":"2020-02-24", "ops":{"id":"281708d0-4092"},"ids":[1, 2, 3]}'
    assert (
        write.serialize(read.deserialize(short))
        == b'{"svt":"2020-02-24T12:58:09.209+0800","ops":null,"ids":null}'
    )
    assert (
        write.serialize(read.deserialize(full))
        == b'{"svt":"2020-02-24","ops":{"id":"281708d0-4092"},"ids":[1,2,3]}'
    )
    assert read.get_produced_type() == row_schema


def test_arrow_reads_a_batch_in_one_go_whatever_blanks_and_line_ends_are_in_it() -> None:
    decoder = JsonColumnarDecoder(VISIT)
    messages = [
        b'{"shop": "Oslo", "n": 1, "late": 2}',
        b'  {"tags": ["a",\n null], \r\n"place": {"x": 2, "y": 3}}\n',
        None,
        b'{"place": null, "shop": "}{"}',
    ]
    batch = decoder._by_arrow(messages)
    assert batch is not None
    assert batch.to_pylist() == [
        {"shop": "Oslo", "n": 1, "tags": None, "place": None},
        {"shop": None, "n": None, "tags": ["a", None], "place": {"x": 2.0}},
        dict.fromkeys(["shop", "n", "tags", "place"]),
        {"shop": "}{", "n": None, "tags": None, "place": None},
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [b'{"n": 1}{"n": 2}', b" "],
        [b'{"n": 1', b"}"],
        [b'{"n": 1}{"shop": "}', b'{"}'],
        [b"{}{}", b"{"],
        [b'{"tags": ["}', b'{"]}'],
        [b'[{"n": 1}]', b"{}"],
        [b'{"n": 1}\n{"n": 2}', b"{}"],
        [b"", b"{}{}"],
    ],
)
def test_messages_that_only_together_are_json_are_malformed(messages: list[bytes]) -> None:
    read, decoder = JsonRowDeserializationSchema(VISIT), JsonColumnarDecoder(VISIT)
    assert outcomes_of_columns(decoder, messages) == [
        outcome(read.deserialize, message) for message in messages
    ]
    assert decoder.decode_well_formed(messages).malformed != []


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b'{"n": 2.9}', "field 'n': 2.9 (float) is no value of Types.INT()"),
        (b'{"n": 3000000000}', "field 'n': 3000000000 is outside"),
        (b'{"n": "5"}', "field 'n': '5' (str) is no value of Types.INT()"),
        (b'{"n": true}', "field 'n': True (bool)"),
        (b'{"shop": 5}', "field 'shop': 5 (int) is no value of Types.STRING()"),
        (b'{"place": {"x": 1e999}}', "field 'place': field 'x': inf is too large"),
        (b'{"place": []}', "field 'place': [] (list) is no object with the fields x"),
        (b'{"tags": {}}', "field 'tags': {} (dict) is no list"),
        (b"[1]", "[1] (list) is no object"),
        (b"null", "None (NoneType) is no object"),
        (b'{"shop": "x', "it is no JSON (Unterminated string"),
        (b"", "it is no JSON (Expecting value at character 0)"),
        (
            b'{"shop": "\xff"}',
            ("it is no UTF-8, in which JSON is written (invalid start byte at byte 10)"),
        ),
        (b'{"shop": "\\ud800"}', "a text has half of a surrogate pair"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"n": ' + b"9" * 5000 + b"}", "limit"),
    ],
)
def test_a_malformed_message_is_shown_with_the_reason(message: bytes, why: str) -> None:
    with pytest.raises(MalformedMessageError) as row_error:
        JsonRowDeserializationSchema(VISIT).deserialize(message)
    with pytest.raises(MalformedMessageError) as column_error:
        JsonColumnarDecoder(VISIT).decode([b"{}", message])
    assert why in str(row_error.value)
    assert column_error.value.index == 1
    assert column_error.value.why == row_error.value.why
    assert str(column_error.value) == (
        f"message 1 cannot be decoded: {row_error.value.why}: "
        f"{message[:60]!r}{'…' * (len(message) > 60)}"
    )
    assert pickle.loads(pickle.dumps(column_error.value)).why == column_error.value.why


def test_a_missing_field_is_null_or_an_error() -> None:
    assert JsonRowDeserializationSchema(VISIT).deserialize(b"{}") == Row(
        shop=None, n=None, tags=None, place=None
    )
    strict = JsonRowDeserializationSchema.builder().type_info(VISIT).fail_on_missing_field().build()
    with pytest.raises(MalformedMessageError, match="field 'tags' is missing"):
        strict.deserialize(b'{"shop": "a", "n": 1}')
    decoder = JsonColumnarDecoder(VISIT, fail_on_missing_field=True)
    good = b'{"shop": null, "n": 1, "tags": [], "place": {"x": 1}}'
    batch, malformed = decoder.decode_well_formed(
        [good, b'{"shop": "a", "n": 1}', good[:-4] + b"}}", good]
    )
    assert (batch.num_rows, [error.index for error in malformed]) == (2, [1, 2])


def test_parse_errors_can_be_left_out() -> None:
    read = JsonRowDeserializationSchema.builder().type_info(VISIT).ignore_parse_errors().build()
    assert [read.deserialize(message) for message in (b"{", b'{"n": 2.9}')] == [None, None]
    assert JsonDeserializationSchema(ignore_parse_errors=True).deserialize(b"{") is None


def test_floats_that_json_has_not_are_texts_or_the_bare_words_of_other_writers() -> None:
    numbers = Types.ROW_NAMED(["x"], [Types.DOUBLE()])
    read = JsonRowDeserializationSchema(numbers)
    for text in (
        b'"NaN"',
        b"NaN",
        b'"Infinity"',
        b"Infinity",
        b'"-Infinity"',
        b"-Infinity",
        b"1e308",
    ):
        message = b'{"x": ' + text + b"}"
        assert outcomes_of_columns(JsonColumnarDecoder(numbers), [message]) == [
            same(read.deserialize(message))
        ]
    assert JsonRowSerializationSchema(numbers).serialize(Row(float("-inf"))) == b'{"x":"-Infinity"}'


@pytest.mark.parametrize(
    ("type_info", "texts"),
    [
        (
            Types.DOUBLE(),
            ["-NaN", "Inf", "-Inf", "nan", "1e400", "-0.0", "123456789012345678901234567890"],
        ),
        (Types.LONG(), ["-0", "1.0", "1e2", "9223372036854775808", "01", "+1"]),
        (
            Types.BIG_INT(),
            [
                '"1"',
                '"-12345678901234567890"',
                '"1.0"',
                '"1e2"',
                '" 1"',
                '"+1"',
                '"1_0"',
                '"0x1"',
                '""',
                '"1.5"',
                "1.5",
                "1e20",
            ],
        ),
        (
            Types.BIG_DEC(),
            ['"1.50"', "1.5", '" 1.5"', '"+1"', '"1_0"', '""', '".5"', '"1."', '"1e2"', "-0.0"],
        ),
        (Types.STRING(), ['"\\udc00"', '"\\ud800\\udc00"', '"\\u0000"', '"\x01"', '"\\/"']),
        (
            Types.SQL_DATE(),
            ['"0000-01-01"', '"0001-01-01"', '"9999-12-31"', '"10000-01-01"', '"20240501"', "5"],
        ),
        (Types.SQL_TIME(), ['"12"', '"12:30"', '"12:30:00.1234567"', '"24:00"', '"12:30:00Z"']),
        (
            Types.SQL_TIMESTAMP(),
            [
                '"2024-05-01"',
                '"2024-05-01T12"',
                '"2024-05-01T1230"',
                '"2024-05-01 12:30:60"',
                '"0000-12-31 23:00"',
                '"0001-01-01 00:00:00"',
                '"9999-12-31 23:59:59.999999"',
                '"2024-05-01T12Z"',
            ],
        ),
        (
            Types.INSTANT(),
            [
                '"2024-05-01T12Z"',
                '"2024-05-01T12+01"',
                '"2024-05-01T12:30+0100"',
                '"2024-05-01T12:30+01:60"',
                '"2024-05-01T12:30z"',
                '"0001-01-01T00:00:00+01:00"',
                '"9999-12-31T23:59:59-01:00"',
                '"2024-05-01"',
            ],
        ),
        (BYTES, ['"YQ=="', '"YR=="', '"YQ"', '"Y Q=="', '""', '"-_=="']),
    ],
    ids=str,
)
def test_what_other_writers_write_means_the_same_in_rows_and_columns(
    type_info: Any, texts: list[str]
) -> None:
    row_type = Types.ROW_NAMED(["x"], [type_info])
    read, decoder = JsonRowDeserializationSchema(row_type), JsonColumnarDecoder(row_type)
    for text in texts:
        message = f'{{"x": {text}}}'.encode()
        assert outcomes_of_columns(decoder, [message]) == [outcome(read.deserialize, message)], text


@pytest.mark.parametrize("kind", ARROW_TYPES, ids=str)
def test_arrow_reads_nothing_that_rows_read_as_something_else(kind: Any) -> None:
    """Whatever type of Arrow's a column has."""
    decoder = JsonColumnarDecoder(pa.schema([("x", kind)]))
    check_arrow_against_rows(decoder, [(text, f'{{"x": {text}}}'.encode()) for text in ODD_TEXTS])


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+05:30"])
def test_columns_of_other_zones_are_the_same_instants(zone: str) -> None:
    moments = [
        datetime.datetime(1800, 1, 1, 12, tzinfo=datetime.timezone.utc),
        datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.timezone.utc),
    ]
    messages = JsonColumnarEncoder().encode(
        pa.record_batch([pa.array(moments, pa.timestamp("us", zone))], names=["at"])
    )
    read = JsonRowDeserializationSchema(Types.ROW_NAMED(["at"], [Types.INSTANT()]))
    assert [read.deserialize(message).at for message in messages] == moments


@given(st.sampled_from(SINGLE), st.data())
def test_the_keys_of_a_map_are_read_as_they_were_written(key: Any, data: st.DataObject) -> None:
    row_type = Types.ROW_NAMED(["m"], [Types.MAP(key[0], Types.INT())])
    given_map = data.draw(
        st.dictionaries(key[1].filter(lambda each: each == each), st.integers(0, 9), max_size=3)
    )
    message = JsonRowSerializationSchema(row_type).serialize(Row(given_map))
    found = JsonRowDeserializationSchema(row_type).deserialize(message).m
    assert {same(each): value for each, value in found.items()} == {
        same(each): value for each, value in given_map.items()
    }


def test_what_is_nested_too_deeply_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100_000):  # Python 3.13 goes deeper than those before it
        value = [value]
    with pytest.raises(ProgramError, match="cannot be written as JSON: it is nested too deeply"):
        JsonSerializationSchema().serialize(value)


def test_two_keys_of_a_map_that_would_become_one_are_refused() -> None:
    write = JsonRowSerializationSchema(
        Types.ROW_NAMED(["m"], [Types.MAP(Types.FLOAT(), Types.INT())])
    )
    with pytest.raises(
        ProgramError, match=re.escape("has two keys that are the same Types.FLOAT()")
    ):
        write.serialize(Row({0.1: 1, 0.10000000149011612: 2}))


def test_arrow_reads_a_nan_that_is_text_where_it_is_a_float_and_nowhere_else() -> None:
    type_info = Types.ROW_NAMED(
        ["x", "s", "y"], [Types.DOUBLE(), Types.STRING(), Types.ROW_NAMED(["é"], [Types.FLOAT()])]
    )
    messages = [
        '{"x": "NaN", "s": "NaN", "y": {"é":"NaN"}}'.encode(),
        b'{"s": "\\"x\\": \\"NaN\\"", "x": 1}',
    ]
    decoder, read = JsonColumnarDecoder(type_info), JsonRowDeserializationSchema(type_info)
    assert decoder._by_arrow(messages) is not None
    assert outcomes_of_columns(decoder, messages) == [
        outcome(read.deserialize, message) for message in messages
    ]
    for message in (b'{"y": "NaN"}', b'{"s": {"x": "NaN"}}', b'{"x": "NaN "}', b'{"x": ["NaN"]}'):
        assert outcomes_of_columns(decoder, [message]) == ["malformed"]


def test_floats_of_few_digits_are_rounded_once_and_those_that_are_too_large_refused() -> None:
    floats = Types.ROW_NAMED(["x"], [Types.FLOAT()])
    messages = [
        b'{"x": %b}' % text
        for text in (b"0.1", b"1e39", b"3.4028235677973366e38", b"1e-60", b'"NaN"', b"16777217")
    ]
    read = JsonRowDeserializationSchema(floats)
    for batch in (messages, messages[:1], messages[1:2], messages[2:3]):
        assert outcomes_of_columns(JsonColumnarDecoder(floats), batch) == [
            outcome(read.deserialize, message) for message in batch
        ]
    assert outcome(read.deserialize, messages[1]) == "malformed"


def test_maps_and_tuples_are_what_they_are_in_rows() -> None:
    type_info = Types.ROW_NAMED(
        ["m", "t"],
        [Types.MAP(Types.STRING(), Types.INT()), Types.TUPLE([Types.INT(), Types.STRING()])],
    )
    messages = [
        b'{"m": {"a": 1}, "t": [1, "x"]}',
        b'{"m": [{"key": "a", "value": 1}]}',
        b'{"t": {"f0": 1, "f1": "x"}}',
        b'{"t": [1]}',
    ]
    read, decoder = JsonRowDeserializationSchema(type_info), JsonColumnarDecoder(type_info)
    assert read.deserialize(messages[0]) == Row(m={"a": 1}, t=(1, "x"))
    for message in messages[1:]:
        assert (
            outcomes_of_columns(decoder, [message])
            == ["malformed"]
            == [outcome(read.deserialize, message)]
        )
    alone = Types.ROW_NAMED(["t"], type_info.get_field_types()[1:])  # type: ignore[attr-defined]
    assert outcomes_of_columns(JsonColumnarDecoder(alone), messages[2:3]) == ["malformed"]
    assert decoder.decode(messages[:1]).to_pylist() == [
        {"m": [("a", 1)], "t": {"f0": 1, "f1": "x"}}
    ]
    assert (
        JsonRowSerializationSchema(type_info).serialize(({"a": 1}, (1, "x")))
        == b'{"m":{"a":1},"t":[1,"x"]}'
    )


def test_a_json_schema_gives_the_type_of_the_rows() -> None:
    schema = """{"type": "object", "properties": {
        "id": {"type": "integer"}, "price": {"type": ["number", "null"]}, "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"}, "raw": {"type": "string", "contentEncoding": "base64"}, "ok": {"type": "boolean"},
        "tags": {"type": "array", "items": {"$ref": "#/definitions/tag"}},
        "pair": {"type": "array", "items": [{"type": "string"}, {"type": "boolean"}]},
        "place": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"type": "number"}}}]}},
        "definitions": {"tag": {"type": "string"}}}"""
    read = JsonRowDeserializationSchema.builder().json_schema(schema).build()
    assert read.get_produced_type() == Types.ROW_NAMED(
        ["id", "price", "at", "day", "raw", "ok", "tags", "pair", "place"],
        [
            Types.BIG_INT(),
            Types.BIG_DEC(),
            Types.INSTANT(),
            Types.SQL_DATE(),
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
            Types.BOOLEAN(),
            Types.OBJECT_ARRAY(Types.STRING()),
            Types.TUPLE([Types.STRING(), Types.BOOLEAN()]),
            Types.ROW_NAMED(["x"], [Types.BIG_DEC()]),
        ],
    )
    assert read.deserialize(b'{"id": 1, "pair": ["a", true], "price": 0.1}').get_fields_by_names(
        ["price", "pair"]
    ) == [Decimal("0.1"), ("a", True)]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "is no JSON"),
        ('{"type": "array"}', "which is no schema"),
        ('{"type": "string"}', "json_schema takes the type of a row"),
        (
            '{"type": "object", "properties": {"a": {"type": ["string", "integer"]}}}',
            "a field has one type",
        ),
        ('{"type": "object", "properties": {"a": {"$ref": "#/b"}}}', "which is not in it"),
        ('{"$ref": "#"}', "refers to itself"),
        ('{"type": "object"}', "an object without properties"),
        ('{"$ref": "http://x/y"}', "only references within it"),
        ('{"type": "object", "properties": {"a": {"type": "date"}}}', "has the type 'date'"),
    ],
)
def test_a_json_schema_without_a_type_is_refused(schema: str, why: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(why)):
        JsonRowDeserializationSchema.builder().json_schema(schema)


def test_wrong_arguments_are_refused_with_what_to_give() -> None:
    calls: list[tuple[Any, str, type[Exception]]] = [
        (lambda: JsonRowDeserializationSchema.builder().build(), "needs a type", ProgramError),
        (lambda: JsonRowSerializationSchema.builder().build(), "needs a type", TypeError),
        (
            lambda: JsonRowDeserializationSchema.builder().json_schema(None),  # type: ignore[arg-type]
            "the JSON schema is None",
            TypeError,
        ),
        (
            lambda: JsonRowDeserializationSchema.builder().type_info(Types.STRING()),
            "takes the type of a row",
            ProgramError,
        ),
        (
            lambda: JsonRowSerializationSchema.builder().with_type_info("row"),  # type: ignore[arg-type]
            "takes the type of a row",
            ProgramError,
        ),
        (
            lambda: JsonRowDeserializationSchema(
                Types.ROW([Types.MAP(Types.LIST(Types.INT()), Types.INT())])
            ),
            "keys of a JSON object are texts",
            ProgramError,
        ),
        (lambda: JsonColumnarDecoder({"a": int}), "takes a pyarrow.schema", ProgramError),
        (
            lambda: JsonColumnarDecoder(pa.schema([("a", pa.int8()), ("a", pa.int8())])),
            "two columns have the name 'a'",
            ProgramError,
        ),
        (
            lambda: JsonColumnarDecoder(Types.ROW([Types.PICKLED_BYTE_ARRAY()])),
            "has no column type",
            ProgramError,
        ),
    ]
    for call, why, kind in calls:
        with pytest.raises(kind, match=re.escape(why)):
            call()


@pytest.mark.parametrize(
    ("type_info", "value", "why"),
    [
        (Types.INT(), 2.9, "2.9 (float) is no value of Types.INT()"),
        (Types.INT(), True, "True (bool) is no value"),
        (Types.INT(), 1 << 40, "is outside"),
        (Types.STRING(), 5, "5 (int) is no value of Types.STRING()"),
        (Types.STRING(), "\ud800", "half of a surrogate pair"),
        (Types.DOUBLE(), (1 << 53) + 1, "is no value of Types.DOUBLE()"),
        (Types.FLOAT(), 1e300, "too large for a FLOAT"),
        (Types.INSTANT(), datetime.datetime(2024, 5, 1), "has no zone"),
        (Types.SQL_DATE(), datetime.datetime(2024, 5, 1), "is no value of Types.SQL_DATE()"),
        (
            Types.SQL_TIMESTAMP(),
            datetime.datetime(2024, 5, 1, tzinfo=datetime.timezone.utc),
            "declare Types.INSTANT()",
        ),
        (Types.LIST(Types.INT()), {1}, "is no list"),
        (Types.MAP(Types.STRING(), Types.INT()), {1: 1}, "1 (int) is no value of Types.STRING()"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(type_info: Any, value: Any, why: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(why)):
        JsonRowSerializationSchema(Types.ROW_NAMED(["a"], [type_info])).serialize(Row(value))


def test_a_row_of_other_fields_is_refused_and_dicts_are_taken_by_name() -> None:
    write = JsonRowSerializationSchema(Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()]))
    assert [
        write.serialize(value)
        for value in (Row(b=2, a=1), {"b": 2, "a": 1}, (1, 2), [1, 2], Row(1, 2), Row(x=1, y=2))
    ] == [b'{"a":1,"b":2}'] * 6
    for value, why in [
        (Row(a=1), "has no field 'b'"),
        ({"a": 1, "b": 2, "c": 3}, "has a field 'c'"),
        ((1,), "has 1 fields instead of 2"),
        ("ab", "is no list"),
    ]:
        with pytest.raises(ProgramError, match=why):
            write.serialize(value)


def test_keys_of_maps_are_texts_and_come_back_as_what_they_are() -> None:
    for key_type, keys in (
        (Types.INT(), [1, -5]),
        (Types.BOOLEAN(), [True]),
        (Types.DOUBLE(), [0.1, 1e300]),
        (Types.SQL_DATE(), [datetime.date(2024, 5, 1)]),
    ):
        type_info = Types.ROW_NAMED(["m"], [Types.MAP(key_type, Types.STRING())])
        row = Row(m=dict.fromkeys(keys, "x"))
        message = JsonRowSerializationSchema(type_info).serialize(row)
        assert JsonRowDeserializationSchema(type_info).deserialize(message) == row
        assert outcomes_of_columns(JsonColumnarDecoder(type_info), [message]) == [same(row)]
    with pytest.raises(MalformedMessageError, match="one key twice"):
        JsonRowDeserializationSchema(
            Types.ROW_NAMED(["m"], [Types.MAP(Types.INT(), Types.INT())])
        ).deserialize(b'{"m": {"1": 1, "01": 2}}')


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    )
)
def test_plain_values_are_written_and_read_as_they_are(value: Any) -> None:
    assert (
        JsonDeserializationSchema().deserialize(JsonSerializationSchema().serialize(value)) == value
    )


def test_plain_values_that_json_has_not_are_text_or_refused() -> None:
    assert (
        JsonSerializationSchema().serialize({"at": datetime.date(2024, 5, 1), "x": Decimal("1.50")})
        == b'{"at": "2024-05-01", "x": "1.50"}'
    )
    with pytest.raises(
        ProgramError, match=r"field 'a' of .* cannot be written as JSON: .* a set has no order"
    ):
        JsonSerializationSchema().serialize({"a": {1, 2}})
    with pytest.raises(ProgramError, match="half of a surrogate pair"):
        JsonSerializationSchema().serialize("\ud800")
    with pytest.raises(MalformedMessageError, match="it is no JSON"):
        JsonDeserializationSchema().deserialize(b"{")


def test_columns_of_types_that_only_arrow_has() -> None:
    schema = pa.schema(
        [
            ("u", pa.uint64()),
            ("d", pa.decimal128(10, 2)),
            ("ns", pa.timestamp("ns", "Europe/Berlin")),
            ("large", pa.large_string()),
            ("half", pa.float16()),
            ("dict", pa.dictionary(pa.int32(), pa.string())),
            ("fixed", pa.list_(pa.int8(), 2)),
        ]
    )
    messages = [
        b'{"u": 18446744073709551615, "d": "1.50", "ns": "2024-05-01T12:00:00.000001Z", '
        b'"large": "x", "half": 0.5, "dict": "a",'
        b' "fixed": [1, 2]}',
        b"{}",
    ]
    decoder = JsonColumnarDecoder(schema)
    batch = decoder.decode(messages)
    assert batch.schema == schema
    assert decoder.decode(JsonColumnarEncoder().encode(batch)).equals(batch)
    assert (
        decoder.decode_well_formed(
            [b'{"d": "1.555"}', b'{"fixed": [1]}', b'{"u": -1}']
        ).batch.num_rows
        == 0
    )


def test_schemas_travel() -> None:
    message = b'{"shop":"Oslo","n":1,"tags":["a"],"place":{"x":1.5}}'
    read, write, decoder = (
        pickle.loads(pickle.dumps(each))
        for each in (
            JsonRowDeserializationSchema(VISIT, True),
            JsonRowSerializationSchema(VISIT),
            JsonColumnarDecoder(VISIT, True),
        )
    )
    assert write.serialize(read.deserialize(message)) == message
    assert JsonColumnarEncoder().encode(decoder.decode([message])) == [message]
    with pytest.raises(MalformedMessageError):
        decoder.decode([b"{}"])


@pytest.mark.parametrize("message", [b'{"a": 2}', b'{"a": 2, "n": null}', None])
def test_a_null_in_a_column_that_has_none_makes_its_message_malformed(
    message: bytes | None,
) -> None:
    decoder = JsonColumnarDecoder(
        pa.schema([("a", pa.int64()), pa.field("n", pa.int64(), nullable=False)])
    )
    batch, malformed = decoder.decode_well_formed([b'{"n": 1}', message, b'{"n": 3}'])
    assert batch.to_pylist() == [{"a": None, "n": 1}, {"a": None, "n": 3}]
    assert [(each.index, each.why) for each in malformed] == [
        (1, "column 'n' has a null, and its field in the schema has nullable=False")
    ]


MOMENTS = st.datetimes(
    min_value=datetime.datetime(1, 1, 2), max_value=datetime.datetime(9999, 12, 30)
)


@settings(deadline=None)
@given(moment=MOMENTS, day=st.dates(), clock=st.times(), digits=st.sampled_from([0, 3, 6]))
@example(
    moment=datetime.datetime(2024, 5, 1, 12),
    day=datetime.date(2024, 5, 1),
    clock=datetime.time(12),
    digits=6,
)
def test_columns_and_rows_write_the_same_texts_of_times(
    moment: datetime.datetime, day: datetime.date, clock: datetime.time, digits: int
) -> None:
    def cut(value: Any) -> Any:
        return value.replace(
            microsecond=value.microsecond // 10 ** (6 - digits) * 10 ** (6 - digits)
        )

    moment, clock = cut(moment), cut(clock)
    unit = {0: "s", 3: "ms", 6: "us"}[digits]
    values = (moment.replace(tzinfo=datetime.timezone.utc), moment, day, clock)
    types = Types.ROW_NAMED(
        ["a", "b", "c", "d"],
        [Types.INSTANT(), Types.SQL_TIMESTAMP(), Types.SQL_DATE(), Types.SQL_TIME()],
    )
    kinds = [
        pa.timestamp(unit, "UTC"),
        pa.timestamp(unit),
        pa.date32(),
        pa.time64("us") if digits == 6 else pa.time32(unit),
    ]
    batch = pa.RecordBatch.from_arrays(
        [pa.array([value], kind) for value, kind in zip(values, kinds)], names=["a", "b", "c", "d"]
    )
    assert JsonColumnarEncoder().encode(batch) == [
        JsonRowSerializationSchema.builder().with_type_info(types).build().serialize(values)
    ]
    assert CsvColumnarEncoder().encode(batch) == [
        CsvRowSerializationSchema.Builder(types).build().serialize(values)
    ]


@pytest.mark.parametrize(
    "text",
    [
        b'{"x": -0}',
        b'{"x": -0, "y": "-0"}',
        b'{"x": -0.0}',
        b'{"x": 0}',
        b'{"x": -0e1}',
        b'{"y": "2024-05-01"}',
    ],
)
def test_minus_zero_is_the_same_float_in_rows_and_columns(text: bytes) -> None:
    types = Types.ROW_NAMED(["x", "y"], [Types.DOUBLE(), Types.STRING()])
    row = JsonRowDeserializationSchema.builder().type_info(types).build().deserialize(text)
    assert list(map(repr, JsonColumnarDecoder(types).decode([text]).to_pylist())) == [
        repr(row.as_dict())
    ]

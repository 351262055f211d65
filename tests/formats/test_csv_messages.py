"""CSV messages: rows and columns mean the same, no value is changed, and a malformed message is
found."""

from __future__ import annotations

import datetime
import json
import pickle
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.columns.values.conversion import batch_of_rows
from flinkpy.common import Row, Types
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.formats.csv import (
    CsvColumnarDecoder,
    CsvColumnarEncoder,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
)
from flinkpy.formats.csv.csv_cells import Dialect
from flinkpy.formats.port import MalformedMessageError
from tests.formats.drawn import FLAT, damaged, outcome, outcomes_of_columns, same, typed_rows
from tests.formats.odd_texts import ARROW_TYPES, ODD_TEXTS, check_arrow_against_rows

DIALECTS = st.builds(
    Dialect,
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(['"', "'"]),
    st.sampled_from([None, "\\", "*"]),
    st.sampled_from(["", "null", "n/a"]),
    st.sampled_from([":", "|"]),
    st.sampled_from(["\n", "", "\r\n"]),
)


def options(dialect: Dialect) -> dict[str, Any]:
    return dict(
        delimiter=dialect.delimiter,
        quote=dialect.quote,
        escape=dialect.escape,
        null_literal=dialect.null,
        array_delimiter=dialect.array_delimiter,
    )


def written(write: CsvRowSerializationSchema, rows: list[Any]) -> list[tuple[Any, bytes]]:
    """The rows that CSV can hold, and their messages: a list with a None or with its own delimiter
    in an element is refused."""
    found = []
    for row in rows:
        try:
            found.append((row, write.serialize(row)))
        except ProgramError as error:
            if "list" not in str(error) and "null literal" not in str(error):
                raise
    return found


@pytest.mark.parametrize("kind", ARROW_TYPES, ids=str)
def test_arrow_reads_nothing_that_rows_read_as_something_else(kind: Any) -> None:
    """Whatever type of Arrow's a column has."""
    decoder = CsvColumnarDecoder(pa.schema([("x", kind), ("y", pa.string())]))
    texts = [
        str(json.loads(text)) if text.startswith('"') else text
        for text in (*ODD_TEXTS, "nan", "inf", "007", '"0X1F"')
    ]
    check_arrow_against_rows(decoder, [(text, f"{text},z".encode()) for text in texts])


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+05:30"])
def test_columns_of_other_zones_are_the_same_instants(zone: str) -> None:
    moments = [
        datetime.datetime(1800, 1, 1, 12, tzinfo=datetime.timezone.utc),
        datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.timezone.utc),
    ]
    messages = CsvColumnarEncoder().encode(
        pa.record_batch([pa.array(moments, pa.timestamp("us", zone))], names=["at"])
    )
    read = CsvColumnarDecoder(Types.ROW_NAMED(["at"], [Types.INSTANT()]))
    assert read.decode(messages).column("at").to_pylist() == moments


@given(typed_rows(FLAT), DIALECTS)
def test_what_is_written_is_read_again_or_refused(drawn: Any, dialect: Dialect) -> None:
    type_info, rows = drawn
    write = CsvRowSerializationSchema(type_info, dialect)
    read = CsvRowDeserializationSchema(type_info, dialect)
    assert all(
        same(read.deserialize(message)) == same(row) for row, message in written(write, rows)
    )


@given(typed_rows(FLAT), DIALECTS)
def test_columns_are_written_as_rows_are(drawn: Any, dialect: Dialect) -> None:
    type_info, rows = drawn
    write = CsvRowSerializationSchema(type_info, dialect)
    read = CsvRowDeserializationSchema(type_info, dialect)
    fitting = [row for row, _ in written(write, rows)]
    if fitting:
        batch = batch_of_rows(fitting, CsvColumnarDecoder(type_info).schema)
        messages = CsvColumnarEncoder(**options(dialect), line_delimiter=dialect.line_end).encode(
            batch
        )
        assert [same(read.deserialize(message)) for message in messages] == same(fitting)


@given(typed_rows(FLAT), DIALECTS, st.data())
def test_columns_are_read_as_rows_are_and_find_the_same_malformed_messages(
    drawn: Any, dialect: Dialect, data: st.DataObject
) -> None:
    type_info, rows = drawn
    write = CsvRowSerializationSchema(type_info, dialect)
    read = CsvRowDeserializationSchema(type_info, dialect)
    messages = data.draw(damaged([message for _, message in written(write, rows)]))
    decoder = CsvColumnarDecoder(type_info, **options(dialect))
    assert outcomes_of_columns(decoder, messages) == [
        outcome(read.deserialize, message) for message in messages
    ]


VISIT = Types.ROW_NAMED(
    ["shop", "n", "scores"], [Types.STRING(), Types.INT(), Types.LIST(Types.DOUBLE())]
)


def built(builder: Any) -> Any:
    return (
        builder.set_escape_character("*")
        .set_quote_character("'")
        .set_array_element_delimiter(":")
        .set_field_delimiter(";")
        .build()
    )


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Types.STRING(), "'123''4**'", "123'4*"),
        (Types.STRING(), "'a;b''c'", "a;b'c"),
        (Types.INT(), "12", 12),
        (Types.STRING(), "null", "null"),
        (Types.ROW([Types.STRING(), Types.STRING()]), "1:hello", Row(f0="1", f1="hello")),
        (
            Types.ROW([Types.STRING(), Types.STRING()]),
            "1:hello world",
            Row(f0="1", f1="hello world"),
        ),
    ],
)
def test_pyflinks_examples_are_written_and_read_as_there(kind: Any, text: str, value: Any) -> None:
    type_info = Types.ROW([Types.STRING(), kind, Types.STRING()])
    row, line = Row(f0="BEGIN", f1=value, f2="END"), f"BEGIN;{text};END\n".encode()
    assert built(CsvRowSerializationSchema.Builder(type_info)).serialize(row) == line
    read = built(CsvRowDeserializationSchema.Builder(type_info))
    assert read.deserialize(line) == row
    # Flink quotes more than is needed
    assert (
        read.deserialize(f"BEGIN;'{text}';END\n".encode() if kind != Types.STRING() else line)
        == row
    )
    assert read.get_produced_type() == type_info


def test_none_and_empty_text_differ_and_a_null_literal_stands_for_none() -> None:
    type_info = Types.ROW([Types.STRING(), Types.INT()])
    plain = CsvRowSerializationSchema.Builder(type_info).build()
    named = CsvRowSerializationSchema.Builder(type_info).set_null_literal("n/a").build()
    assert [plain.serialize(row) for row in ((None, None), ("", 0))] == [b",\n", b'"",0\n']
    assert [named.serialize(row) for row in ((None, None), ("n/a", 0))] == [
        b"n/a,n/a\n",
        b'"n/a",0\n',
    ]
    read = CsvRowDeserializationSchema.Builder(type_info).set_null_literal("n/a").build()
    assert [tuple(read.deserialize(line)) for line in (b"n/a,n/a", b'"n/a",0', b",1")] == [
        (None, None),
        ("n/a", 0),
        ("", 1),
    ]


def test_arrow_reads_a_batch_in_one_go() -> None:
    decoder = CsvColumnarDecoder(VISIT)
    batch = decoder._by_arrow([b"Oslo,1,1.5;2\n", b'"a ""b"", c",,"1"\r\n', b',2,""', b'"",3,'])
    assert batch is not None
    assert batch.to_pydict() == {
        "shop": ["Oslo", 'a "b", c', None, ""],
        "n": [1, None, 2, 3],
        "scores": [[1.5, 2.0], [1.0], [], None],
    }


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"a,1", "it has 2 fields instead of 3"),
        (b"a,1,2,3", "it has 4 fields instead of 3"),
        (b"a,2.9,", "field 'n': '2.9' is no whole number"),
        (b"a,3000000000,", "field 'n': 3000000000 is outside"),
        (b"a,1,1;x", "field 'scores': 'x' is no number"),
        (b'"a,1,', "it ends within quotes"),
        (b"a,1,\nb,2,", "it has more than one line"),
        (b"\xff,1,", "it is no UTF-8 (invalid start byte at byte 0)"),
        (b"", "it has 1 fields instead of 3"),
        (b"a,1_0,", "field 'n': '1_0' is no whole number"),
        (b"a,,1e999", "is too large for a DOUBLE"),
        (b'a,"",', "field 'n': '' is no whole number"),
    ],
)
def test_a_malformed_message_is_shown_with_the_reason(message: bytes, why: str) -> None:
    with pytest.raises(MalformedMessageError, match=re.escape(why)):
        CsvRowDeserializationSchema.Builder(VISIT).build().deserialize(message)
    with pytest.raises(MalformedMessageError, match=re.escape(why)) as error:
        CsvColumnarDecoder(VISIT).decode([b"a,1,", message, b"b,2,"])
    assert error.value.index == 1
    assert CsvColumnarDecoder(VISIT).decode_well_formed([b"a,1,", message, None]).batch.to_pydict()[
        "shop"
    ] == ["a", None]
    assert (
        CsvRowDeserializationSchema.Builder(VISIT)
        .set_ignore_parse_errors(True)
        .build()
        .deserialize(message)
        is None
    )


def test_a_float_that_is_too_large_is_malformed_and_an_infinity_is_none() -> None:
    type_info = Types.ROW([Types.FLOAT(), Types.DOUBLE()])
    read, decoder = CsvRowDeserializationSchema(type_info, Dialect()), CsvColumnarDecoder(type_info)
    for message, is_malformed in (
        (b"1e39,0", True),
        (b"0,1e309", True),
        (b"inf,-inf", False),
        (b"0.1,0.1", False),
        (b"16777217,nan", False),
    ):
        found = outcomes_of_columns(decoder, [message])
        assert found == [outcome(read.deserialize, message)]
        assert (found == ["malformed"]) is is_malformed


def test_a_delimiter_of_several_bytes_is_one_character() -> None:
    decoder = CsvColumnarDecoder(VISIT, delimiter="é")
    encoder = CsvColumnarEncoder(delimiter="é", line_delimiter="")
    assert encoder.encode(decoder.decode(["aé1é1.5;2.0".encode()])) == ["aé1é1.5;2.0".encode()]


def test_messages_that_only_together_are_csv_are_malformed() -> None:
    read, decoder = CsvRowDeserializationSchema(VISIT, Dialect()), CsvColumnarDecoder(VISIT)
    for messages in (
        [b'"a', b'b",1,'],
        [b'"a', b'"'],
        [b'a,1,"', b'"'],
        [b"a,1,\nb,2,", b'"c,3,'],
        [b'"a""', b'b",1,'],
    ):
        found = outcomes_of_columns(decoder, messages)
        assert found == [outcome(read.deserialize, message) for message in messages]
        assert found[0] == "malformed"


def test_comments_are_left_out_and_texts_that_look_like_them_are_not() -> None:
    text = Types.ROW([Types.STRING()])
    read = CsvRowDeserializationSchema.Builder(text).set_allow_comments(True).build()
    assert read.deserialize(b"# a comment") is None
    assert read.deserialize(
        CsvRowSerializationSchema.Builder(text).build().serialize(("# a text",))
    ) == Row(f0="# a text")


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        (Types.LIST(Types.STRING()), ["a;b"], "cannot be an element of a list"),
        (Types.LIST(Types.INT()), [1, None], "for which there must be a null literal"),
        (Types.LIST(Types.STRING()), [""], "cannot be told from an empty list"),
        (Types.INT(), 2.9, "2.9 (float) is no value of Types.INT()"),
        (Types.STRING(), "\ud800", "half of a surrogate pair"),
        (Types.ROW([Types.INT(), Types.INT()]), (1,), "has 1 fields instead of 2"),
    ],
)
def test_what_could_not_be_read_back_is_refused(kind: Any, value: Any, why: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(why)):
        CsvRowSerializationSchema.Builder(Types.ROW_NAMED(["a"], [kind])).build().serialize(
            Row(value)
        )


def test_without_quotes_a_text_that_needs_them_is_refused() -> None:
    write = (
        CsvRowSerializationSchema.Builder(Types.ROW([Types.STRING(), Types.INT()]))
        .disable_quote_character()
        .build()
    )
    assert write.serialize(('say "x"', 1)) == b'say "x",1\n'
    for text in ("a,b", "a\nb", ""):
        with pytest.raises(
            ProgramError, match="needs quotes, and the schema has no quote character"
        ):
            write.serialize((text, 1))
    encode = CsvColumnarEncoder(quote=None).encode
    assert encode(pa.RecordBatch.from_pydict({"a": ["# x"]})) == [b"# x\n"]
    with pytest.raises(
        ProgramError, match="column 'a' cannot be written as CSV: 'a,b' needs quotes"
    ):
        encode(pa.RecordBatch.from_pydict({"a": ["a,b"]}))


def test_wrong_arguments_are_refused_with_what_to_give() -> None:
    text = Types.ROW([Types.STRING()])
    calls: list[tuple[Any, str]] = [
        (lambda: CsvRowSerializationSchema.Builder(Types.STRING()), "takes the type of a row"),
        (lambda: CsvRowSerializationSchema.Builder(Types.ROW([])), "has at least one field"),
        (
            lambda: CsvRowSerializationSchema.Builder(text).set_field_delimiter(",,").build(),
            "the delimiter is one character",
        ),
        (
            lambda: CsvRowDeserializationSchema.Builder(text).set_quote_character(",").build(),
            "must differ",
        ),
        (
            lambda: CsvRowDeserializationSchema.Builder(text).set_escape_character("").build(),
            "the escape is one character",
        ),
        (
            lambda: (
                CsvRowDeserializationSchema.Builder(text).set_array_element_delimiter(",").build()
            ),
            "the delimiter of lists",
        ),
        (
            lambda: CsvRowDeserializationSchema.Builder(text).set_null_literal("a,b").build(),
            "the null literal is text without delimiters",
        ),
        (
            lambda: CsvRowSerializationSchema.Builder(text).set_line_delimiter("|").build(),
            "a line ends with",
        ),
        (
            lambda: CsvRowSerializationSchema.Builder(
                Types.ROW([Types.MAP(Types.STRING(), Types.INT())])
            ).build(),
            "choose JSON, Avro or Protobuf",
        ),
        (
            lambda: CsvColumnarDecoder(Types.ROW([Types.LIST(Types.LIST(Types.INT()))])),
            "choose JSON, Avro or Protobuf",
        ),
        (lambda: CsvColumnarDecoder(text, delimiter="ab"), "the delimiter is one character"),
        (
            lambda: CsvColumnarEncoder().encode(pa.RecordBatch.from_pydict({"a": [[[1]]]})),
            "choose JSON, Avro or Protobuf",
        ),
    ]
    for call, why in calls:
        with pytest.raises(ProgramError, match=re.escape(why)):
            call()


def test_schemas_travel() -> None:
    dialect = Dialect(";", "'", "*", "n/a", ":")
    line = b"'a;b';1;1.5:2.0\n"
    read, write, decoder = (
        pickle.loads(pickle.dumps(each))
        for each in (
            CsvRowDeserializationSchema(VISIT, dialect),
            CsvRowSerializationSchema(VISIT, dialect),
            CsvColumnarDecoder(VISIT, **options(dialect)),
        )
    )
    assert write.serialize(read.deserialize(line)) == line
    assert CsvColumnarEncoder(**options(dialect)).encode(decoder.decode([line])) == [line]


def test_a_null_in_a_column_that_has_none_makes_its_message_malformed() -> None:
    decoder = CsvColumnarDecoder(
        pa.schema([("a", pa.int64()), pa.field("n", pa.int64(), nullable=False)])
    )
    batch, malformed = decoder.decode_well_formed([b",1", b"2,", b",3"])
    assert batch.to_pylist() == [{"a": None, "n": 1}, {"a": None, "n": 3}]
    assert [each.index for each in malformed] == [1]

"""Declared types and rows of them, as real data has them, for property tests of formats; and when
two results are the same."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import strategies as st

from flinkpy.common import Row, TypeInformation, Types
from flinkpy.common.typeinfo import MapTypeInfo, PrimitiveArrayTypeInfo, RowTypeInfo, TupleTypeInfo
from flinkpy.formats.port import ColumnarDecoder, MalformedMessageError

TEXTS = st.text(max_size=8) | st.sampled_from(
    [
        "",
        "null",
        "NaN",
        "n/a",
        "a,b",
        'say "x"',
        "it''s",
        "# no comment",
        "line\nend",
        "\r\n",
        "\\",
        "é",
        "\U0001f600",
        "2024-05-01",
        "1;2",
        " blank ",
        "{}",
        "}\n{",
        "\u2028",
        "\x00",
        "true",
        "5",
    ]
)
ZONES: st.SearchStrategy[datetime.tzinfo] = st.sampled_from(
    [
        datetime.timezone.utc,
        ZoneInfo("Europe/Berlin"),
        datetime.timezone(datetime.timedelta(hours=-3, minutes=-30)),
    ]
)
_FIRST, _LAST = datetime.datetime(1700, 1, 2), datetime.datetime(9998, 12, 30)
INSTANTS: st.SearchStrategy[Any] = st.datetimes(_FIRST, _LAST, timezones=ZONES)
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())


def whole(bits: int) -> st.SearchStrategy[Any]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return st.integers(low, high) | st.sampled_from(
        [0, -1, low, high, 2.0, np.int8(3), Decimal("4")]
    )


SINGLE: list[tuple[TypeInformation, st.SearchStrategy[Any]]] = [
    (Types.STRING(), TEXTS),
    (Types.BOOLEAN(), st.booleans()),
    (Types.BYTE(), whole(8)),
    (Types.SHORT(), whole(16)),
    (Types.INT(), whole(32)),
    (Types.LONG(), whole(64)),
    (
        Types.DOUBLE(),
        st.floats()
        | st.integers(-9, 9)
        | st.sampled_from([np.float32(0.1), Decimal("0.5"), 1e300]),
    ),
    (Types.FLOAT(), st.floats(width=32) | st.just(2)),
    (Types.BIG_INT(), st.integers(-(10**37), 10**37)),
    (
        Types.BIG_DEC(),
        st.decimals(min_value=-(10**18), max_value=10**18, allow_nan=False, places=6)
        | st.just(Decimal("1E+3")),
    ),
    (Types.SQL_DATE(), st.dates()),
    (Types.SQL_TIME(), st.times()),
    (Types.SQL_TIMESTAMP(), st.datetimes(_FIRST, _LAST)),
    (Types.INSTANT(), INSTANTS),
    (BYTES, st.binary(max_size=6)),
]
Drawn = tuple[TypeInformation, Any]


def nested(inner: st.SearchStrategy[Drawn]) -> st.SearchStrategy[Drawn]:
    return (
        inner.map(lambda each: (Types.LIST(each[0]), st.lists(or_none(each[1]), max_size=3)))
        | inner.map(
            lambda each: (
                Types.MAP(Types.STRING(), each[0]),
                st.dictionaries(TEXTS, or_none(each[1]), max_size=3),
            )
        )
        | st.lists(inner, min_size=1, max_size=3).map(row_of)
    )


def or_none(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def row_of(drawn: Sequence[Drawn]) -> Drawn:
    names = ["a", "b c", "é", "d"][: len(drawn)]
    return (
        Types.ROW_NAMED(names, [each for each, _ in drawn]),
        st.tuples(*[or_none(values) for _, values in drawn]).map(
            lambda values: Row(*names)(*values)
        ),
    )


ANY_SINGLE: st.SearchStrategy[Drawn] = st.sampled_from(SINGLE)
NESTED: st.SearchStrategy[Drawn] = st.recursive(ANY_SINGLE, nested, max_leaves=4)
FLAT = ANY_SINGLE | ANY_SINGLE.map(
    lambda each: (Types.LIST(each[0]), st.lists(each[1], max_size=3))
)


@st.composite
def typed_rows(
    draw: Callable[..., Any], fields: st.SearchStrategy[Drawn] = NESTED, rows: int = 5
) -> tuple[RowTypeInfo, list[Row]]:
    """A row type, and rows of it."""
    type_info, values = row_of(draw(st.lists(fields, min_size=1, max_size=4)))
    assert isinstance(type_info, RowTypeInfo)
    return type_info, draw(st.lists(values, max_size=rows))


def same(value: Any) -> Any:
    """The value in a form that is equal for what means the same: equal values of any class, and all
    NaNs."""
    if isinstance(value, Row):
        return "row", value._fields, [same(each) for each in value]
    if isinstance(value, (list, tuple)):
        return [same(each) for each in value]
    if isinstance(value, dict):
        return "dict", {key: same(each) for key, each in value.items()}
    if isinstance(value, (float, np.floating)) and math.isnan(value):
        return "NaN"
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        # Python never finds an hour that comes twice equal to one in another zone
        return value.astimezone(datetime.timezone.utc)
    return value


def outcome(decode: Callable[[bytes], Any], message: bytes) -> Any:
    """What a schema of rows makes of a message."""
    try:
        return same(decode(message))
    except MalformedMessageError:
        return "malformed"


def outcomes_of_columns(decoder: ColumnarDecoder, messages: Sequence[bytes]) -> list[Any]:
    """What a decoder makes of each message."""
    from flinkpy.columns.values.conversion import rows_of_batch

    batch, malformed = decoder.decode_well_formed(messages)
    assert batch.schema.equals(decoder.schema)
    batch.validate(full=True)
    wrong = {error.index for error in malformed}
    rows = iter(rows_of_batch(batch))
    found = ["malformed" if index in wrong else same(next(rows)) for index in range(len(messages))]
    assert next(rows, None) is None
    return found


SOME_BYTES = st.binary(max_size=2) | st.sampled_from(
    [
        b"{",
        b"}",
        b'"',
        b"\n",
        b",",
        b"\\",
        b"0",
        b"9" * 30,
        b"e9",
        b"e999",
        b"null",
        b"NaN",
        b"-Infinity",
        b"\xff",
        b" ",
        b"\r",
        b"\x00",
        b"\x80",
        b"1.5",
        b"true",
        b"[",
        b"]",
        b'""',
        b";",
        b".",
        b"-",
        b"T",
        b"Z",
        b"+01:00",
        b"\\ud800",
        b"\\u0041",
    ]
)


@st.composite
def damaged(draw: Callable[..., Any], messages: Sequence[bytes]) -> list[bytes]:
    """The messages, of which some are cut, mixed up or changed."""
    found = list(messages)
    for _ in range(draw(st.integers(0, 3)) if found else 0):
        at = draw(st.integers(0, len(found) - 1))
        message = found[at]
        where = draw(st.integers(0, len(message)))
        kind = draw(st.sampled_from(["cut", "insert", "replace", "split", "join", "empty"]))
        some = draw(SOME_BYTES)
        if kind == "cut":
            found[at] = message[:where]
        elif kind == "insert":
            found[at] = message[:where] + some + message[where:]
        elif kind == "replace":
            found[at] = message[:where] + some + message[where + len(some) :]
        elif kind == "split":
            found[at : at + 1] = [message[:where], message[where:]]
        elif kind == "join":
            found[at : at + 2] = [b"".join(found[at : at + 2])]
        else:
            found[at] = draw(st.sampled_from([b"", b" ", b"\n", b"null", b"{}", b"[]", b"{}{}"]))
    return found


def avro_schema_of(type_info: TypeInformation) -> str:
    """An Avro schema for rows of the type; each value may be null."""
    counter = iter(range(1000))
    names: list[list[str]] = []

    def schema(kind: TypeInformation) -> Any:
        if isinstance(kind, RowTypeInfo):
            names.append(kind.field_names)
            return {
                "type": "record",
                "name": f"r{next(counter)}",
                "fields": [
                    {"name": f"f{at}", "type": ["null", schema(each)]}
                    for at, each in enumerate(kind.field_types)
                ],
            }
        if isinstance(kind, MapTypeInfo):
            return {"type": "map", "values": [schema(kind.value_type), "null"]}
        if isinstance(kind, PrimitiveArrayTypeInfo) and kind != BYTES:
            return {"type": "array", "items": ["null", schema(kind.element_type)]}
        assert not isinstance(kind, TupleTypeInfo)
        return AVRO[repr(kind)]

    return json.dumps(schema(type_info))


AVRO: dict[str, Any] = {
    repr(Types.STRING()): "string",
    repr(Types.BOOLEAN()): "boolean",
    repr(Types.BYTE()): "int",
    repr(Types.SHORT()): "int",
    repr(Types.INT()): "int",
    repr(Types.LONG()): "long",
    repr(Types.FLOAT()): "float",
    repr(Types.DOUBLE()): "double",
    repr(BYTES): "bytes",
    repr(Types.BIG_INT()): {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0},
    repr(Types.BIG_DEC()): {
        "type": "bytes",
        "logicalType": "decimal",
        "precision": 38,
        "scale": 18,
    },
    repr(Types.SQL_DATE()): {"type": "int", "logicalType": "date"},
    repr(Types.SQL_TIME()): {"type": "long", "logicalType": "time-micros"},
    repr(Types.SQL_TIMESTAMP()): {"type": "long", "logicalType": "local-timestamp-micros"},
    repr(Types.INSTANT()): {"type": "long", "logicalType": "timestamp-micros"},
}

"""Types as SQL writes them."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.common.logical_types.logical_type import (
    UNBOUNDED,
    ArrayType,
    BigIntType,
    BinaryType,
    BitmapType,
    BooleanType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    RawType,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)
from flinkpy.sql.parsing.sql_tokens import TokenKind
from flinkpy.sql.parsing.token_cursor import TokenCursor

MONTH_UNITS = ("YEAR", "MONTH")
SECOND_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")

_NOT_HERE = {
    "VARIANT": "VARIANT is not supported yet; keep JSON in a STRING",
    "STRUCTURED": "STRUCTURED types are not supported; a ROW has the same parts",
    "TEXT": "TEXT is no type of Flink's; write STRING",
    "DATETIME": "DATETIME is no type of Flink's; write TIMESTAMP(3)",
    "REAL": "REAL is no type of Flink's; write FLOAT",
    "LONG": "LONG is no type of Flink's; write BIGINT",
    "BLOB": "BLOB is no type of Flink's; write BYTES",
    "BOOL": "BOOL is no type of Flink's; write BOOLEAN",
}


def type_of(cursor: TokenCursor) -> LogicalType:
    """A type, with what says whether it may be null."""
    start = cursor.start
    if cursor.next.kind != TokenKind.WORD:
        cursor.unexpected("a type")
    if cursor.next.key in _NOT_HERE:
        cursor.fail(_NOT_HERE[cursor.next.key])
    for name in TYPES:
        if cursor.accept(name):
            break
    else:
        cursor.unexpected("a type")
    try:
        made = TYPES[name](cursor)
    except ValueError as error:
        cursor.fail(str(error), cursor.span_from(start))
    return _nullable(cursor, _collections_of(cursor, _nullable(cursor, made)))


def _nullable(cursor: TokenCursor, made: LogicalType) -> LogicalType:
    if cursor.accept("NOT", "NULL"):
        return made.not_null()
    cursor.accept("NULL")
    return made


def _collections_of(cursor: TokenCursor, element: LogicalType) -> LogicalType:
    """``INT ARRAY`` and ``INT MULTISET`` of the SQL standard."""
    while True:
        if cursor.accept("ARRAY"):
            element = _nullable(cursor, ArrayType(element))
        elif cursor.accept("MULTISET"):
            element = _nullable(cursor, MultisetType(element))
        else:
            return element


def _numbers(cursor: TokenCursor, *otherwise: int) -> tuple[int, ...]:
    """The numbers in parentheses behind a type, or those that it has without."""
    if not cursor.accept("("):
        return otherwise
    given = [cursor.whole_number("a number")]
    while len(given) < len(otherwise) and cursor.accept(","):
        given.append(cursor.whole_number("a number"))
    cursor.expect(")")
    return (*given, *otherwise[len(given) :])


def _plain(made: LogicalType) -> Callable[[TokenCursor], LogicalType]:
    return lambda cursor: made


def _length(cursor: TokenCursor, otherwise: int) -> int:
    (length,) = _numbers(cursor, otherwise)
    if length == 0:
        raise ValueError("the length of a type is 1 or more, not 0")
    return length


def _char(cursor: TokenCursor) -> LogicalType:
    if cursor.accept("VARYING"):
        return _varchar(cursor)
    return CharType(_length(cursor, 1))


def _varchar(cursor: TokenCursor) -> LogicalType:
    return VarCharType(_length(cursor, UNBOUNDED))


def _binary(cursor: TokenCursor) -> LogicalType:
    if cursor.accept("VARYING"):
        return _varbinary(cursor)
    return BinaryType(_length(cursor, 1))


def _varbinary(cursor: TokenCursor) -> LogicalType:
    return VarBinaryType(_length(cursor, UNBOUNDED))


def _decimal(cursor: TokenCursor) -> LogicalType:
    precision, scale = _numbers(cursor, 10, 0)
    return DecimalType(precision, scale)


def _double(cursor: TokenCursor) -> LogicalType:
    cursor.accept("PRECISION")
    return DoubleType()


def _time(cursor: TokenCursor) -> LogicalType:
    (precision,) = _numbers(cursor, 0)
    _zone(cursor)
    return TimeType(precision)


def _timestamp(cursor: TokenCursor) -> LogicalType:
    (precision,) = _numbers(cursor, 6)
    return LocalZonedTimestampType(precision) if _zone(cursor) else TimestampType(precision)


def _timestamp_ltz(cursor: TokenCursor) -> LogicalType:
    (precision,) = _numbers(cursor, 6)
    return LocalZonedTimestampType(precision)


def _zone(cursor: TokenCursor) -> bool:
    """Whether the type has the zone of the session."""
    if cursor.accept("WITHOUT"):
        cursor.expect("TIME", "ZONE")
        return False
    if cursor.at("WITH", "TIME", "ZONE"):
        cursor.fail("WITH TIME ZONE is no type of Flink's; write TIMESTAMP_LTZ(3)")
    if not cursor.accept("WITH", "LOCAL"):
        return False
    cursor.expect("TIME", "ZONE")
    return True


def _in_angles(cursor: TokenCursor, count: int) -> list[LogicalType]:
    cursor.expect("<")
    types = [type_of(cursor)]
    for _ in range(count - 1):
        cursor.expect(",")
        types.append(type_of(cursor))
    cursor.expect(">")
    return types


def _array(cursor: TokenCursor) -> LogicalType:
    (element,) = _in_angles(cursor, 1)
    return ArrayType(element)


def _multiset(cursor: TokenCursor) -> LogicalType:
    (element,) = _in_angles(cursor, 1)
    return MultisetType(element)


def _map(cursor: TokenCursor) -> LogicalType:
    key, value = _in_angles(cursor, 2)
    return MapType(key, value)


def _row(cursor: TokenCursor) -> LogicalType:
    if cursor.accept("<>"):
        return RowType()
    closing = ">" if cursor.expect_one("<", "(") == "<" else ")"
    if cursor.accept(closing):
        return RowType()
    fields = cursor.list_of(lambda: _row_field(cursor))
    cursor.expect(closing)
    return RowType(fields)


def _row_field(cursor: TokenCursor) -> RowField:
    name = cursor.name("the name of a part of the row")
    type = type_of(cursor)
    comment = cursor.take().value if cursor.next.kind == TokenKind.TEXT else None
    return RowField(name, type, comment)


def _raw(cursor: TokenCursor) -> LogicalType:
    cursor.expect("(")
    class_name = cursor.literal_text("the class")
    if cursor.accept(","):
        cursor.literal_text("the serializer")
    cursor.expect(")")
    return RawType(class_name)


def _interval(cursor: TokenCursor) -> LogicalType:
    units, text = interval_units(cursor)
    made = YearMonthIntervalType if units[0] in MONTH_UNITS else DayTimeIntervalType
    return made(text)


def interval_units(cursor: TokenCursor) -> tuple[tuple[str, ...], str]:
    """The unit of an interval or the greatest and the least, and how they were written:
    ``DAY(3) TO SECOND(6)``."""
    start = cursor.start
    first = _unit(cursor)
    text = first + _digits(cursor)
    if not cursor.accept("TO"):
        return (first,), text
    last = _unit(cursor)
    family = MONTH_UNITS if first in MONTH_UNITS else SECOND_UNITS
    if last not in family[family.index(first) + 1 :]:
        problem = f"there is no interval {first} TO {last}"
        cursor.fail(problem, cursor.span_from(start))
    return (first, last), f"{text} TO {last}{_digits(cursor)}"


def _unit(cursor: TokenCursor) -> str:
    """A unit, which may be written in the plural."""
    units = (*MONTH_UNITS, *SECOND_UNITS)
    plural = cursor.accept_one(*(f"{unit}S" for unit in units))
    return cursor.expect_one(*units) if plural is None else plural[:-1]


def _digits(cursor: TokenCursor) -> str:
    numbers = _numbers(cursor, -1, -1)
    given = [str(number) for number in numbers if number >= 0]
    return f"({', '.join(given)})" if given else ""


TYPES: dict[str, Callable[[TokenCursor], LogicalType]] = {
    "STRING": _plain(VarCharType(UNBOUNDED)),
    "BIGINT": _plain(BigIntType()),
    "INT": _plain(IntType()),
    "INTEGER": _plain(IntType()),
    "SMALLINT": _plain(SmallIntType()),
    "TINYINT": _plain(TinyIntType()),
    "BOOLEAN": _plain(BooleanType()),
    "FLOAT": _plain(FloatType()),
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "DEC": _decimal,
    "NUMERIC": _decimal,
    "CHAR": _char,
    "CHARACTER": _char,
    "VARCHAR": _varchar,
    "BINARY": _binary,
    "VARBINARY": _varbinary,
    "BYTES": _plain(VarBinaryType(UNBOUNDED)),
    "DATE": _plain(DateType()),
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": _timestamp_ltz,
    "INTERVAL": _interval,
    "ARRAY": _array,
    "MAP": _map,
    "MULTISET": _multiset,
    "ROW": _row,
    "RAW": _raw,
    "BITMAP": _plain(BitmapType()),
    "NULL": _plain(NullType()),
}

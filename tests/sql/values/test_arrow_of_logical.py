"""SQL's types and values in Arrow's memory, and back."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from flinkpy.columns.sql.arrays_of_values import array_of_values, values_of_array
from flinkpy.columns.sql.arrow_of_logical import (
    arrow_of,
    arrow_schema_of,
    logical_of,
    row_type_of_schema,
)
from flinkpy.common.logical_types.logical_type import (
    UNBOUNDED,
    ArrayType,
    BigIntType,
    BitmapType,
    BooleanType,
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
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)
from flinkpy.core.errors import ProgramError

STRING, INT = VarCharType(length=UNBOUNDED), IntType()
UTC = datetime.timezone.utc
MOMENT = datetime.datetime(1960, 2, 29, 23, 59, 59, 999000)

VALUES: list[tuple[LogicalType, list[object]]] = [
    (BooleanType(), [True, False]),
    (TinyIntType(), [-128, 127]),
    (SmallIntType(), [-(2**15), 2**15 - 1]),
    (INT, [-(2**31), 2**31 - 1]),
    (BigIntType(), [-(2**63), 2**63 - 1]),
    (FloatType(), [0.5, float("inf")]),
    (DoubleType(), [0.1, float("-inf")]),
    (DecimalType(precision=38, scale=2), [Decimal("-999999999999999999999999999999999999.99")]),
    (STRING, ["", "aé漢😀"]),
    (VarBinaryType(length=UNBOUNDED), [b"", b"\x00\xff"]),
    (BitmapType(), [frozenset(), frozenset({1, 70000, 2**32 - 1}), frozenset(range(9000))]),
    (DateType(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    (TimeType(precision=3), [datetime.time(23, 59, 59, 999000)]),
    (TimestampType(precision=3), [MOMENT]),
    (TimestampType(precision=6), [MOMENT.replace(microsecond=123456)]),
    (TimestampType(precision=9), [MOMENT.replace(microsecond=123456)]),
    (LocalZonedTimestampType(precision=3), [MOMENT.replace(tzinfo=UTC)]),
    (YearMonthIntervalType(), [-14, 14]),
    (DayTimeIntervalType(), [-1, 86_400_000]),
    (ArrayType(ArrayType(INT)), [[], [None, [1, None]]]),
    (MapType(STRING, DayTimeIntervalType()), [{}, {"a": 1, "b": None}]),
    (MultisetType(STRING), [{"a": 2}]),
    (RowType.of(("a", INT), ("b", ArrayType(TimestampType(precision=3)))), [(1, [MOMENT])]),
    (RowType.of(("a", INT)), [(None,)]),
    (RawType(class_name="builtins.set"), [{1, 2}]),
    (NullType(), [None]),
]


@pytest.mark.parametrize(("logical", "values"), VALUES, ids=lambda each: str(each)[:30])
def test_values_of_every_type_come_back_from_its_array(
    logical: LogicalType, values: list[object]
) -> None:
    values = [None, *values, None]
    array = array_of_values(values, logical)
    assert array.type == arrow_of(logical)
    assert values_of_array(array, logical) == values
    assert values_of_array(array[1:-1], logical) == values[1:-1]
    assert values_of_array(array[:0], logical) == []


@pytest.mark.parametrize("logical", [each for each, _ in VALUES], ids=str)
def test_a_type_that_arrow_knows_comes_back_from_it(logical: LogicalType) -> None:
    again = logical_of(arrow_of(logical))
    assert arrow_of(again) == arrow_of(logical)


def test_the_rows_of_a_schema_have_types_with_and_without_null() -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("name", pa.dictionary(pa.int32(), pa.string())),
            pa.field("at", pa.timestamp("ms", "Europe/Berlin")),
        ]
    )
    row = row_type_of_schema(schema)
    assert str(row) == "ROW<`id` BIGINT NOT NULL, `name` STRING, `at` TIMESTAMP_LTZ(3)> NOT NULL"
    assert arrow_schema_of(row).types == [pa.int64(), pa.string(), pa.timestamp("ms", "UTC")]


def test_a_column_type_that_sql_has_not_is_refused() -> None:
    with pytest.raises(ProgramError, match="cast them before"):
        logical_of(pa.decimal256(50, 2))


def test_moments_are_cut_to_the_digits_of_their_type() -> None:
    late = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
    found = values_of_array(
        array_of_values([late], TimestampType(precision=3)), TimestampType(precision=3)
    )
    assert found == [late.replace(microsecond=999000)]
    nanos = pa.array([-1], pa.int64()).cast(pa.timestamp("ns"))
    assert values_of_array(nanos, TimestampType(precision=9)) == [late]

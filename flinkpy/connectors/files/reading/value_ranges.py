"""Whether a filter can be true for any row of which only the ranges of the columns are known: what
the statistics of a Parquet file say, or the name of a folder.

The answer may be yes too often, but never no too often. NaN is in no range, and no comparison but
``!=`` is true for it; so ``!=`` and ``not`` are not looked into. Only expressions that cannot fail
are looked into at all: otherwise rows that are left out might have failed the job."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkpy.columns.expression import Call, Column, Expression, Literal

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBERS = (int, float, decimal.Decimal)
_MIRRORED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARISONS = {*_MIRRORED, "!="}


@dataclass(frozen=True)
class ValueRange:
    """All values of a column that are neither null nor NaN lie between the bounds; None: not known.
    ``only_nulls`` and ``no_nulls`` are False where that is not known."""

    low: Any = None
    high: Any = None
    only_nulls: bool = False
    no_nulls: bool = False

    @staticmethod
    def of_one(value: object) -> ValueRange:
        """Of a column with one value.

        >>> ValueRange.of_one("Oslo")
        ValueRange(low='Oslo', high='Oslo', only_nulls=False, no_nulls=True)
        """
        return (
            ValueRange(only_nulls=True)
            if value is None
            else ValueRange(value, value, no_nulls=True)
        )


def can_be_pushed(expression: Expression, schema: pa.Schema) -> bool:
    """Whether the expression is made of comparisons of columns with constants, which can never
    fail, and of columns whose values statistics show exactly."""
    if isinstance(expression, Column):
        return expression.column in schema.names and _is_shown_exactly(
            schema.field(expression.column).type
        )
    if isinstance(expression, Literal):
        return True
    if not isinstance(expression, Call):
        return False
    if expression.function not in (
        "&",
        "|",
        "not",
        "is_true",
        "is_false",
        "is_null",
        "is_not_null",
        "in_",
        *_COMPARISONS,
    ):
        return False
    return all(can_be_pushed(each, schema) for each in expression.arguments)


def _is_shown_exactly(kind: pa.DataType) -> bool:
    """Not so: nanoseconds, which Python's datetimes do not have, small floats, which a comparison
    rounds constants to, and integers that a comparison may refuse."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return bool(kind.unit != "ns")
    whole = pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    return bool(
        whole
        or pa.types.is_float64(kind)
        or pa.types.is_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_decimal128(kind)
    )


def may_be_true(expression: Expression, ranges: Mapping[str, ValueRange]) -> bool:
    """Whether the expression may be true for some row with columns in these ranges.

    >>> from flinkpy.table.expressions import col
    >>> may_be_true((col("n") > 5) & (col("x") == 1), {"n": ValueRange(1, 5)})
    False
    """
    if not isinstance(expression, Call):
        return True
    arguments = expression.arguments
    if expression.function == "&":
        return all(may_be_true(each, ranges) for each in arguments)
    if expression.function == "|":
        return any(may_be_true(each, ranges) for each in arguments)
    if not arguments or not isinstance(arguments[0], (Column, Literal)):
        return True
    if expression.function in _MIRRORED:
        left, right = arguments
        if isinstance(left, Column) and isinstance(right, Literal):
            return _may_hold(ranges.get(left.column), expression.function, right.value)
        if isinstance(left, Literal) and isinstance(right, Column):
            return _may_hold(ranges.get(right.column), _MIRRORED[expression.function], left.value)
        return True
    found = ranges.get(arguments[0].column) if isinstance(arguments[0], Column) else None
    if found is None:
        return True
    if expression.function == "is_null":
        return not found.no_nulls
    if expression.function == "is_not_null":
        return not found.only_nulls
    if expression.function == "in_":
        return any(_may_hold(found, "==", value) for value in dict(expression.options)["values"])
    return True


def _may_hold(found: ValueRange | None, function: str, value: object) -> bool:
    if found is None:
        return True
    if found.only_nulls or value is None:
        return False  # a comparison with null is null
    low, high = found.low, found.high
    if low is None or high is None or not _alike(low, value) or not _alike(high, value):
        return True
    if function == "==":
        return bool(low <= value <= high)
    return bool(
        {"<": low < value, "<=": low <= value, ">": high > value, ">=": high >= value}[function]
    )


def _alike(bound: object, value: object) -> bool:
    """Whether Python compares the two as expressions do."""
    if bound != bound or value != value:  # NaN: some writers have it in their statistics
        return False
    if isinstance(bound, bool) or isinstance(value, bool):
        return type(bound) is type(value)
    if isinstance(bound, _NUMBERS):
        # large integers and decimals become the nearest float
        if isinstance(bound, float) or isinstance(value, float):
            return (
                isinstance(value, (int, float))
                and isinstance(bound, (int, float))
                and max(abs(bound), abs(value)) < 1 << 53
            )
        return isinstance(value, _NUMBERS)
    if isinstance(bound, datetime.datetime):
        return isinstance(value, datetime.datetime) and (bound.tzinfo is None) == (
            value.tzinfo is None
        )
    return type(bound) is type(value) and isinstance(bound, (str, bytes, datetime.date))

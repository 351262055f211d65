"""Values as functions of users see them, and what they give back as columns.

They are those of ``columns.sql.arrays_of_values``, but a ROW is a ``Row`` with the names of its
fields."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from flinkpy.columns.sql.arrays_of_values import array_of_values
from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.sql_kernels.kernels_by_value import values_of
from flinkpy.columns.sql.user_code import FailingValue
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    DecimalType,
    LogicalType,
    MapType,
    RowType,
)
from flinkpy.common.types import Row

_MOST_SHOWN = 60
_HALF_UP = decimal.Context(prec=76, rounding=decimal.ROUND_HALF_UP)


def arguments_of(operand: Any, logical: LogicalType, rows: int) -> list[Any]:
    """The values of an array, or of a constant, for each row."""
    values = values_of(operand, logical, rows)
    change = _with_names(logical)
    if change is None:
        return values
    return [None if each is None else change(each) for each in values]


def _with_names(logical: LogicalType) -> Callable[[Any], Any] | None:
    """What makes Rows of the tuples in a value; None if there are none in it."""
    if isinstance(logical, RowType):
        names, inside = logical.names, [_with_names(each.type) for each in logical]

        def named(values: Sequence[Any]) -> Row:
            row = Row(
                *(
                    value if value is None or change is None else change(value)
                    for value, change in zip(values, inside)
                )
            )
            row.set_field_names(names)
            return row

        return named
    if isinstance(logical, ArrayType):
        change = _with_names(logical.element)
        if change is None:
            return None
        of_element = change
        return lambda items: [None if each is None else of_element(each) for each in items]
    if isinstance(logical, MapType):
        change = _with_names(logical.value)
        if change is None:
            return None
        of_value = change
        return lambda entries: {
            key: None if value is None else of_value(value) for key, value in entries.items()
        }
    return None


def results_of(values: Sequence[Any], logical: LogicalType) -> Any:
    """The array of what a function gave. Raises FailingValue for a value that is not of the
    type."""
    if isinstance(logical, DecimalType):
        values = [_rounded(each, logical) for each in values]
    try:
        found = array_of_values(values, logical)
    except Exception as error:
        raise _failing(values, logical, error) from None
    if found.null_count and not logical.is_nullable:
        place = found.is_null().to_pylist().index(True)
        raise FailingValue(TypeError(f"it gave None, and its type is {logical}"), place)
    return found


def _rounded(value: Any, logical: DecimalType) -> Any:
    if not isinstance(value, Decimal) or not value.is_finite():
        return value
    return value.quantize(Decimal(1).scaleb(-logical.scale), context=_HALF_UP)


def _failing(values: Sequence[Any], logical: LogicalType, error: Exception) -> FailingValue:
    for place, value in enumerate(values):
        try:
            array_of_values([value], logical)
        except Exception:
            shown = f"{value!r:.{_MOST_SHOWN}}"
            return FailingValue(
                TypeError(f"it gave {shown} ({type(value).__name__}), and its type is {logical}"),
                place,
            )
    return FailingValue(TypeError(f"its results are no {logical}: {error}"))


def conformed(found: Any, logical: LogicalType, rows: int) -> Any:
    """What a function of whole batches gave, as an array of the type. Raises FailingValue if it is
    none, or of another length."""
    try:
        array = found if isinstance(found, pa.Array) else _array(found, logical, rows)
        kind = arrow_of(logical)
        if not array.type.equals(kind):
            array = array.cast(kind)
    except Exception as error:
        raise FailingValue(
            TypeError(f"it gave a {type(found).__name__} that is no {logical}: {error}")
        ) from None
    if array.null_count and not logical.is_nullable:
        place = array.is_null().to_pylist().index(True)
        raise FailingValue(TypeError(f"it gave a null, and its type is {logical}"), place)
    if len(array) != rows:
        raise FailingValue(
            ValueError(f"it gave {len(array)} values for {rows} rows; give one for each")
        )
    return array


def _array(found: Any, logical: LogicalType, rows: int) -> Any:
    if isinstance(found, pa.ChunkedArray):
        return found.combine_chunks()
    if hasattr(found, "to_frame") or hasattr(found, "dtype"):  # of pandas or numpy
        return pa.array(found, from_pandas=True)
    if isinstance(found, (list, tuple)):
        return array_of_values(found, logical)
    return array_of_values([found] * rows, logical)  # one value for all

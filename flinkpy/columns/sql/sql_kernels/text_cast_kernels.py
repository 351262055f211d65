"""Casts from text and to text over whole columns, where Arrow writes and reads what Flink does. A
column with a text that only Flink's rules read is left to the cast value by value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.common.logical_types.logical_type import (
    BigIntType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    IntType,
    LogicalType,
    TimestampType,
)

TEXT = pa.string()
_DIGITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}  # of a second, that Arrow writes for a unit
_MOST_WITHOUT_EXPONENT = 6  # digits behind the point; Arrow writes more as 1E-7
_DAY = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"

# Texts that Arrow reads as Flink does
_PLAIN: dict[type[LogicalType], str] = {
    IntType: "-?[0-9]{1,9}",
    BigIntType: "-?[0-9]{1,18}",
    DoubleType: r"-?[0-9]+(\.[0-9]+)?([eE]-?[0-9]{1,2})?",
    DateType: _DAY,
    TimestampType: f"{_DAY} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}",
}


def texts_of(source: LogicalType) -> Callable[[Any], Any] | None:
    """The texts of numbers and local times; None where Arrow writes them in another way."""
    if isinstance(source, (IntegerType, DateType)):
        return lambda values: values.cast(TEXT)
    if isinstance(source, DecimalType) and source.scale <= _MOST_WITHOUT_EXPONENT:
        return lambda values: values.cast(TEXT)
    if isinstance(source, TimestampType) and source.precision in _DIGITS:
        kind = pa.timestamp(_DIGITS[source.precision])
        return lambda moments: moments.cast(kind, safe=False).cast(TEXT)
    return None


def from_texts(target: LogicalType, value_by_value: Callable[[Any], Any]) -> Any:
    """The cast of texts to this type; None if only value by value will do."""
    plain = _PLAIN.get(type(target))
    if isinstance(target, DecimalType) and target.precision > target.scale:
        before = f"-?[0-9]{{1,{target.precision - target.scale}}}"
        plain = rf"{before}(\.[0-9]{{1,{target.scale}}})?" if target.scale else before
    if plain is None:
        return None
    kind, pattern = arrow_of(target), f"^({plain})$"

    def change(texts: Any) -> Any:
        is_plain = pc.match_substring_regex(texts, pattern)
        if is_plain.true_count + texts.null_count == len(texts):
            try:
                return texts.cast(kind)
            except pa.ArrowException:
                pass  # perhaps a day that is not in the calendar: the other way names it
        return value_by_value(texts)

    return change

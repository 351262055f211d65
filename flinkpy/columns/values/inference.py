"""Infers a column's type from its values if none was declared: a type that holds all of them
exactly.

Integers mixed with floats become floats; large ones, and those mixed with decimals, become
decimals. Rows become structs with the fields of all rows, dicts become maps. Values without a
common type are refused, because a guess would change them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.values.exact_arrays import is_missing, named_fields
from flinkpy.common.time import Instant
from flinkpy.common.types import Row

# In this order: a bool is an int, a datetime is a date, and numpy's timedelta64 is an integer
_FAMILIES: tuple[tuple[Any, str], ...] = (
    ((datetime.timedelta, np.timedelta64), "durations"),
    ((bool, np.bool_), "truth values"),
    ((int, np.integer), "whole numbers"),
    ((float, np.floating), "floats"),
    (Decimal, "decimals"),
    (str, "texts"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((datetime.datetime, np.datetime64, Instant), "moments"),
    (datetime.date, "dates"),
    (datetime.time, "times"),
    ((Row, list, tuple, np.ndarray), "lists"),
)
_NEVER_MISSING = {int, float, str, bool, bytes, Decimal, dict, list, datetime.datetime}
_WIDER = {
    frozenset(("whole numbers", "floats")): "floats",
    frozenset(("whole numbers", "decimals")): "decimals",
}


def inferred_type(values: Iterable[Any], field: str) -> Any:
    """The type. Raises ValueError, which names the field, for values without a common type and for
    a value that no column can hold.

    >>> inferred_type([1, None, 2.5], "price")
    DataType(double)
    """
    present = [value for value in values if value is not None]
    classes = dict.fromkeys(map(type, present))
    if not _NEVER_MISSING.issuperset(classes):
        present = [value for value in present if not is_missing(value)]
        classes = dict.fromkeys(map(type, present))
    if not present:
        return pa.null()
    firsts: dict[str, Any] = {}
    for cls in classes:
        value = next(value for value in present if type(value) is cls)
        firsts.setdefault(_family(value, field), value)
    family = next(iter(firsts)) if len(firsts) == 1 else _WIDER.get(frozenset(firsts))
    if family is None:
        one, other = list(firsts.values())[:2]
        raise ValueError(
            f"field {field!r} holds {_shown(one)} and {_shown(other)}, and a column has one type"
        )
    return _TYPES[family](present, field)


def check_objects(frame: Any) -> None:
    """Raises ValueError for a column of Python objects in a pandas frame that Arrow would convert
    with a loss: it takes a datetime beside a date as a date, one without a zone beside one that has
    a zone as if both were alike, and True beside 1.5 as 1.0."""
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if column.dtype == object:
            present = column[column.notna()].tolist()
            classes = set(map(type, present))
            if len(classes) > 1 or datetime.datetime in classes:
                inferred_type(present, str(name))


def _family(value: object, field: str) -> str:
    if named_fields(value) is not None:
        return "records"
    for classes, family in _FAMILIES:
        if isinstance(value, classes):
            return family
    raise ValueError(f"field {field!r} holds {_shown(value)}, for which columns have no type")


def _shown(value: object) -> str:
    return f"{value!r:.60} ({type(value).__name__})"


def _whole_numbers(values: Sequence[Any], field: str) -> Any:
    numbers = list(map(int, values))
    low, high = min(numbers), max(numbers)
    if low >= -(1 << 63) and high < 1 << 63:
        return pa.int64()
    if low >= 0 and high < 1 << 64:
        return pa.uint64()
    return _decimal(len(str(max(abs(low), abs(high)))), 0, field)


def _floats(values: Sequence[Any], field: str) -> Any:
    if set(map(type, values)) == {float}:
        return pa.float64()
    for value in values:
        if isinstance(value, (int, np.integer)) and not _is_float(int(value)):
            other = next(each for each in values if isinstance(each, (float, np.floating)))
            raise ValueError(
                f"field {field!r} holds {_shown(other)} and {_shown(value)}, which no float equals"
            )
    return pa.float64()


def _is_float(value: int) -> bool:
    try:
        return float(value) == value
    except OverflowError:
        return False


def _decimals(values: Sequence[Any], field: str) -> Any:
    whole = scale = 0
    for value in values:
        number = Decimal(int(value)) if isinstance(value, (int, np.integer)) else value
        _, digits, exponent = number.as_tuple()
        if not isinstance(exponent, int):
            raise ValueError(
                f"field {field!r} holds {_shown(value)}, which decimal columns do not have"
            )
        scale, whole = max(scale, -exponent), max(whole, len(digits) + exponent)
    return _decimal(whole, scale, field)


def _decimal(whole: int, scale: int, field: str) -> Any:
    """The type of Types.BIG_DEC() if the digits fit, so that later values fit too; else a type made
    for these digits."""
    if 0 < scale <= 18 and whole <= 20:
        return pa.decimal128(38, 18)
    for widest, kind in ((38, pa.decimal128), (76, pa.decimal256)):
        if whole + scale <= widest:
            return kind(widest, scale)
    raise ValueError(
        f"field {field!r} holds numbers of {whole + scale} digits, and decimal columns have "
        "up to 76"
    )


def _moments(values: Sequence[Any], field: str) -> Any:
    zones = [
        (
            getattr(value, "tzinfo", None)
            if not isinstance(value, Instant)
            else datetime.timezone.utc,
            value,
        )
        for value in values
    ]
    naive = next((value for zone, value in zones if zone is None), None)
    zoned = next((value for zone, value in zones if zone is not None), None)
    if naive is not None and zoned is not None:
        raise ValueError(
            f"field {field!r} holds {_shown(naive)}, which has no zone, and {_shown(zoned)}, "
            "which has one"
        )
    unit = "ns" if any(map(_has_nanoseconds, values)) else "us"
    return (
        pa.timestamp(unit)
        if zoned is None
        else pa.timestamp(unit, _zone({zone for zone, _ in zones}))
    )


def _has_nanoseconds(value: object) -> bool:
    """Whether the value's class has nanoseconds; for an Instant, whether it has any."""
    if isinstance(value, np.datetime64):
        return np.datetime_data(value.dtype)[0] == "ns"
    return hasattr(value, "nanosecond") or (isinstance(value, Instant) and value.nanos % 1000 != 0)


def _zone(zones: set[Any]) -> str:
    """The common zone, by a name that Arrow knows; if there are several, UTC, which does not change
    the instants."""
    if len(zones) == 1:
        try:
            return str(pa.lib.tzinfo_to_string(zones.pop()))
        except (ValueError, TypeError, NotImplementedError, pa.ArrowException):
            pass
    return "UTC"


def _durations(values: Sequence[Any], field: str) -> Any:
    return pa.duration(
        "ns"
        if any(
            hasattr(value, "nanoseconds")
            or (isinstance(value, np.timedelta64) and np.datetime_data(value.dtype)[0] == "ns")
            for value in values
        )
        else "us"
    )


def _lists(values: Sequence[Any], field: str) -> Any:
    return pa.list_(inferred_type([each for listed in values for each in listed], f"{field}[]"))


def _records(values: Sequence[Any], field: str) -> Any:
    """Dicts become maps, as in PyFlink and Spark, and maps become dicts when they are read. Dicts
    whose values have no common type, and other records, become structs with the fields of all."""
    if all(isinstance(value, dict) for value in values):
        keys = [key for value in values for key in value]
        items = [each for value in values for each in value.values()]
        try:
            return pa.map_(
                inferred_type(keys, f"{field} (keys)") if keys else pa.string(),
                inferred_type(items, f"{field}[]"),
            )
        except ValueError:
            if not all(isinstance(key, str) for key in keys):
                raise
    records = [named_fields(value) or {} for value in values]
    names = dict.fromkeys(name for record in records for name in record)
    return pa.struct(
        [
            (name, inferred_type([record.get(name) for record in records], f"{field}.{name}"))
            for name in names
        ]
    )


_TYPES: dict[str, Any] = {
    "truth values": lambda values, field: pa.bool_(),
    "whole numbers": _whole_numbers,
    "floats": _floats,
    "decimals": _decimals,
    "texts": lambda values, field: pa.string(),
    "bytes": lambda values, field: pa.binary(),
    "moments": _moments,
    "dates": lambda values, field: pa.date32(),
    "times": lambda values, field: pa.time64("us"),
    "durations": _durations,
    "lists": _lists,
    "records": _records,
}

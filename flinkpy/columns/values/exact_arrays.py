"""Exact conversion of values to Arrow arrays: the array's values equal the given ones, or a
ValueError names the one that does not fit.

Arrow's own conversion loses information: 2.9 becomes 2 in a column of integers, a datetime becomes
a date, a zoned datetime loses its zone. So each type has a rule: which classes of values Arrow
converts exactly, and how to first convert a value of another class to an equal value."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Context, Decimal
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.values.numpy_types import numpy_type
from flinkpy.common.time import Instant
from flinkpy.common.types import Row

# Returns an equal value that Arrow accepts; raises ValueError if there is none
Exactly: TypeAlias = Callable[[Any], Any]

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_ALL_DIGITS = Context(prec=1200)  # a float has up to 1,075 digits after the point
_MICROSECOND = datetime.timedelta(microseconds=1)
_ARROWS_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def array_of(values: Sequence[Any], kind: pa.DataType, field: str = "") -> Any:
    """The values as an Arrow array of this type. Raises ValueError, which names the first value
    that does not fit, and ``field``.

    >>> array_of([1, 2.0, None], pa.int64()).to_pylist()
    [1, 2, None]
    >>> array_of([2.9], pa.int64(), "price")
    Traceback (most recent call last):
        ...
    ValueError: field 'price': 2.9 (float) is no int64
    """
    nested = _nested(kind)
    if nested is not None:
        return nested(values, kind, field)
    if pa.types.is_dictionary(kind):
        return array_of(values, kind.value_type, field).dictionary_encode().cast(kind)
    rule = _rule(kind)
    if rule.plain.issuperset(set(map(type, values))):
        try:
            return rule.checked(pa.array(values, kind), values)
        except _ARROWS_ERRORS:
            pass  # converting them one by one finds the culprit
    return _one_by_one(values, kind, rule, field)


def _one_by_one(values: Sequence[Any], kind: pa.DataType, rule: _Rule, field: str) -> Any:
    exact = []
    for value in values:
        try:
            exact.append(None if is_missing(value) else rule.exactly(value))
        except _ARROWS_ERRORS as error:
            raise _misfit(
                value, kind, field, f": {error}" if isinstance(error, _Reason) else ""
            ) from error
    try:
        return rule.checked(pa.array(exact, kind), exact)
    except _ARROWS_ERRORS:
        for value, each in zip(values, exact):
            try:
                rule.checked(pa.array([each], kind), [each])
            except _ARROWS_ERRORS as error:
                raise _misfit(value, kind, field) from error
        raise


class _Reason(ValueError):
    """Says why a value does not fit, if the type's name does not show it."""


def is_missing(value: Any) -> bool:
    """Whether the value is None, or NaT or NA of pandas or numpy."""
    return (
        value is None
        or type(value).__name__ in ("NaTType", "NAType")
        or (isinstance(value, (np.datetime64, np.timedelta64)) and bool(np.isnat(value)))
    )


def _misfit(value: Any, kind: pa.DataType, field: str, why: str = "") -> ValueError:
    return ValueError(
        f"{f'field {field!r}: ' if field else ''}{value!r:.100} ({type(value).__name__}) is "
        f"no {kind}{why}"
    )


# -- nested values ---------------------------------------------------------------------------------


def _nested(kind: pa.DataType) -> Callable[[Sequence[Any], Any, str], Any] | None:
    if pa.types.is_struct(kind):
        return _structs
    if pa.types.is_map(kind):
        return _maps
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists
    return _fixed_lists if pa.types.is_fixed_size_list(kind) else None


def named_fields(value: Any) -> dict[Any, Any] | None:
    """The fields of a record with names: a dict, a named Row, a named tuple or a dataclass; None
    for anything else."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (Row, tuple)):
        names = getattr(value, "_fields", None)
        return dict(zip(names, value)) if names else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None


def _structs(values: Sequence[Any], kind: pa.DataType, field: str) -> Any:
    names = [each.name for each in kind]
    nothing = [None] * len(names)
    records = [
        nothing if is_missing(value) else _in_order(value, names, kind, field) for value in values
    ]
    if not names or not records:
        return pa.array([None if is_missing(value) else {} for value in values], kind)
    inside = f"{field}." if field else ""
    children = [
        array_of(column, each.type, f"{inside}{each.name}")
        for each, column in zip(kind, zip(*records))
    ]
    return pa.StructArray.from_arrays(
        children,
        fields=list(kind),
        mask=pa.array([is_missing(value) for value in values], pa.bool_()),
    )


def _in_order(value: Any, names: list[str], kind: pa.DataType, field: str) -> Sequence[Any]:
    """The values of the struct's fields: by name from a dict or a record with these names, else by
    position."""
    named = named_fields(value)
    if named is not None and (isinstance(value, dict) or named.keys() <= set(names)):
        more = [name for name in named if name not in names]
        if more:
            raise _misfit(value, kind, field, f": it has no field {more[0]!r}")
        return [named.get(name) for name in names]
    listed = list(named.values()) if named is not None else _elements(value, kind, field)
    if len(listed) != len(names):
        raise _misfit(value, kind, field, f": {len(listed)} fields instead of {len(names)}")
    return listed


def _elements(value: Any, kind: pa.DataType, field: str) -> Sequence[Any]:
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, np.ndarray):
        return list(value)
    if isinstance(value, (str, bytes, bytearray, Mapping, set, frozenset)) or not isinstance(
        value, Iterable
    ):
        raise _misfit(value, kind, field)
    return list(value)


def _offsets(lengths: Sequence[int | None], kind: pa.DataType) -> Any:
    """The offset where each list begins; None where the list is missing."""
    ends = list(accumulate(length or 0 for length in lengths))
    return pa.array(
        [
            *(None if length is None else end - length for length, end in zip(lengths, ends)),
            ends[-1] if ends else 0,
        ],
        kind,
    )


def _lists(values: Sequence[Any], kind: pa.DataType, field: str) -> Any:
    lists = [None if is_missing(value) else _elements(value, kind, field) for value in values]
    elements = array_of(
        [each for listed in lists if listed is not None for each in listed],
        kind.value_type,
        f"{field}[]",
    )
    made = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    offsets = _offsets(
        [None if listed is None else len(listed) for listed in lists],
        pa.int64() if pa.types.is_large_list(kind) else pa.int32(),
    )
    return made.from_arrays(offsets, elements, type=kind)


def _fixed_lists(values: Sequence[Any], kind: pa.DataType, field: str) -> Any:
    lists = _lists(values, pa.list_(kind.value_type), field).to_pylist()
    for value, listed in zip(values, lists):
        if listed is not None and len(listed) != kind.list_size:
            raise _misfit(value, kind, field, f": it has {len(listed)} elements")
    return pa.array(lists, kind)


def _maps(values: Sequence[Any], kind: pa.DataType, field: str) -> Any:
    pairs = []
    for value in values:
        try:
            pairs.append(
                None
                if is_missing(value)
                else list((value if isinstance(value, Mapping) else dict(value)).items())
            )
        except _ARROWS_ERRORS as error:
            raise _misfit(value, kind, field) from error
    flat = [pair for each in pairs if each is not None for pair in each]
    if any(key is None for key, _ in flat):
        raise _misfit(None, kind.key_type, f"{field} (keys)")
    keys = array_of([key for key, _ in flat], kind.key_type, f"{field} (keys)")
    items = array_of([item for _, item in flat], kind.item_type, f"{field}[]")
    made = pa.MapArray.from_arrays(
        _offsets([None if each is None else len(each) for each in pairs], pa.int32()), keys, items
    )
    return made if made.type.equals(kind) else made.cast(kind)


# -- single values ---------------------------------------------------------------------------------


def _as_it_is(array: Any, values: Sequence[Any]) -> Any:
    return array


@dataclass(frozen=True)
class _Rule:
    """``plain``: classes whose values Arrow converts exactly or rejects. ``checked`` checks the
    array that Arrow made."""

    plain: frozenset[type]
    exactly: Exactly
    checked: Callable[[Any, Sequence[Any]], Any] = _as_it_is


@lru_cache(maxsize=256)
def _rule(kind: pa.DataType) -> _Rule:
    is_a = pa.types
    if is_a.is_integer(kind):
        return _of(int, exactly=_whole)
    if is_a.is_float64(kind):
        return _of(float, int, exactly=_double)
    if is_a.is_floating(kind):
        return _of(float, exactly=_shorter_float(kind), checked=_without_new_infinities)
    if is_a.is_boolean(kind):
        return _of(bool, exactly=_of_class(np.bool_, bool))
    if is_a.is_decimal(kind):
        return _of(int, exactly=_decimal(kind.scale))
    for test, cls, others in (
        (_is_text, str, str),
        (_is_bytes, bytes, (bytes, bytearray, memoryview)),
    ):
        if test(kind):
            return _of(cls, exactly=_of_class(others, cls))
    if is_a.is_date(kind):
        return _of(datetime.date, exactly=_date)
    if is_a.is_timestamp(kind):
        return _of(exactly=_moment(kind))
    if is_a.is_time(kind):
        return _of(exactly=_time_of_day(kind))
    if is_a.is_duration(kind):
        return _of(exactly=_duration(kind))
    return _of(exactly=lambda value: value)


def _of(
    *plain: type, exactly: Exactly, checked: Callable[[Any, Sequence[Any]], Any] = _as_it_is
) -> _Rule:
    return _Rule(frozenset((*plain, type(None))), exactly, checked)


def _is_text(kind: pa.DataType) -> bool:
    return (
        bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
        or str(kind) == "string_view"
    )


def _is_bytes(kind: pa.DataType) -> bool:
    return (
        bool(
            pa.types.is_binary(kind)
            or pa.types.is_large_binary(kind)
            or pa.types.is_fixed_size_binary(kind)
        )
        or str(kind) == "binary_view"
    )


def _of_class(wanted: pa.DataType, cls: type) -> Exactly:
    def exactly(value: Any) -> Any:
        if not isinstance(value, (wanted, cls)):
            raise ValueError
        return str.__str__(value) if cls is str else cls(value)

    return exactly


def _number(value: Any) -> Any:
    """The value as a Python number; raises ValueError for bools and for anything else."""
    value = value.item() if isinstance(value, np.number) else value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise ValueError
    return value


def _whole(value: Any) -> int:
    number = _number(value)
    whole = int(number)
    if whole != number:
        raise ValueError
    return whole


def _double(value: Any) -> float:
    number = _number(value)
    if isinstance(number, Decimal) and number.is_nan():
        return math.nan
    nearest = float(number)
    if nearest != number and nearest == nearest:
        raise ValueError
    return nearest


def _shorter_float(kind: pa.DataType) -> Exactly:
    dtype = numpy_type(kind).type

    def exactly(value: Any) -> Any:
        number = _double(value)
        with np.errstate(over="ignore"):
            short = float(dtype(number))
        # Only a float may be rounded, as the type demands
        if not isinstance(value, float) and short != number and number == number:
            raise ValueError
        if math.isinf(short) and not math.isinf(number):
            raise ValueError
        return dtype(number)

    return exactly


def _without_new_infinities(array: Any, values: Sequence[Any]) -> Any:
    if (pc.sum(pc.is_inf(array)).as_py() or 0) != sum(
        1 for value in values if value is not None and math.isinf(value)
    ):
        raise ValueError
    return array


def _decimal(scale: int) -> Exactly:
    def exactly(value: Any) -> Decimal:
        number = value if type(value) is Decimal else Decimal(_number(value))
        exponent = number.as_tuple().exponent
        # Arrow's rescaling overflows with many digits and changes the value
        if isinstance(exponent, int) and -exponent > scale:
            number = number.normalize(_ALL_DIGITS)
            if -int(number.as_tuple().exponent) > scale:
                raise ValueError
        return number

    return exactly


def _date(value: Any) -> datetime.date:
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] == "D":
        value = value.item()
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise ValueError
    return value


def _moment(kind: pa.DataType) -> Exactly:
    has_zone, unit, to_unit = kind.tz is not None, kind.unit, _in_unit(kind.unit)

    def check(zoned: bool) -> None:
        if zoned != has_zone:
            raise _Reason("it has a zone" if zoned else "it has no zone")

    def exactly(value: Any) -> Any:
        if type(value) is datetime.datetime and unit == "us":
            check(value.tzinfo is not None)
            return value
        nanoseconds, zoned = _since_1970(value)
        check(zoned)
        return to_unit(nanoseconds)

    return exactly


def _in_unit(unit: str) -> Callable[[int], int]:
    size = _NANOSECONDS[unit]

    def convert(nanoseconds: int) -> int:
        count, rest = divmod(nanoseconds, size)
        if rest:
            raise ValueError
        return count

    return convert


def _since_1970(value: Any) -> tuple[int, bool]:
    """Nanoseconds since 1970, and whether the value has a zone."""
    if isinstance(value, Instant):
        return value.seconds * 1_000_000_000 + value.nanos, True
    if isinstance(value, np.datetime64):
        return _numpy_nanoseconds(value, "datetime64"), False
    if not isinstance(value, datetime.datetime):
        raise ValueError
    more = getattr(value, "nanosecond", 0)  # of a pandas.Timestamp
    plain = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    return (
        plain - (_EPOCH if plain.tzinfo is None else _EPOCH_UTC)
    ) // _MICROSECOND * 1000 + more, plain.tzinfo is not None


def _numpy_nanoseconds(value: Any, name: str) -> int:
    unit = np.datetime_data(value.dtype)[0]
    if unit in ("ps", "fs", "as", "generic"):
        raise ValueError
    if unit == "ns":
        return int(value.astype(np.int64))
    return int(value.astype(f"{name}[us]").astype(np.int64)) * 1000


def _time_of_day(kind: pa.DataType) -> Exactly:
    to_unit = _in_unit(kind.unit)

    def exactly(value: Any) -> int:
        if not isinstance(value, datetime.time) or value.tzinfo is not None:
            raise ValueError
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return to_unit((seconds * 1_000_000 + value.microsecond) * 1000)

    return exactly


def _duration(kind: pa.DataType) -> Exactly:
    to_unit = _in_unit(kind.unit)

    def exactly(value: Any) -> int:
        if isinstance(value, np.timedelta64):
            return to_unit(_numpy_nanoseconds(value, "timedelta64"))
        if not isinstance(value, datetime.timedelta):
            raise ValueError
        # A pandas.Timedelta has nanoseconds
        return to_unit(value // _MICROSECOND * 1000 + getattr(value, "nanoseconds", 0))

    return exactly

"""SQL's values in Python, and arrays of them.

BOOLEAN is bool; integers, and the months and milliseconds of intervals, are int; FLOAT is a float
of 32 bits; DECIMAL is Decimal; TIMESTAMP is a datetime without a zone, TIMESTAMP_LTZ one in UTC;
BITMAP is a frozenset, ARRAY is a list, MAP and MULTISET are dicts (the latter of counts), ROW is a
tuple. A datetime has microseconds: what a column has beyond them is cut when it becomes one."""

from __future__ import annotations

import datetime
import itertools
import pickle
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.few_values import array_of_few
from flinkpy.columns.sql.sql_meanings.bitmaps.roaring_format import (
    numbers_of_roaring,
    roaring_bytes,
)
from flinkpy.columns.sql.sql_meanings.collections.hashable_values import hashable
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BitmapType,
    DayTimeIntervalType,
    DecimalType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    RawType,
    RowType,
    TimestampType,
    TimeType,
)

_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1)
_UTC = datetime.timezone.utc
_MICROS_PER_UNIT = {"ms": 1000, "us": 1}

Change: TypeAlias = Callable[[Any], Any]


def array_of_values(values: Sequence[Any], logical: LogicalType) -> Any:
    """The values as an array of the type's Arrow form. Rows may be tuples, lists or Row."""
    change = _to_arrow(logical)
    if change is not None:
        values = [None if value is None else change(value) for value in values]
    kind = arrow_of(logical)
    few = array_of_few(values, kind)
    return pa.array(values, kind) if few is None else few


def scalar_of_value(value: Any, logical: LogicalType) -> Any:
    """The value as an Arrow scalar."""
    return array_of_values([value], logical)[0]


def values_of_array(array: pa.Array, logical: LogicalType) -> list[Any]:
    """The values of an array of the type's Arrow form, or of a dictionary of it."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if isinstance(logical, (TimestampType, LocalZonedTimestampType)):
        listed: list[Any] = _in_microseconds(array).to_pylist()
    elif isinstance(logical, DayTimeIntervalType):
        listed = array.cast(pa.int64()).to_pylist()
    elif _is_flat(logical):
        listed = array.to_pylist()
    else:
        return _nested_values(array, logical)
    return listed


def _is_flat(logical: LogicalType) -> bool:
    return not logical.children and not isinstance(logical, (BitmapType, RawType, RowType))


def _nested_values(array: pa.Array, logical: LogicalType) -> list[Any]:
    missing = array.is_null().to_pylist()
    if isinstance(logical, RawType):
        return [None if each is None else pickle.loads(each) for each in array.to_pylist()]
    if isinstance(logical, BitmapType):
        return [None if each is None else numbers_of_roaring(each) for each in array.to_pylist()]
    if isinstance(logical, RowType):
        children = [
            values_of_array(array.field(at), each.type) for at, each in enumerate(logical.fields)
        ]
        rows = zip(*children) if children else [()] * len(array)
        return [None if gone else row for gone, row in zip(missing, rows)]
    offsets = array.offsets.to_pylist()
    bounds = list(itertools.pairwise(offsets))
    if isinstance(logical, ArrayType):
        items = values_of_array(array.values, logical.element)
        return [None if gone else items[a:b] for gone, (a, b) in zip(missing, bounds)]
    keys = values_of_array(array.keys, logical.children[0])
    if isinstance(logical, MapType):
        items = values_of_array(array.items, logical.value)
    else:
        items = array.items.to_pylist()
    entries = list(zip(keys, items))
    return [None if gone else _mapping(entries[a:b]) for gone, (a, b) in zip(missing, bounds)]


def _mapping(entries: list[tuple[Any, Any]]) -> Any:
    """A dict. Keys that Python cannot hash (arrays, maps, rows of them) become tuples."""
    return {hashable(key): value for key, value in entries}


def _in_microseconds(array: pa.Array) -> Any:
    if array.type.unit != "ns":
        return array
    kind = pa.timestamp("us", array.type.tz)
    counted = array.cast(pa.int64())
    cut = pc.subtract(pc.divide(counted, 1000), _is_below(counted, 1000))
    return cut.cast(kind)


def _is_below(counted: pa.Array, unit: int) -> Any:
    """1 where division by the unit cut a number towards zero from below."""
    whole = pc.multiply(pc.divide(counted, unit), unit)
    return pc.and_(pc.less(counted, 0), pc.not_equal(whole, counted)).cast(pa.int64())


def _to_arrow(logical: LogicalType) -> Change | None:
    """What pyarrow takes for a value of this type; None if it takes the value itself."""
    if isinstance(logical, (TimestampType, LocalZonedTimestampType)):
        return _units_of(logical)
    if isinstance(logical, TimeType):
        return _milliseconds_of_time
    if isinstance(logical, DecimalType):
        return lambda value: value if isinstance(value, Decimal) else Decimal(value)
    if isinstance(logical, RawType):
        return pickle.dumps
    if isinstance(logical, BitmapType):
        return roaring_bytes
    if isinstance(logical, RowType):
        return _row_to_arrow(logical)
    if isinstance(logical, (MapType, MultisetType)):
        return _entries_to_arrow(logical)
    if isinstance(logical, ArrayType):
        inside = _to_arrow(logical.element)
        if inside is None:
            return None
        change = inside
        return lambda values: [None if each is None else change(each) for each in values]
    return None


def _units_of(logical: TimestampType | LocalZonedTimestampType) -> Change:
    per_unit = _MICROS_PER_UNIT.get(arrow_of(logical).unit)

    def counted(moment: datetime.datetime) -> int:
        if moment.tzinfo is not None:
            moment = moment.astimezone(_UTC).replace(tzinfo=None)
        micros = (moment - _EPOCH) // _MICROSECOND
        return micros * 1000 if per_unit is None else micros // per_unit

    return counted


def _milliseconds_of_time(time: datetime.time) -> int:
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return seconds * 1000 + time.microsecond // 1000


def _row_to_arrow(logical: RowType) -> Change:
    changes = [_to_arrow(each.type) for each in logical]
    names = logical.names

    def changed(row: Any) -> list[tuple[str, Any]]:
        return [
            (name, value if value is None or change is None else change(value))
            for name, value, change in zip(names, row, changes)
        ]

    return changed


def _entries_to_arrow(logical: MapType | MultisetType) -> Change:
    of_key = _to_arrow(logical.children[0])
    of_value = _to_arrow(logical.value) if isinstance(logical, MapType) else None

    def changed(entries: dict[Any, Any]) -> list[tuple[Any, Any]]:
        return [
            (
                key if of_key is None else of_key(key),
                value if value is None or of_value is None else of_value(value),
            )
            for key, value in entries.items()
        ]

    return changed

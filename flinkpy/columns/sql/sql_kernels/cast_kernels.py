"""CAST and TRY_CAST over whole columns. Casts that are neither between numbers nor between moments
are computed value by value, as their results are texts, or are read from texts."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.zones import local_times, placed
from flinkpy.columns.sql.arrow_of_logical import arrow_of, is_sized
from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of
from flinkpy.columns.sql.sql_kernels.numbers.arithmetic_kernels import as_floats
from flinkpy.columns.sql.sql_kernels.numbers.decimal_halves import (
    decimals_of,
    halves_of,
    validity_of,
    with_validity,
)
from flinkpy.columns.sql.sql_kernels.numbers.decimal_kernels import fitted, in_scale
from flinkpy.columns.sql.sql_kernels.numbers.integer_kernels import wrapping
from flinkpy.columns.sql.sql_kernels.text_cast_kernels import from_texts, texts_of
from flinkpy.columns.sql.sql_meanings.casts.cast_meanings import counted_in_nanoseconds
from flinkpy.columns.values.numpy_types import numpy_type
from flinkpy.common.logical_types.logical_type import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LocalZonedTimestampType,
    LogicalType,
    NullType,
    TimestampType,
    TypeFamily,
    VarCharType,
)

_UTC = "UTC"


def _cast(name: str) -> KernelOf:
    def choose(site: CallSite) -> Kernel:
        source, target = site.arguments[0], site.result
        if isinstance(source, NullType):
            return lambda rows, value: pa.nulls(rows, arrow_of(target))
        slow = by_value(name)(site)
        is_try = name == "TRY_CAST"
        kernel = None if is_try and _may_overflow(target) else _fast_cast(source, target, site.zone)
        if kernel is None and source.is_a(TypeFamily.CHARACTER_STRING):
            kernel = from_texts(target, lambda texts: slow(len(texts), texts))
        if kernel is None:
            return slow
        change = kernel
        return lambda rows, value: column_of(change(column_of(value, rows)), rows)

    return choose


def _may_overflow(target: LogicalType) -> bool:
    """Whether a cast of moments, in one call for all of them, fails because of one."""
    return isinstance(target, (TimestampType, LocalZonedTimestampType)) and target.precision > 6


def _fast_cast(source: LogicalType, target: LogicalType, zone: str) -> Callable[[Any], Any] | None:
    """The cast over an array; None if there is none that is faster than value by value."""
    if isinstance(target, VarCharType) and not is_sized(target):
        write = texts_of(source)
        if write is not None:
            return write
    if isinstance(source, IntegerType):
        return _of_integers(source, target)
    if isinstance(source, DecimalType):
        return _of_decimals(source, target)
    if isinstance(source, (FloatType, DoubleType)):
        return _of_floats(target)
    if isinstance(source, BooleanType) and isinstance(target, IntegerType):
        kind = arrow_of(target)
        return lambda values: values.cast(kind)
    is_text = source.is_a(TypeFamily.CHARACTER_STRING)
    if is_text and isinstance(target, VarCharType):
        length = target.length
        return (
            (lambda texts: pc.utf8_slice_codeunits(texts, 0, length)) if is_sized(target) else _same
        )
    if isinstance(source, (DateType, TimestampType, LocalZonedTimestampType)):
        return _of_moments(source, target, zone)
    return None


def _same(values: Any) -> Any:
    return values


# -- numbers ---------------------------------------------------------------------------------------


def _of_integers(source: IntegerType, target: LogicalType) -> Callable[[Any], Any] | None:
    kind = arrow_of(target)
    if isinstance(target, IntegerType):
        return lambda values: wrapping(values, kind)
    if isinstance(target, (FloatType, DoubleType)):
        return lambda values: _from_numpy(values, _numbers(values).astype(numpy_type(kind)))
    if isinstance(target, BooleanType):
        return lambda values: pc.not_equal(values, 0)
    if isinstance(target, DecimalType):
        return _rescaling(source, target)
    return None


def _of_decimals(source: DecimalType, target: LogicalType) -> Callable[[Any], Any] | None:
    if isinstance(target, DecimalType):
        return _rescaling(source, target)
    if isinstance(target, BooleanType):
        return lambda values: pc.not_equal(values, pa.scalar(Decimal(0), values.type))
    if isinstance(target, DoubleType):
        return lambda values: as_floats(values, pa.float64())
    if isinstance(target, FloatType):
        return lambda values: as_floats(values, pa.float64()).cast(pa.float32(), safe=False)
    if isinstance(target, IntegerType):
        return _whole_part(source, target)
    return None


def _rescaling(source: LogicalType, target: DecimalType) -> Callable[[Any], Any]:
    """Numbers that are exact as decimals of other digits; null what does not fit."""

    def change(values: Any) -> Any:
        halves = halves_of(values, source)
        found = None if halves is None else in_scale(halves, target)
        if found is not None:
            return decimals_of(found, target, [values]).array()
        wide = values.cast(pa.decimal128(19, 0)) if pa.types.is_integer(values.type) else values
        wide = wide.cast(pa.decimal256(76, max(wide.type.scale, target.scale)))
        return fitted(wide, target, len(values))

    return change


def _whole_part(source: DecimalType, target: IntegerType) -> Callable[[Any], Any]:
    kind = arrow_of(target)

    def change(values: Any) -> Any:
        halves = halves_of(values, source)
        if halves is None or halves.scale > 18:
            whole = [None if each is None else int(each) for each in values.to_pylist()]
            limit = 1 << target.bits
            half = limit >> 1
            wrapped = [None if each is None else (each + half) % limit - half for each in whole]
            return pa.array(wrapped, kind)
        numbers = np.asarray(halves.values)
        sizes = np.abs(numbers) // 10**halves.scale
        found = np.where(numbers < 0, -sizes, sizes)
        return _from_numpy(values, found.astype(numpy_type(kind)))

    return change


def _of_floats(target: LogicalType) -> Callable[[Any], Any] | None:
    kind = arrow_of(target)
    if isinstance(target, (FloatType, DoubleType)):
        return lambda values: values.cast(kind, safe=False)
    if isinstance(target, BooleanType):
        return lambda values: pc.not_equal(values, 0)
    if not isinstance(target, IntegerType):
        return None
    bits = max(target.bits, 32)

    def change(values: Any) -> Any:
        numbers = _numbers(values).astype(np.float64)
        limit = 2.0 ** (bits - 1)
        is_high, is_low = numbers >= limit, numbers < -limit
        kept = np.where(is_high | is_low | np.isnan(numbers), 0.0, numbers).astype(f"i{bits // 8}")
        kept = np.where(is_high, np.iinfo(kept.dtype).max, kept)
        kept = np.where(is_low, np.iinfo(kept.dtype).min, kept)
        return _from_numpy(values, kept.astype(numpy_type(kind)))

    return change


def _numbers(values: pa.Array) -> Any:
    """The numbers of a column, whatever lies where a value is null."""
    kind = numpy_type(values.type)
    numbers = np.frombuffer(values.buffers()[1] or b"", kind)
    return numbers[values.offset : values.offset + len(values)]


def _from_numpy(values: pa.Array, numbers: Any) -> Any:
    """Numbers in the place of a column's, null where that is."""
    kind = pa.from_numpy_dtype(numbers.dtype)
    return with_validity(kind, len(numbers), np.ascontiguousarray(numbers), validity_of([values]))


# -- moments ---------------------------------------------------------------------------------------


def _of_moments(source: LogicalType, target: LogicalType, zone: str) -> Callable[[Any], Any] | None:
    kind = arrow_of(target)
    if isinstance(source, DateType) and isinstance(target, TimestampType):
        return lambda days: days.cast(kind)
    if isinstance(target, (TimestampType, LocalZonedTimestampType)):
        assert isinstance(source, (TimestampType, LocalZonedTimestampType, DateType))
        if type(source) is type(target):
            assert not isinstance(source, DateType)
            return _digits(source.precision, target.precision, kind)
        if isinstance(source, LocalZonedTimestampType):
            cut = _digits(source.precision, target.precision, kind)
            return lambda moments: cut(local_moments(moments, zone))
        if isinstance(source, TimestampType):
            cut = _digits(source.precision, target.precision, pa.timestamp(kind.unit))
            return lambda moments: _instants(cut(moments), zone)
        return lambda days: _instants(days.cast(pa.timestamp(kind.unit)), zone)
    if isinstance(target, DateType) and isinstance(source, TimestampType):
        return lambda moments: _floor(moments, "day").cast(kind)
    if isinstance(target, DateType) and isinstance(source, LocalZonedTimestampType):
        return lambda moments: _floor(local_moments(moments, zone), "day").cast(kind)
    return None


def local_moments(moments: pa.Array, zone: str) -> Any:
    unit = moments.type.unit
    return local_times(moments.cast(pa.timestamp(unit, zone))).cast(pa.timestamp(unit))


def _instants(local: pa.Array, zone: str) -> Any:
    return placed(local, zone, local.type.unit).cast(pa.timestamp(local.type.unit, _UTC))


def _floor(moments: pa.Array, unit: str) -> Any:
    return pc.floor_temporal(moments, unit=unit)


def _digits(have: int, wanted: int, kind: pa.DataType) -> Callable[[Any], Any]:
    """Moments with another number of digits; what is too much is cut."""
    if wanted >= have:
        return lambda moments: _finer(moments, kind)

    def change(moments: Any) -> Any:
        per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[moments.type.unit]
        unit = per_second // 10**wanted
        if unit <= 1:
            return moments.cast(kind)
        counted = _counted(moments)
        cut = counted - counted % unit
        floored = with_validity(moments.type, len(moments), cut, validity_of([moments]))
        return floored.cast(kind)

    return change


def _finer(moments: pa.Array, kind: pa.DataType) -> Any:
    """Moments of another unit. Raises ValueError for one that the unit does not reach."""
    try:
        return moments.cast(kind)
    except pa.ArrowInvalid:
        for moment in moments.cast(pa.timestamp("us", moments.type.tz)).to_pylist():
            counted_in_nanoseconds(moment)
        raise


def _counted(moments: pa.Array) -> Any:
    numbers = np.frombuffer(moments.buffers()[1] or b"", np.int64)
    return numbers[moments.offset : moments.offset + len(moments)]


# -- parts -----------------------------------------------------------------------------------------


def _field(site: CallSite) -> Kernel:
    index = site.options["index"]
    return lambda rows, row: pc.struct_field(column_of(row, rows), index)


def _reinterpret(site: CallSite) -> Kernel:
    kind = arrow_of(site.result)

    def kernel(rows: int, value: Any) -> Any:
        value = column_of(value, rows)
        return value if value.type.equals(kind) else value.cast(kind)

    return kernel


CAST_KERNELS: dict[str, KernelOf] = {
    "CAST": _cast("CAST"),
    "TRY_CAST": _cast("TRY_CAST"),
    "REINTERPRET": _reinterpret,
    "FIELD": _field,
}

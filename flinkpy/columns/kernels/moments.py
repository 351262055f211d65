"""Kernels for dates and times. Those with a zone are changed in their local time, which ``zones``
finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels import calendars
from flinkpy.columns.kernels.operand_types import INT, TEXT, Kernel, Types, is_text, with_casts
from flinkpy.columns.kernels.zones import local_times, placed
from flinkpy.columns.time_formats import Field, fields_of, pieces_of, reading
from flinkpy.columns.units import MICROSECONDS, MONTHS, PARTS_OF_DAYS, PARTS_OF_TIMES, WHOLE_DAYS

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MICROS, _ELAPSED, _DATE = pa.timestamp("us"), pa.duration("us"), pa.date32()


def _micro(moments: pa.Array) -> Any:
    return pc.add(pc.multiply(pc.millisecond(moments), 1000), pc.microsecond(moments))


_PARTS: dict[str, Kernel] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "isoyear": pc.iso_year,
    "day": pc.day,
    "doy": pc.day_of_year,
    "isodow": lambda moments: pc.day_of_week(moments, count_from_zero=False),
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": pc.millisecond,
    "microsecond": _micro,
}


def _is_date(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind))


def _has_day(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or _is_date(kind))


def _check_unit(kind: pa.DataType, unit: str) -> None:
    """Dates have no hours, times of day have no days."""
    if not _has_day(kind) and not pa.types.is_time(kind):
        raise TypeError("it needs a date, a time or a timestamp")
    if (_is_date(kind) and unit in PARTS_OF_TIMES) or (
        pa.types.is_time(kind) and unit in PARTS_OF_DAYS
    ):
        raise TypeError(f"{'a date' if _is_date(kind) else 'a time of day'} has no {unit}")


def _on_local_times(kind: pa.DataType, change: Kernel) -> Kernel:
    """The change of a local timestamp, for timestamps with a zone too. Other operands are passed
    on."""
    if getattr(kind, "tz", None) is None:
        return change
    return lambda moments, *others: placed(
        change(local_times(moments), *others), kind.tz, kind.unit
    )


def extract(types: Types, unit: str) -> Kernel:
    kind, part = types[0], _PARTS[unit]
    if pa.types.is_null(kind):
        return lambda values: pa.nulls(len(values), INT)
    _check_unit(kind, unit)
    return lambda moments: part(local_times(moments)).cast(INT)


def _truncation(round_to: Callable[[Any, str], Any]) -> Callable[..., Kernel]:
    def choose(types: Types, unit: str) -> Kernel:
        kind = types[0]
        if pa.types.is_null(kind):
            return lambda values: values
        _check_unit(kind, unit)
        if getattr(kind, "tz", None) is None or unit in WHOLE_DAYS:
            return _on_local_times(kind, lambda moments: round_to(moments, unit).cast(moments.type))

        def shifted(moments: pa.Array) -> Any:
            local = local_times(moments)
            return pc.add_checked(moments, pc.subtract(round_to(local, unit), local))

        return shifted

    return choose


def _ceiled(moments: pa.Array, unit: str) -> Any:
    """By the beginning of the unit: Arrow's own rounding up moves a beginning of a year to the next
    one."""
    floor = pc.floor_temporal(moments, unit=unit)
    # null where the moment is a beginning itself
    passed = pc.if_else(pc.equal(floor, moments), pa.scalar(None, moments.type), floor)
    return pc.coalesce(_next_beginning(passed, unit), moments)


def _next_beginning(moments: pa.Array, unit: str) -> Any:
    kind = moments.type
    if pa.types.is_time(kind):
        per_second = _PER_SECOND[kind.unit]
        counted = pa.int32() if kind.bit_width == 32 else INT
        following = pc.add(
            moments.view(counted).cast(INT), MICROSECONDS[unit] * per_second // 10**6
        )
        if (pc.max(following).as_py() or 0) >= 86_400 * per_second:
            raise OverflowError("the next whole unit is on the next day")
        return following.cast(counted).view(kind)
    missing = moments.is_null()
    days, time = np.divmod(_micros(moments), calendars.DAY_US)
    following = (
        calendars.later(days, MONTHS[unit]) * calendars.DAY_US + time
        if unit in MONTHS
        else _micros(moments) + MICROSECONDS[unit]
    )
    return _array(following, _MICROS, missing).cast(kind)


floor_to = _truncation(lambda moments, unit: pc.floor_temporal(moments, unit=unit))
ceil_to = _truncation(_ceiled)


# -- intervals -------------------------------------------------------------------------------------


def interval(types: Types, unit: str) -> Kernel:
    if not pa.types.is_integer(types[0]) and not pa.types.is_null(types[0]):
        raise TypeError(
            f"{unit}s make an interval of a whole number; for the {unit} of a date or time "
            f"write .extract({unit!r})"
        )
    return with_casts(
        lambda numbers: pc.multiply_checked(numbers, MICROSECONDS[unit]).cast(_ELAPSED), types, INT
    )


def months_alone(types: Types, unit: str) -> Kernel:
    raise TypeError(
        f"{unit}s are added to or subtracted from a date or a timestamp; for the {unit} of "
        f"one write .extract({unit!r})"
    )


def add_months(types: Types, months: int) -> Kernel:
    kind = types[0]
    if not _has_day(kind) and not pa.types.is_null(kind):
        raise TypeError("months are added to dates and timestamps")
    if not pa.types.is_integer(types[1]) and not pa.types.is_null(types[1]):
        raise TypeError("it needs a whole number of months")
    if pa.types.is_null(kind):
        return lambda moments, numbers: pa.nulls(
            len(numbers) if isinstance(moments, pa.Scalar) else len(moments)
        )

    def later(moments: pa.Array, numbers: Any) -> Any:
        length = len(numbers) if isinstance(moments, pa.Scalar) else len(moments)
        moments, numbers = (
            pa.repeat(each, length) if isinstance(each, pa.Scalar) else each
            for each in (moments, numbers)
        )
        missing = pc.or_(moments.is_null(), numbers.is_null())
        days = _micros(moments) // calendars.DAY_US
        later_days = calendars.later(
            days, np.where(missing, 0, numbers.cast(INT).fill_null(0).to_numpy() * months)
        )
        if not pa.types.is_timestamp(moments.type):
            return _array(later_days * calendars.DAY_US, _MICROS, missing).cast(moments.type)
        return pc.add_checked(
            moments, _array((later_days - days) * calendars.DAY_US, _ELAPSED, missing)
        ).cast(moments.type)

    return _on_local_times(kind, later)


def date_plus(types: Types, sign: int) -> Kernel:
    """A date and an interval make a date, as in Python: parts of days do not count."""
    at = next(at for at, kind in enumerate(types) if _is_date(kind))

    def moved(*operands: Any) -> Any:
        days, elapsed = operands[at], operands[1 - at].cast(_ELAPSED).cast(INT)
        # division cuts towards zero
        downwards = pc.if_else(
            pc.less(elapsed, 0), pc.subtract_checked(elapsed, calendars.DAY_US - 1), elapsed
        )
        whole = pc.divide(downwards, calendars.DAY_US)
        change = pc.add_checked if sign > 0 else pc.subtract_checked
        return (
            change(days.cast(_DATE).cast(pa.int32()).cast(INT), whole).cast(pa.int32()).cast(_DATE)
        )

    return moved


def timestamp_diff(types: Types, unit: str) -> Kernel:
    if not all(_has_day(kind) or pa.types.is_null(kind) for kind in types):
        raise TypeError("it needs dates or timestamps")
    if len({getattr(kind, "tz", None) is None for kind in types if not pa.types.is_null(kind)}) > 1:
        raise TypeError(
            "one has a zone and the other has none: give it one with replace_time_zone(...)"
        )

    def between(one: Any, other: Any) -> Any:
        length = len(other) if isinstance(one, pa.Scalar) else len(one)
        one, other = (
            pa.repeat(each, length) if isinstance(each, pa.Scalar) else each
            for each in (one, other)
        )
        missing = pc.or_(one.is_null(), other.is_null())
        if unit in MONTHS:
            found = calendars.months_between(*(_micros(local_times(each)) for each in (one, other)))
            step = MONTHS[unit]
        else:
            found, step = _micros(other) - _micros(one), MICROSECONDS[unit]
        return _array(np.where(found < 0, -(-found // step), found // step), INT, missing)

    return between


def _micros(moments: pa.Array) -> Any:
    """Microseconds since 1970; finer digits are cut off. Zero where there is null."""
    kind = moments.type
    if pa.types.is_null(kind):
        return np.zeros(len(moments), np.int64)
    if _is_date(kind):
        return (
            moments.cast(_DATE).cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
            * calendars.DAY_US
        )
    counted = moments.view(INT).fill_null(0).to_numpy()
    return (
        counted // 1000
        if kind.unit == "ns"
        else counted * {"s": 10**6, "ms": 10**3, "us": 1}[kind.unit]
    )


def _array(values: Any, kind: pa.DataType, missing: Any) -> Any:
    mask = missing if isinstance(missing, np.ndarray) else missing.to_numpy(zero_copy_only=False)
    found = pa.array(values, INT, mask=mask)
    return found if kind == INT else found.cast(kind)


# -- text ------------------------------------------------------------------------------------------


def read_moment(types: Types, format: str, to: str) -> Kernel:
    if not is_text(types[0]) and not pa.types.is_null(types[0]):
        raise TypeError("it needs text")
    pattern, wanted = rf"\A(?:{reading(format)})\z", _DATE if to == "date" else _MICROS

    def read(texts: pa.Array) -> Any:
        found = pc.extract_regex(texts, pattern)
        missing = found.is_null().to_numpy(zero_copy_only=False)
        parts = {
            field.part: _numbers(field, pc.struct_field(found, field.part))
            for field in fields_of(format)
        }
        micros, wrong = calendars.micros_of(parts, len(texts))
        return _array(np.where(wrong, 0, micros), _MICROS, missing | wrong).cast(wanted, safe=False)

    return with_casts(read, types, TEXT)


def _numbers(field: Field, texts: pa.Array) -> Any:
    """The numbers that a field's texts show; 1 where there is null."""
    if field.names:
        names = pa.array([name.lower() for name in field.names])
        return (
            pc.add(pc.index_in(pc.utf8_lower(texts), names), field.lowest)
            .fill_null(1)
            .to_numpy()
            .astype(np.int64)
        )
    if field.part == "fraction":
        texts = pc.utf8_slice_codeunits(pc.utf8_rpad(texts, 6, "0"), 0, 6)
    numbers = texts.fill_null("1").cast(INT).to_numpy()
    return numbers if field.century is None else field.century + (numbers - field.century) % 100


def date_format(types: Types, format: str) -> Kernel:
    kind = types[0]
    if not _has_day(kind) and not pa.types.is_null(kind):
        raise TypeError("it needs a date or a timestamp")
    pieces = pieces_of(format)

    def shown(moments: pa.Array) -> Any:
        local = local_times(moments) if pa.types.is_timestamp(kind) else moments.cast(_MICROS)
        parts = [
            pa.scalar(piece, TEXT) if isinstance(piece, str) else _texts(piece, local)
            for piece in pieces
        ]
        if not any(isinstance(piece, Field) for piece in pieces):
            parts.append(pc.if_else(moments.is_valid(), "", pa.scalar(None, TEXT)))
        return pc.binary_join_element_wise(*parts, pa.scalar(""))

    return shown


def _texts(field: Field, moments: pa.Array) -> Any:
    if field.part == "fraction":
        return pc.utf8_slice_codeunits(
            pc.utf8_rpad(pc.utf8_lpad(_micro(moments).cast(TEXT), 6, "0"), 9, "0"), 0, field.width
        )
    number = _WRITTEN[field.part](moments).cast(INT)
    if field.century is not None:
        number = pc.subtract(number, pc.multiply(pc.divide(number, 100), 100))
    if field.names:
        return pa.array(field.names).take(pc.subtract(number, field.lowest))
    return pc.utf8_lpad(number.cast(TEXT), field.width, "0")


_WRITTEN: dict[str, Kernel] = {
    **_PARTS,
    "weekday": _PARTS["isodow"],
    "half": lambda moments: pc.divide(pc.hour(moments), 12),
    "hour12": lambda moments: _twelve(pc.hour(moments)),
}


def _twelve(hours: Any) -> Any:
    """The hours as a clock of twelve hours shows them."""
    later = pc.if_else(pc.greater(hours, 12), pc.subtract(hours, 12), hours)
    return pc.if_else(pc.equal(later, 0), 12, later)

"""Casts between column types. ``flinkpy.columns.rowwise`` defines what they mean for one value.

Timestamps become milliseconds since 1970 as integers, whatever their unit. A timestamp with a zone
becomes its local date, time and timestamp. Floats and decimals are truncated to integers. Text may
have spaces around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.operand_types import BOOL, FLOAT, INT, TEXT, bring, is_text
from flinkpy.columns.kernels.zones import local_times, zone_of
from flinkpy.columns.rowwise import TRUTHS, cast_one, shown_moment, try_cast
from flinkpy.columns.values.arrow_types import arrow_type
from flinkpy.columns.values.conversion import python_values
from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.common.typeinfo import Types

Cast = Callable[[Any], Any]
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LIKELY = (  # text that can be cast, but for dates that do not exist and numbers that are too large
    (pa.types.is_integer, r"^ *[+-]?[0-9]{1,18} *$"),
    (pa.types.is_floating, r"^ *[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,2})? *$"),
    (pa.types.is_date, r"^ *[0-9]{4}-[0-9]{2}-[0-9]{2} *$"),
    (
        pa.types.is_timestamp,
        r"^ *[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?)? *$",
    ),
)
_IS_NUMBER = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)


def cast(types: list[Any], to: Any) -> Cast:
    """The kernel; raises TypeError if there is no such cast."""
    source, target = types[0], arrow_type(to)
    if is_text(source):
        return _of_text(target)
    if _counts(source) or _counts(target):
        return _of_moment(source, target)
    is_cut = pa.types.is_floating(source) or pa.types.is_decimal(source)
    if is_cut and (pa.types.is_integer(target) or target == pa.decimal128(38, 0)):
        return lambda values: pc.trunc(values).cast(target)
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        return _exactly_between(target)
    if pa.types.is_boolean(source) and pa.types.is_decimal(target):
        return lambda values: values.cast(INT).cast(target)
    if target == TEXT and pa.types.is_floating(source):  # Arrow writes 1.0 as "1"
        return lambda values: pa.array(
            [None if each is None else str(each) for each in values.cast(FLOAT).to_pylist()], TEXT
        )
    if pa.types.is_floating(target):
        nearest = bring(source, FLOAT) if pa.types.is_decimal(source) else None
        return lambda values: (values if nearest is None else nearest(values)).cast(
            target, safe=False
        )
    return _plain(target)


def cast_where_possible(types: list[Any], to: Any) -> Cast:
    """The cast with null for what cannot be cast. Where there is such a value, what looks as it
    should is cast at once, and the rest goes through Python."""
    kernel, target = cast(types, to), arrow_type(to)
    pattern = (
        next((pattern for is_kind, pattern in _LIKELY if is_kind(target)), None)
        if is_text(types[0])
        else None
    )

    def one_by_one(values: pa.Array | pa.Scalar) -> Any:
        return array_of(
            [None if value is None else try_cast(value, to) for value in python_values(values)],
            target,
        )

    def either(values: pa.Array | pa.Scalar) -> Any:
        try:
            return kernel(values)
        except (pa.ArrowInvalid, ArithmeticError):
            pass
        if pattern is None:
            return one_by_one(values)
        is_likely = pc.match_substring_regex(values.cast(TEXT), pattern).fill_null(False)
        try:
            likely = kernel(values.filter(is_likely))
        except (pa.ArrowInvalid, ArithmeticError):
            return one_by_one(values)
        where = np.argsort(~is_likely.to_numpy(zero_copy_only=False), kind="stable")
        back = np.empty_like(where)
        back[where] = np.arange(len(where))
        return pa.concat_arrays([likely, one_by_one(values.filter(pc.invert(is_likely)))]).take(
            pa.array(back)
        )

    return either


def _plain(target: pa.DataType) -> Cast:
    return lambda values: values.cast(target)


def _behind(first: Cast, then: Cast) -> Cast:
    return lambda values: then(first(values))


def _counts(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind))


# -- moments ---------------------------------------------------------------------------------------


def _of_moment(source: pa.DataType, target: pa.DataType) -> Cast:
    if any(is_number(source) for is_number in _IS_NUMBER):
        if not (pa.types.is_integer(source) and pa.types.is_timestamp(target)):
            raise TypeError(
                "only whole numbers become a TIMESTAMP: milliseconds since 1970; and no "
                "number becomes a date or a time"
            )
        return lambda values: values.cast(INT).cast(pa.timestamp("ms", target.tz)).cast(target)
    if any(is_number(target) for is_number in _IS_NUMBER):
        if target != INT or not (pa.types.is_timestamp(source) or pa.types.is_duration(source)):
            raise TypeError(
                "a TIMESTAMP becomes a BIGINT, which counts milliseconds since 1970, and no "
                "other number; a date or a time becomes none"
            )
        return lambda values: _milliseconds(values, source.unit)
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(source):
        return _between_timestamps(source, target)
    if target == TEXT and (pa.types.is_timestamp(source) or pa.types.is_time(source)):
        return _moments_as_text if getattr(source, "tz", None) is None else _instants_as_text
    return (
        _plain(target)
        if getattr(source, "tz", None) is None
        else _behind(local_times, _plain(target))
    )


def _moments_as_text(values: pa.Array | pa.Scalar) -> Any:
    """Timestamps as text, such as 2024-01-02 03:04:05, with three, six or nine decimals of the
    second if it has any."""
    texts = pc.replace_substring_regex(values.cast(TEXT), r"[.]0+$", "")
    return pc.replace_substring_regex(texts, r"([.](?:\d{3})+?)(?:000)+$", r"\1")


def _instants_as_text(values: pa.Array | pa.Scalar) -> Any:
    """The same with the offset from UTC at that time. Neither Arrow nor pytz, which Arrow uses if
    it is installed, knows offsets after 2037."""
    zone = zone_of(values.type.tz)
    return pa.array(
        [
            None if value is None else shown_moment(value.astimezone(zone))
            for value in values.to_pylist()
        ],
        TEXT,
    )


def _milliseconds(values: pa.Array | pa.Scalar, unit: str) -> Any:
    per_second, counted = _PER_SECOND[unit], values.view(INT)
    if per_second <= 1000:
        return pc.multiply_checked(counted, 1000 // per_second)
    missing = counted.is_null().to_numpy(zero_copy_only=False) if counted.null_count else None
    return pa.array(
        np.floor_divide(counted.fill_null(0).to_numpy(), per_second // 1000), INT, mask=missing
    )


def _between_timestamps(source: pa.DataType, target: pa.DataType) -> Cast:
    """Digits beyond the target's unit are cut off."""
    if source.tz is not None and target.tz is None:
        return lambda values: local_times(values).cast(target, safe=False)
    return lambda values: values.cast(target, safe=False)


# -- text ------------------------------------------------------------------------------------------


def _of_text(target: pa.DataType) -> Cast:
    if target == TEXT:
        return _plain(TEXT)
    has_year = pa.types.is_date(target) or pa.types.is_timestamp(target)

    def trimmed(values: pa.Array | pa.Scalar) -> Any:
        texts = pc.utf8_trim(values.cast(TEXT), " ")
        # Python's dates begin with year 1
        if has_year and pc.any(pc.starts_with(texts, "0000")).as_py():
            raise pa.ArrowInvalid(
                f"{texts.filter(pc.starts_with(texts, '0000'))[0].as_py()!r} is no date"
            )
        return texts

    if pa.types.is_integer(target):
        return _behind(trimmed, lambda texts: _whole_numbers(texts, target))
    if pa.types.is_decimal(target):
        return _behind(trimmed, lambda texts: _decimals(texts, target))
    if pa.types.is_timestamp(target):
        return _behind(
            trimmed,
            lambda texts: pc.replace_substring_regex(texts, r"([.]\d{6})\d+", r"\1").cast(target),
        )
    if pa.types.is_time(target):
        return _behind(trimmed, lambda texts: _moments_of_the_day(texts).cast(target))
    return _behind(trimmed, _truths if target == BOOL else _plain(target))


def _truths(texts: pa.Array) -> Any:
    """Text as truth values, with the words that Flink knows, where Arrow knows fewer."""
    words = pc.utf8_lower(texts)
    is_true, is_false = (
        pc.is_in(words, pa.array([word for word, truth in TRUTHS.items() if truth is wanted]))
        for wanted in (True, False)
    )
    wrong = texts.filter(pc.invert(pc.or_(is_true, is_false))).drop_null()
    if len(wrong):
        raise pa.ArrowInvalid(f"{wrong[0].as_py()!r} is neither true nor false")
    return pc.if_else(texts.is_valid(), is_true, pa.scalar(None, BOOL))


def _whole_numbers(texts: pa.Array, target: pa.DataType) -> Any:
    """Text as integers. Arrow rejects a plus sign and accepts hexadecimal digits; Flink and Python
    do the opposite."""
    if pc.any(pc.match_substring_regex(texts, "[+xX]")).as_py():
        wrong = texts.filter(pc.match_substring_regex(texts, "[xX]").fill_null(False))
        if len(wrong):
            raise pa.ArrowInvalid(f"{wrong[0].as_py()!r} is no whole number")
        texts = pc.replace_substring_regex(texts, r"^[+](\d)", r"\1")
    return texts.cast(target)


def _decimals(texts: pa.Array, target: pa.DataType) -> Any:
    """Text as decimals. Of numbers with too many digits Arrow makes other numbers; and it reads 1e3
    as a whole number."""
    plain = pc.match_substring_regex(
        texts,
        rf"^[+-]?[0-9]{{1,{target.precision - target.scale}}}"
        + (r"([.][0-9]+)?$" if target.scale else "$"),
    )
    if pc.all(plain, min_count=0).as_py():
        return texts.cast(target)
    of_text = Types.BIG_DEC() if target.scale else Types.BIG_INT()
    try:
        return array_of(
            [None if text is None else cast_one(text, of_text) for text in texts.to_pylist()],
            target,
        )
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from None


def _exactly_between(target: pa.DataType) -> Cast:
    """Between decimals. Arrow changes a number whose digits do not fit, unless it is given room
    first."""
    room = pa.decimal256(76, target.scale)
    return lambda values: values.cast(room).cast(target)


def _moments_of_the_day(texts: pa.Array) -> Any:
    """Times of day as text. There is no cast from text to a time of day, but one to a timestamp."""
    wrong = texts.filter(
        pc.invert(pc.match_substring_regex(texts, r"^\d\d:\d\d(:\d\d([.]\d+)?)?$")).fill_null(False)
    )
    if len(wrong):
        raise pa.ArrowInvalid(f"{wrong[0].as_py()!r} is no time of day, such as 12:30:00")
    whole = pc.binary_join_element_wise(pa.scalar("1970-01-01"), texts, pa.scalar(" "))
    return pc.replace_substring_regex(whole, r"([.]\d{6})\d+", r"\1").cast(pa.timestamp("us"))

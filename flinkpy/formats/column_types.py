"""The declared types of columns, for conversions that go value by value."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.values.arrow_types import arrow_schema, type_of_arrow
from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation, Types
from flinkpy.core.program.program_line import refuse


def declared_type(kind: pa.DataType) -> TypeInformation:
    """The declared type whose values an Arrow type holds; for maps, too."""
    if pa.types.is_map(kind):
        return Types.MAP(declared_type(kind.key_type), declared_type(kind.item_type))
    if pa.types.is_struct(kind):
        return Types.ROW_NAMED(
            [field.name for field in kind], [declared_type(field.type) for field in kind]
        )
    if is_list(kind):
        return Types.LIST(declared_type(kind.value_type))
    if pa.types.is_decimal(kind) and kind.scale == 0:
        return Types.BIG_INT()
    if pa.types.is_fixed_size_binary(kind) or str(kind) == "binary_view":
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    if pa.types.is_dictionary(kind):
        return declared_type(kind.value_type)
    if pa.types.is_floating(kind) and not pa.types.is_float64(kind):
        return Types.FLOAT()
    if pa.types.is_unsigned_integer(kind) and kind.bit_width == 64:
        return Types.BIG_INT()
    if pa.types.is_date(kind):
        return Types.SQL_DATE()
    if pa.types.is_time(kind):
        return Types.SQL_TIME()
    return Types.STRING() if str(kind) == "string_view" else type_of_arrow(kind)


def is_list(kind: pa.DataType) -> bool:
    """Whether the type is one of lists."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def in_utc(column: pa.Array) -> Any:
    """The column, with instants in UTC: Arrow writes another zone's offset without the seconds that
    it had before there was standard time."""
    kind = column.type
    has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
    return column.cast(pa.timestamp(kind.unit, "UTC")) if has_zone else column


def time_texts(column: pa.Array) -> Any:
    """The texts of a column of dates, times of day or moments, as ``text_values`` writes them:
    fractions of seconds with six digits, or nine where there are parts of microseconds, and none
    where they are zero. Instants are in UTC.

    >>> time_texts(pa.array([0, 1_500], pa.timestamp("ms", "Europe/Oslo"))).to_pylist()
    ['1970-01-01 00:00:00+00:00', '1970-01-01 00:00:01.500000+00:00']
    """
    kind = column.type
    texts = in_utc(column).cast(pa.string())
    for pattern, text in _FRACTIONS.get(getattr(kind, "unit", "s"), []):
        texts = pc.replace_substring_regex(texts, pattern, text)
    return (
        pc.replace_substring(texts, "Z", "+00:00")
        if pa.types.is_timestamp(kind) and kind.tz is not None
        else texts
    )


_ZEROS = (r"\.0+(Z?)$", r"\1")
_FRACTIONS = {
    "ms": [_ZEROS, (r"\.(\d{3})(Z?)$", r".\1000\2")],
    "us": [_ZEROS],
    "ns": [_ZEROS, (r"\.(\d{6})000(Z?)$", r".\1\2")],
}


def parts_of(columns: Sequence[Any]) -> Iterator[Any]:
    """The columns and all columns inside them."""
    for column in columns:
        yield column
        if pa.types.is_struct(column.type) or is_list(column.type):
            yield from parts_of(
                column.flatten() if pa.types.is_struct(column.type) else [column.flatten()]
            )


def is_sure(column: pa.Array) -> bool:
    """Whether a column that Arrow parsed has surely what rows have. Arrow lets some values pass
    that they refuse: an infinity may have been a number that is too large; a decimal has more
    digits than its type; a moment has nanoseconds, or is not in Python's years."""
    kind = column.type
    if pa.types.is_floating(kind):
        return not pc.any(pc.is_inf(column)).as_py()
    if pa.types.is_decimal(kind):
        return _is_valid(column)
    return not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)) or _is_of_python(column)


def _is_valid(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


_FIRST_DAY, _LAST_DAY = (
    day.toordinal() - datetime.date(1970, 1, 1).toordinal()
    for day in (datetime.date.min, datetime.date.max)
)
_UNITS_OF_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def _is_of_python(column: pa.Array) -> bool:
    kind = column.type
    units = (
        1
        if pa.types.is_date32(kind)
        else _UNITS_OF_A_DAY["ms" if pa.types.is_date64(kind) else kind.unit]
    )
    least, greatest = (found.value for found in pc.min_max(column).values())
    if least is not None and not (
        _FIRST_DAY * units <= least and greatest < (_LAST_DAY + 1) * units
    ):
        return False
    return (
        kind != pa.timestamp("ns")
        or not (column.drop_null().to_numpy().astype("int64") % 1000).any()
    )


def schema_and_type(given: object, where: str) -> tuple[Any, RowTypeInfo]:
    """The schema and the row type, of which one was given. Raises ProgramError for anything else,
    and for a type that columns do not have.

    >>> schema_and_type(Types.ROW_NAMED(["a"], [Types.INT()]), "here")[0]
    a: int32
    """
    if isinstance(given, RowTypeInfo):
        return arrow_schema(given), given
    if isinstance(given, pa.Schema):
        doubled = sorted({name for name in given.names if given.names.count(name) > 1})
        if doubled:
            raise refuse(f"{where}: two columns have the name {doubled[0]!r}")
        return given, Types.ROW_NAMED(given.names, [declared_type(field.type) for field in given])  # type: ignore[return-value]
    raise refuse(
        f"{where} takes a pyarrow.schema([...]) or Types.ROW_NAMED([...], [...]), this is "
        f"{given!r:.80}"
    )

"""Casts that nobody wrote: a value becomes the type that a function, a branch or a column of a
sink takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Context, Decimal
from functools import lru_cache

from flinkpy.common.logical_types.allowed_casts import explicit_cast_allowed, implicit_cast_allowed
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    CharType,
    DecimalType,
    DoubleType,
    IntegerType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    RowType,
    TimestampType,
    VarBinaryType,
    VarCharType,
)
from flinkpy.common.logical_types.type_merging import common_type
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexLiteral
from flinkpy.sql.sql_errors import Span, ValidationError

_WIDE = Context(prec=80)


@lru_cache(maxsize=4096)
def bare(type: LogicalType) -> LogicalType:
    """The type without marks and without NOT NULL, also within: what its values look like."""
    type = type.with_nullable(True)
    if isinstance(type, (TimestampType, LocalZonedTimestampType)):
        return replace(type, time_attribute=None)
    if isinstance(type, (ArrayType, MultisetType)):
        return replace(type, element=bare(type.element))
    if isinstance(type, MapType):
        return replace(type, key=bare(type.key), value=bare(type.value))
    if isinstance(type, RowType):
        return replace(
            type, fields=tuple(replace(each, type=bare(each.type)) for each in type.fields)
        )
    return type


def is_same(source: LogicalType, target: LogicalType) -> bool:
    """Whether values of both types lie in memory alike, so that nothing has to be cast."""
    source, target = bare(source), bare(target)
    if source == target:
        return True
    if isinstance(target, VarCharType) and isinstance(source, (CharType, VarCharType)):
        return source.length <= target.length
    if isinstance(target, VarBinaryType) and isinstance(source, VarBinaryType):
        return source.length <= target.length
    return False


def cast(value: Rex, target: LogicalType) -> Rex:
    """The value in this type. A value that is NOT NULL stays so, and one that may be null too."""
    if is_same(value.type, target):
        return value
    if isinstance(value, RexLiteral) and value.value is None:
        return replace(value, type=target.with_nullable(True))
    type = target.with_nullable(value.type.is_nullable)
    if isinstance(value, RexLiteral):
        constant = converted(value.value, target)
        if constant is not None:
            return replace(value, type=type, value=constant)
    return RexCall(type, function="CAST", arguments=(value,), span=value.span)


def converted(value: object, target: LogicalType) -> object:
    """A number as a constant of another numeric type; None where it does not fit exactly, so that
    CAST has to say what it becomes."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    if isinstance(target, DoubleType):
        return float(value)
    if isinstance(target, IntegerType):
        fits = value == int(value) and -(1 << target.bits - 1) <= value < 1 << target.bits - 1
        return int(value) if fits else None
    if isinstance(target, DecimalType):
        exact = Decimal(value)
        scaled = exact.scaleb(target.scale, _WIDE)
        if scaled != int(scaled) or len(str(abs(int(scaled)))) > target.precision:
            return None
        return exact.quantize(Decimal(1).scaleb(-target.scale), context=_WIDE)
    return None


def in_common(values: Sequence[Rex], what: str) -> tuple[LogicalType, tuple[Rex, ...]]:
    """The common type of several values, and the values in it."""
    common = common_type([each.type for each in values])
    if common is None:
        types = list(dict.fromkeys(str(bare(each.type)) for each in values))
        odd = next(each for each in values if common_type([values[0].type, each.type]) is None)
        raise ValidationError(
            f"{what} have no type in common: {', '.join(types)}; cast them to one, for example "
            f"CAST(... AS {bare(values[0].type)})",
            span=odd.span,
        )
    return common, tuple(cast(each, common) for each in values)


def stored(value: Rex, target: LogicalType, column: str, place: Span) -> Rex:
    """The value as a column of a sink takes it: what is narrower is widened, and any number becomes
    a DECIMAL. As in Flink, a BIGINT does not become an INT without CAST, nor a DOUBLE a FLOAT."""
    if is_same(value.type, target) or implicit_cast_allowed(
        value.type.with_nullable(True), target.with_nullable(True)
    ):
        return cast(value, target)
    if isinstance(value.type, NullType):
        return cast(value, target)
    way_out = (
        f"; write CAST(... AS {bare(target)})" if explicit_cast_allowed(value.type, target) else ""
    )
    raise ValidationError(
        f"Column types of query result and sink do not match: column '{column}' is "
        f"{bare(target)}, and the query gives {bare(value.type)}{way_out}",
        span=value.span if value.span.end else place,
    )

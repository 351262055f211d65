"""The type of what a call gives, without its nullability, by small rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from flinkpy.columns.sql.call_site import VARYING
from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import (
    UNBOUNDED,
    ArrayType,
    BinaryType,
    CharType,
    LogicalType,
    MapType,
    MultisetType,
    SizedType,
)
from flinkpy.common.logical_types.numeric_results import average_type, rounded_type, sum_type
from flinkpy.common.logical_types.type_merging import common_argument_type, computed
from flinkpy.sql.sql_errors import ValidationError


@dataclass(frozen=True)
class FittedCall:
    """``arguments`` are the types after the casts, ``given`` those before."""

    arguments: tuple[LogicalType, ...]
    given: tuple[LogicalType, ...]
    constants: tuple[object, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)


ResultRule: TypeAlias = Callable[[FittedCall], "LogicalType | None"]


class Nulls(Enum):
    """When the result may be null."""

    IF_ANY = "null if an argument is null"
    MAYBE = "may be null if an argument may be"  # as of AND, or of SUM
    NEVER = "never null"
    ALWAYS = "may be null for arguments that are not"
    OWN = "as the rule of the result says"

    def applied(self, result: LogicalType, arguments: Sequence[LogicalType]) -> LogicalType:
        """The result with its nullability."""
        if self is Nulls.OWN:
            return result
        if self in (Nulls.IF_ANY, Nulls.MAYBE):
            return result.with_nullable(any(each.is_nullable for each in arguments))
        return result.with_nullable(self is Nulls.ALWAYS)


def always(type: LogicalType) -> ResultRule:
    """One type for every call."""
    return lambda call: type


def argument(index: int) -> ResultRule:
    """The type of this argument."""
    return lambda call: computed(call.arguments[index])


def common(start: int = 0) -> ResultRule:
    """The common type of the arguments from this one on; null if one of them may be."""
    return lambda call: common_argument_type(call.arguments[start:])


def varying(index: int = 0) -> ResultRule:
    """Text of at most the length of this argument."""

    def rule(call: FittedCall) -> LogicalType:
        given = call.arguments[index]
        return DataTypes.VARCHAR(given.length) if isinstance(given, SizedType) else given

    return rule


def joined_text(call: FittedCall) -> LogicalType:
    """The lengths of the texts together: of fixed ones fixed."""
    sized = [each for each in call.arguments if isinstance(each, SizedType)]
    length = min(sum(each.length for each in sized), UNBOUNDED)
    is_fixed = all(isinstance(each, (CharType, BinaryType)) for each in sized)
    is_text = not any("BINARY" in each.sql_name for each in sized)
    if is_text:
        return DataTypes.CHAR(length) if is_fixed else DataTypes.VARCHAR(length)
    return DataTypes.BINARY(length) if is_fixed else DataTypes.VARBINARY(length)


def rounded(call: FittedCall) -> LogicalType:
    """The first argument with the digits that the second says, if that is a constant."""
    digits = call.constants[1] if len(call.constants) > 1 else 0
    if digits is VARYING or not isinstance(digits, int):
        return call.arguments[0]
    return rounded_type(call.arguments[0], digits)


def summed(call: FittedCall) -> LogicalType:
    """The type of SUM."""
    return sum_type(call.arguments[0])


def averaged(call: FittedCall) -> LogicalType:
    """The type of AVG and what is made from averages."""
    return average_type(call.arguments[0])


def element(call: FittedCall) -> LogicalType | None:
    """The type within the first argument: of an array's elements, of a map's values."""
    collection = call.arguments[0]
    if isinstance(collection, (ArrayType, MultisetType)):
        return collection.element
    return collection.value if isinstance(collection, MapType) else None


def option(name: str, otherwise: LogicalType) -> ResultRule:
    """The type that an option of the call names."""

    def rule(call: FittedCall) -> LogicalType | None:
        type = call.options.get(name, otherwise)
        return type if isinstance(type, LogicalType) else None

    return rule


def with_unit(rule: ResultRule, example: str) -> ResultRule:
    """What the rule gives, if the call has a unit of time. Without one the call is refused, and the
    example shows where it stands."""

    def checked(call: FittedCall) -> LogicalType | None:
        if "unit" not in call.options:
            raise ValidationError(f"the unit of time is missing: write {example}")
        return rule(call)

    return checked

"""What may stand at a place of a call: a kind of types, and the type that the value is cast to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from flinkpy.columns.sql.call_site import VARYING
from flinkpy.common.logical_types.allowed_casts import explicit_cast_allowed, implicit_cast_allowed
from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BitmapType,
    BooleanType,
    DayTimeIntervalType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    NullType,
    RowType,
    TimestampType,
    TypeFamily,
    YearMonthIntervalType,
)
from flinkpy.sql.functions.function_port import Argument


@dataclass(frozen=True)
class Kind:
    """``fit`` gives the type that an argument is cast to, None if it cannot stand here. An untyped
    NULL becomes a NULL of ``example``, unless its neighbours give it a type (``keeps_null``). The
    example is also what an error proposes to cast to."""

    text: str
    fit: Callable[[LogicalType], LogicalType | None]
    example: LogicalType
    is_constant: bool = False
    keeps_null: bool = False

    def fitted(self, argument: Argument) -> LogicalType | None:
        """The type that this argument is cast to; None if it cannot stand here."""
        if self.is_constant and (argument.constant is VARYING or argument.constant is None):
            return None
        if isinstance(argument.type, NullType):
            return argument.type if self.keeps_null else self.example.nullable()
        return self.fit(argument.type)

    def proposal(self, argument: Argument) -> str | None:
        """The type to which a cast would help."""
        if self.is_constant or not explicit_cast_allowed(argument.type, self.example):
            return None
        return str(self.example.nullable())

    def constant(self) -> Kind:
        """The same kind, as a literal only."""
        return replace(self, text=f"a constant {self.text}", is_constant=True)


def _family(family: TypeFamily, example: LogicalType) -> Kind:
    return Kind(f"<{family.value}>", lambda type: type if type.is_a(family) else None, example)


def _classes(text: str, example: LogicalType, *classes: type[LogicalType]) -> Kind:
    return Kind(text, lambda type: type if isinstance(type, classes) else None, example)


def exactly(type: LogicalType) -> Kind:
    """This type, or one that is cast to it implicitly."""

    def fit(given: LogicalType) -> LogicalType | None:
        wanted = type.with_nullable(given.is_nullable)
        return wanted if implicit_cast_allowed(given, wanted) else None

    return Kind(f"<{type.text()}>", fit, type)


def cast_to(kind: Kind, type: LogicalType) -> Kind:
    """What ``kind`` takes, cast to one type."""

    def fit(given: LogicalType) -> LogicalType | None:
        return None if kind.fit(given) is None else type.with_nullable(given.is_nullable)

    return replace(kind, fit=fit, example=type)


def one_of(*kinds: Kind) -> Kind:
    """What the first of these takes that takes it."""

    def fit(given: LogicalType) -> LogicalType | None:
        fitted = (each.fit(given) for each in kinds)
        return next((each for each in fitted if each is not None), None)

    return Kind(f"[{' | '.join(each.text for each in kinds)}]", fit, kinds[0].example)


def array_of(kind: Kind) -> Kind:
    """An array whose elements are of this kind."""

    def fit(given: LogicalType) -> LogicalType | None:
        if not isinstance(given, ArrayType):
            return None
        element = kind.fit(given.element)
        return None if element is None else replace(given, element=element)

    return Kind(f"ARRAY<{kind.text}>", fit, DataTypes.ARRAY(kind.example))


def _comparable(type: LogicalType) -> LogicalType | None:
    has_no_order = type.is_a(TypeFamily.CONSTRUCTED) or isinstance(type, BitmapType)
    return None if has_no_order else type


def _rowtime(type: LogicalType) -> LogicalType | None:
    if not isinstance(type, (TimestampType, LocalZonedTimestampType)):
        return None
    return None if type.time_attribute is None else type


_STRING = DataTypes.STRING()

ANY = Kind("<ANY>", lambda type: type, _STRING, keeps_null=True)
COMPARABLE = Kind("<COMPARABLE>", _comparable, _STRING, keeps_null=True)
NUMERIC = _family(TypeFamily.NUMERIC, DataTypes.DOUBLE())
EXACT = _family(TypeFamily.EXACT_NUMERIC, DataTypes.BIGINT())
INTEGER_NUMERIC = _family(TypeFamily.INTEGER_NUMERIC, DataTypes.BIGINT())
TEXT = _family(TypeFamily.CHARACTER_STRING, _STRING)
BINARY = _family(TypeFamily.BINARY_STRING, DataTypes.BYTES())
DATETIME = _family(TypeFamily.DATETIME, DataTypes.TIMESTAMP(3))
TIMESTAMP = _family(TypeFamily.TIMESTAMP, DataTypes.TIMESTAMP(3))
INTERVAL = _family(TypeFamily.INTERVAL, DayTimeIntervalType())
TEMPORAL = replace(one_of(DATETIME, INTERVAL), text="<TEMPORAL>")
INTERVAL_DAY_TIME = _classes("<INTERVAL DAY TIME>", DayTimeIntervalType(), DayTimeIntervalType)
INTERVAL_YEAR_MONTH = _classes(
    "<INTERVAL YEAR MONTH>", YearMonthIntervalType(), YearMonthIntervalType
)
BOOLEAN = _classes("<BOOLEAN>", DataTypes.BOOLEAN(), BooleanType)
BITMAP = _classes("<BITMAP>", DataTypes.BITMAP(), BitmapType)
ARRAY = _classes("<ARRAY>", DataTypes.ARRAY(_STRING), ArrayType)
MAP = _classes("<MAP>", DataTypes.MAP(_STRING, _STRING), MapType)
ROW = _classes("<ROW>", DataTypes.ROW(), RowType)
COLLECTION = replace(
    one_of(_family(TypeFamily.COLLECTION, DataTypes.ARRAY(_STRING)), MAP), text="<COLLECTION>"
)
ROWTIME = Kind("<a rowtime column>", _rowtime, DataTypes.TIMESTAMP(3))
INT = exactly(DataTypes.INT())
BIGINT = cast_to(INTEGER_NUMERIC, DataTypes.BIGINT())
DOUBLE = cast_to(NUMERIC, DataTypes.DOUBLE())  # what takes any number and computes in DOUBLE
STRING = replace(exactly(_STRING), text="<STRING>")

"""Flink's logical types: immutable values. Each says whether it may be null, and prints itself as
SQL writes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, TypeVar

from flinkpy.common.logical_types.sql_quotes import quoted_name, quoted_text

MOST_DIGITS = 38
UNBOUNDED = 2**31 - 1  # the length of STRING and BYTES

T = TypeVar("T", bound="LogicalType")


class TypeFamily(Enum):
    """What types have in common. Functions take families; a type may belong to several."""

    PREDEFINED = "PREDEFINED"
    CONSTRUCTED = "CONSTRUCTED"
    CHARACTER_STRING = "CHARACTER_STRING"
    BINARY_STRING = "BINARY_STRING"
    NUMERIC = "NUMERIC"
    INTEGER_NUMERIC = "INTEGER_NUMERIC"
    EXACT_NUMERIC = "EXACT_NUMERIC"
    APPROXIMATE_NUMERIC = "APPROXIMATE_NUMERIC"
    DATETIME = "DATETIME"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"
    COLLECTION = "COLLECTION"


class TimeAttribute(Enum):
    """What a column of times is to the planner: a mark on a planned type, not another value."""

    ROWTIME = "ROWTIME"
    PROCTIME = "PROCTIME"


@dataclass(frozen=True)
class LogicalType:
    """The type of a column or of an expression. ``str(type)`` is its SQL text.

    >>> print(IntType().not_null())
    INT NOT NULL
    >>> IntType() == IntType(is_nullable=False)
    False
    """

    is_nullable: bool = field(default=True, kw_only=True)

    families: ClassVar[frozenset[TypeFamily]] = frozenset()

    def is_a(self, family: TypeFamily) -> bool:
        """Whether the type belongs to this family."""
        return family in self.families

    def with_nullable(self: T, nullable: bool) -> T:
        """The same type, with values that may be null or not."""
        return self if self.is_nullable == nullable else replace(self, is_nullable=nullable)

    def nullable(self: T) -> T:
        """The same type, with null. (The name is PyFlink's; ``is_nullable`` asks.)"""
        return self.with_nullable(True)

    def not_null(self: T) -> T:
        """The same type, without null."""
        return self.with_nullable(False)

    @property
    def children(self) -> tuple[LogicalType, ...]:
        """The types that it is made of."""
        return ()

    def text(self) -> str:
        """Its SQL text without NOT NULL."""
        raise NotImplementedError(type(self).__name__)

    @property
    def mark(self) -> str:
        """What is shown behind the type of a time attribute."""
        return ""

    def __str__(self) -> str:
        return f"{self.text()}{'' if self.is_nullable else ' NOT NULL'}{self.mark}"


def _family(*families: TypeFamily) -> frozenset[TypeFamily]:
    return frozenset(families)


_PREDEFINED = TypeFamily.PREDEFINED
_INTEGER = _family(
    _PREDEFINED, TypeFamily.NUMERIC, TypeFamily.INTEGER_NUMERIC, TypeFamily.EXACT_NUMERIC
)
_APPROXIMATE = _family(_PREDEFINED, TypeFamily.NUMERIC, TypeFamily.APPROXIMATE_NUMERIC)


@dataclass(frozen=True)
class BooleanType(LogicalType):
    """True or false."""

    families = _family(_PREDEFINED)

    def text(self) -> str:
        return "BOOLEAN"


@dataclass(frozen=True)
class IntegerType(LogicalType):
    """A whole number in a width of its own; what is too large wraps round."""

    families = _INTEGER
    bits: ClassVar[int]
    digits: ClassVar[int]  # how many digits it counts as a DECIMAL
    sql_name: ClassVar[str]

    def text(self) -> str:
        return self.sql_name


@dataclass(frozen=True)
class TinyIntType(IntegerType):
    """-128 to 127."""

    bits, digits, sql_name = 8, 3, "TINYINT"


@dataclass(frozen=True)
class SmallIntType(IntegerType):
    """-32768 to 32767."""

    bits, digits, sql_name = 16, 5, "SMALLINT"


@dataclass(frozen=True)
class IntType(IntegerType):
    """32 bits with sign."""

    bits, digits, sql_name = 32, 10, "INT"


@dataclass(frozen=True)
class BigIntType(IntegerType):
    """64 bits with sign."""

    bits, digits, sql_name = 64, 19, "BIGINT"


@dataclass(frozen=True)
class FloatType(LogicalType):
    """A floating-point number of 32 bits."""

    families = _APPROXIMATE

    def text(self) -> str:
        return "FLOAT"


@dataclass(frozen=True)
class DoubleType(LogicalType):
    """A floating-point number of 64 bits."""

    families = _APPROXIMATE

    def text(self) -> str:
        return "DOUBLE"


@dataclass(frozen=True)
class DecimalType(LogicalType):
    """``precision`` digits (1 to 38), ``scale`` of them behind the point. A result that has more
    is null."""

    precision: int = 10
    scale: int = 0
    families = _family(_PREDEFINED, TypeFamily.NUMERIC, TypeFamily.EXACT_NUMERIC)

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MOST_DIGITS:
            raise ValueError(
                f"a DECIMAL has 1 to {MOST_DIGITS} digits, this one has {self.precision}"
            )
        if not 0 <= self.scale <= self.precision:
            raise ValueError(
                f"of the {self.precision} digits of a DECIMAL, 0 to {self.precision} stand behind "
                f"the point, not {self.scale}"
            )

    def text(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True)
class SizedType(LogicalType):
    """Text or bytes of a declared length, which is at least 1. Only an empty constant has 0."""

    length: int = 1
    sql_name: ClassVar[str]
    unbounded_name: ClassVar[str | None] = None  # of the longest

    def __post_init__(self) -> None:
        if not 0 <= self.length <= UNBOUNDED:
            raise ValueError(
                f"the length of {self.sql_name} is 1 to {UNBOUNDED}, not {self.length}"
            )

    def text(self) -> str:
        is_longest = self.unbounded_name is not None and self.length == UNBOUNDED
        return str(self.unbounded_name) if is_longest else f"{self.sql_name}({self.length})"


@dataclass(frozen=True)
class CharType(SizedType):
    """Text of exactly ``length`` characters."""

    families = _family(_PREDEFINED, TypeFamily.CHARACTER_STRING)
    sql_name = "CHAR"


@dataclass(frozen=True)
class VarCharType(SizedType):
    """Text of at most ``length`` characters; STRING is the longest."""

    families = _family(_PREDEFINED, TypeFamily.CHARACTER_STRING)
    sql_name, unbounded_name = "VARCHAR", "STRING"


@dataclass(frozen=True)
class BinaryType(SizedType):
    """Exactly ``length`` bytes."""

    families = _family(_PREDEFINED, TypeFamily.BINARY_STRING)
    sql_name = "BINARY"


@dataclass(frozen=True)
class VarBinaryType(SizedType):
    """At most ``length`` bytes; BYTES is the longest."""

    families = _family(_PREDEFINED, TypeFamily.BINARY_STRING)
    sql_name, unbounded_name = "VARBINARY", "BYTES"


@dataclass(frozen=True)
class DateType(LogicalType):
    """A day of the calendar."""

    families = _family(_PREDEFINED, TypeFamily.DATETIME)

    def text(self) -> str:
        return "DATE"


@dataclass(frozen=True)
class PreciseType(LogicalType):
    """A time with ``precision`` digits of a second."""

    precision: int = 6
    most: ClassVar[int] = 9
    sql_name: ClassVar[str]

    def __post_init__(self) -> None:
        if not 0 <= self.precision <= self.most:
            raise ValueError(
                f"{self.sql_name} has 0 to {self.most} digits of a second, not {self.precision}"
            )


@dataclass(frozen=True)
class TimeType(PreciseType):
    """The time of a day. Flink keeps milliseconds at most."""

    precision: int = 0
    families = _family(_PREDEFINED, TypeFamily.DATETIME)
    sql_name = "TIME"

    def text(self) -> str:
        return f"TIME({self.precision})"


@dataclass(frozen=True)
class TimestampType(PreciseType):
    """A date and a time of the day, without a zone."""

    time_attribute: TimeAttribute | None = None
    families = _family(_PREDEFINED, TypeFamily.DATETIME, TypeFamily.TIMESTAMP)
    sql_name = "TIMESTAMP"

    def text(self) -> str:
        return f"TIMESTAMP({self.precision})"

    @property
    def mark(self) -> str:
        return _mark(self.time_attribute)


@dataclass(frozen=True)
class LocalZonedTimestampType(PreciseType):
    """A moment, shown in the zone of the session."""

    time_attribute: TimeAttribute | None = None
    families = _family(_PREDEFINED, TypeFamily.DATETIME, TypeFamily.TIMESTAMP)
    sql_name = "TIMESTAMP_LTZ"

    def text(self) -> str:
        return f"TIMESTAMP_LTZ({self.precision})"

    @property
    def mark(self) -> str:
        return _mark(self.time_attribute)


def _mark(attribute: TimeAttribute | None) -> str:
    return "" if attribute is None else f" *{attribute.value}*"


@dataclass(frozen=True)
class YearMonthIntervalType(LogicalType):
    """A number of months. ``unit`` is how it was written: YEAR, MONTH or YEAR TO MONTH."""

    unit: str = "MONTH"
    families = _family(_PREDEFINED, TypeFamily.INTERVAL)

    def text(self) -> str:
        return f"INTERVAL {self.unit}"


@dataclass(frozen=True)
class DayTimeIntervalType(LogicalType):
    """A number of milliseconds. ``unit`` is how it was written: DAY, HOUR, SECOND, DAY TO SECOND,
    ..."""

    unit: str = "SECOND(3)"
    families = _family(_PREDEFINED, TypeFamily.INTERVAL)

    def text(self) -> str:
        return f"INTERVAL {self.unit}"


@dataclass(frozen=True)
class ArrayType(LogicalType):
    """A list of values of one type."""

    element: LogicalType = field(default_factory=lambda: NullType())
    families = _family(TypeFamily.CONSTRUCTED, TypeFamily.COLLECTION)

    @property
    def children(self) -> tuple[LogicalType, ...]:
        return (self.element,)

    def text(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True)
class MultisetType(LogicalType):
    """Values of one type, each with the number of times that it is there."""

    element: LogicalType = field(default_factory=lambda: NullType())
    families = _family(TypeFamily.CONSTRUCTED, TypeFamily.COLLECTION)

    @property
    def children(self) -> tuple[LogicalType, ...]:
        return (self.element,)

    def text(self) -> str:
        return f"MULTISET<{self.element}>"


@dataclass(frozen=True)
class MapType(LogicalType):
    """Keys, each with a value. The order does not matter."""

    key: LogicalType = field(default_factory=lambda: NullType())
    value: LogicalType = field(default_factory=lambda: NullType())
    families = _family(TypeFamily.CONSTRUCTED)

    @property
    def children(self) -> tuple[LogicalType, ...]:
        return (self.key, self.value)

    def text(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True)
class RowField:
    """A named part of a ROW."""

    name: str
    type: LogicalType
    description: str | None = None

    def __str__(self) -> str:
        said = "" if self.description is None else f" {quoted_text(self.description)}"
        return f"{quoted_name(self.name)} {self.type}{said}"


@dataclass(frozen=True)
class RowType(LogicalType):
    """Named parts, in order; also the type of a table's rows."""

    fields: tuple[RowField, ...] = ()
    families = _family(TypeFamily.CONSTRUCTED)

    @staticmethod
    def of(*fields: tuple[str, LogicalType]) -> RowType:
        """The row that is there, with these parts."""
        return RowType(tuple(RowField(name, type) for name, type in fields), is_nullable=False)

    @property
    def children(self) -> tuple[LogicalType, ...]:
        return tuple(each.type for each in self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.fields)

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def text(self) -> str:
        return f"ROW<{', '.join(map(str, self.fields))}>"


@dataclass(frozen=True)
class RawType(LogicalType):
    """Pickled values of a Python class, for accumulators of user-defined functions."""

    class_name: str = ""

    def text(self) -> str:
        return f"RAW('{self.class_name}')"


@dataclass(frozen=True)
class BitmapType(LogicalType):
    """A set of numbers from 0 to 2**32 - 1, in little room."""

    def text(self) -> str:
        return "BITMAP"


@dataclass(frozen=True)
class NullType(LogicalType):
    """The type of a NULL of which nothing else is known."""

    families = _family(_PREDEFINED)

    def text(self) -> str:
        return "NULL"

"""The Table API's names of types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkpy.common.logical_types.logical_type import (
    UNBOUNDED,
    ArrayType,
    BigIntType,
    BinaryType,
    BitmapType,
    BooleanType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_DEFAULT_PRECISIONS = {"YEAR": 2, "DAY": 2}


@dataclass(frozen=True)
class Resolution:
    """A unit of an INTERVAL, and with how many digits it is written."""

    unit: str
    precision: int | None = None

    def __str__(self) -> str:
        is_default = self.precision == _DEFAULT_PRECISIONS.get(self.unit)
        return self.unit if is_default else f"{self.unit}({self.precision})"


class DataTypes:
    """Makes the types of columns, under PyFlink's names.

    >>> print(DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT().not_null())]))
    ROW<`a` INT NOT NULL>
    """

    @staticmethod
    def NULL() -> NullType:
        """The type of NULL."""
        return NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        """Text of exactly this length."""
        return CharType(length, is_nullable=nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        """Text of at most this length."""
        return VarCharType(length, is_nullable=nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        """Text."""
        return VarCharType(UNBOUNDED, is_nullable=nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        """True or false."""
        return BooleanType(is_nullable=nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        """Exactly this many bytes."""
        return BinaryType(length, is_nullable=nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        """At most this many bytes."""
        return VarBinaryType(length, is_nullable=nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        """Bytes."""
        return VarBinaryType(UNBOUNDED, is_nullable=nullable)

    @staticmethod
    def BITMAP(nullable: bool = True) -> BitmapType:
        """A set of numbers from 0 to 2**32 - 1."""
        return BitmapType(is_nullable=nullable)

    @staticmethod
    def DECIMAL(precision: int = 10, scale: int = 0, nullable: bool = True) -> DecimalType:
        """``precision`` digits, ``scale`` of them behind the point."""
        return DecimalType(precision, scale, is_nullable=nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        """8 bits with sign."""
        return TinyIntType(is_nullable=nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        """16 bits with sign."""
        return SmallIntType(is_nullable=nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        """32 bits with sign."""
        return IntType(is_nullable=nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        """64 bits with sign."""
        return BigIntType(is_nullable=nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        """A floating-point number of 32 bits."""
        return FloatType(is_nullable=nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """A floating-point number of 64 bits."""
        return DoubleType(is_nullable=nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        """A day of the calendar."""
        return DateType(is_nullable=nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        """The time of a day."""
        return TimeType(precision, is_nullable=nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        """A date and a time of the day, without a zone."""
        return TimestampType(precision, is_nullable=nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """A moment, shown in the zone of the session."""
        return LocalZonedTimestampType(precision, is_nullable=nullable)

    TIMESTAMP_WITH_LOCAL_TIME_ZONE = TIMESTAMP_LTZ

    @staticmethod
    def ARRAY(element_type: LogicalType, nullable: bool = True) -> ArrayType:
        """A list of values of one type."""
        return ArrayType(_type(element_type, "DataTypes.ARRAY()"), is_nullable=nullable)

    @staticmethod
    def MULTISET(element_type: LogicalType, nullable: bool = True) -> MultisetType:
        """Values of one type, each with the number of times that it is there."""
        return MultisetType(_type(element_type, "DataTypes.MULTISET()"), is_nullable=nullable)

    @staticmethod
    def MAP(key_type: LogicalType, value_type: LogicalType, nullable: bool = True) -> MapType:
        """Keys, each with a value."""
        key, value = _type(key_type, "DataTypes.MAP()"), _type(value_type, "DataTypes.MAP()")
        return MapType(key, value, is_nullable=nullable)

    @staticmethod
    def FIELD(name: str, data_type: LogicalType, description: str | None = None) -> RowField:
        """A named part of a ROW."""
        return RowField(name, _type(data_type, "DataTypes.FIELD()"), description)

    @staticmethod
    def ROW(row_fields: Sequence[RowField | LogicalType] = (), nullable: bool = True) -> RowType:
        """Named parts, in order. Types without a name become f0, f1, ..."""
        fields = tuple(
            each if isinstance(each, RowField) else DataTypes.FIELD(f"f{at}", each)
            for at, each in enumerate(row_fields)
        )
        return RowType(fields, is_nullable=nullable)

    # -- units of intervals ------------------------------------------------------------------------

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        """Years, for INTERVAL."""
        return Resolution("YEAR", precision)

    @staticmethod
    def MONTH() -> Resolution:
        """Months, for INTERVAL."""
        return Resolution("MONTH")

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:
        """Days, for INTERVAL."""
        return Resolution("DAY", precision)

    @staticmethod
    def HOUR() -> Resolution:
        """Hours, for INTERVAL."""
        return Resolution("HOUR")

    @staticmethod
    def MINUTE() -> Resolution:
        """Minutes, for INTERVAL."""
        return Resolution("MINUTE")

    @staticmethod
    def SECOND(precision: int = 3) -> Resolution:
        """Seconds, for INTERVAL. The values of intervals are milliseconds, so three digits are all
        that there is."""
        return Resolution("SECOND", precision)

    @staticmethod
    def INTERVAL(
        upper_resolution: Resolution, lower_resolution: Resolution | None = None
    ) -> YearMonthIntervalType | DayTimeIntervalType:
        """A number of months, or of milliseconds. Raises ValueError for units that make no
        interval.

        >>> print(DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND()))
        INTERVAL DAY TO SECOND(3)
        """
        upper, lower = upper_resolution, lower_resolution or upper_resolution
        in_months = [each.unit in ("YEAR", "MONTH") for each in (upper, lower)]
        if in_months[0] != in_months[1] or _UNITS.index(upper.unit) > _UNITS.index(lower.unit):
            raise ValueError(
                f"an INTERVAL goes from YEAR to MONTH, or from a longer to a shorter unit of DAY, "
                f"HOUR, MINUTE, SECOND; this one from {upper.unit} to {lower.unit}"
            )
        unit = str(upper) if upper.unit == lower.unit else f"{upper} TO {lower}"
        return YearMonthIntervalType(unit) if in_months[0] else DayTimeIntervalType(unit)


def _type(value: object, where: str) -> LogicalType:
    if not isinstance(value, LogicalType):
        raise TypeError(f"{where} takes a type such as DataTypes.BIGINT(), this is {value!r:.80}")
    return value

"""The types of streams (``Types``) as types of tables, and back. Only this file knows both."""

from __future__ import annotations

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    RawType,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)
from flinkpy.common.typeinfo import (
    BasicTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from flinkpy.core.errors import ProgramError

# Streams know no precision: times have microseconds, decimals 38 digits, 18 behind the point.
_TYPES_OF_NAMES = {
    "STRING": DataTypes.STRING(),
    "CHAR": DataTypes.STRING(),
    "BOOLEAN": DataTypes.BOOLEAN(),
    "BYTE": DataTypes.TINYINT(),
    "SHORT": DataTypes.SMALLINT(),
    "INT": DataTypes.INT(),
    "LONG": DataTypes.BIGINT(),
    "FLOAT": DataTypes.FLOAT(),
    "DOUBLE": DataTypes.DOUBLE(),
    "BIG_DEC": DataTypes.DECIMAL(38, 18),
    "BIG_INT": DataTypes.DECIMAL(38, 0),
    "SQL_DATE": DataTypes.DATE(),
    "SQL_TIME": DataTypes.TIME(6),
    "SQL_TIMESTAMP": DataTypes.TIMESTAMP(6),
    "INSTANT": DataTypes.TIMESTAMP_LTZ(6),
}

_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
_INFORMATION: dict[type[LogicalType], TypeInformation] = {
    CharType: Types.STRING(),
    VarCharType: Types.STRING(),
    BooleanType: Types.BOOLEAN(),
    BinaryType: _BYTES,
    VarBinaryType: _BYTES,
    TinyIntType: Types.BYTE(),
    SmallIntType: Types.SHORT(),
    IntType: Types.INT(),
    BigIntType: Types.LONG(),
    FloatType: Types.FLOAT(),
    DoubleType: Types.DOUBLE(),
    DateType: Types.SQL_DATE(),
    TimeType: Types.SQL_TIME(),
    TimestampType: Types.SQL_TIMESTAMP(),
    LocalZonedTimestampType: Types.INSTANT(),
    RawType: Types.PICKLED_BYTE_ARRAY(),
}


def logical_type_of(type_info: TypeInformation) -> LogicalType:
    """The type of a table's column that has the values of a stream.

    >>> print(logical_type_of(Types.ROW_NAMED(["a"], [Types.LONG()])))
    ROW<`a` BIGINT>
    """
    if isinstance(type_info, BasicTypeInfo):
        return _TYPES_OF_NAMES[type_info.name]
    if type_info == _BYTES:
        return DataTypes.BYTES()
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        return DataTypes.ARRAY(logical_type_of(type_info.element_type))
    if isinstance(type_info, MapTypeInfo):
        key, value = type_info.key_type, type_info.value_type
        return DataTypes.MAP(logical_type_of(key), logical_type_of(value))
    if isinstance(type_info, RowTypeInfo):
        names, types = type_info.field_names, type_info.field_types
        return DataTypes.ROW(
            [DataTypes.FIELD(name, logical_type_of(each)) for name, each in zip(names, types)]
        )
    if isinstance(type_info, TupleTypeInfo):
        return DataTypes.ROW([logical_type_of(each) for each in type_info.field_types])
    if isinstance(type_info, PickledBytesTypeInfo):
        return RawType("object")
    raise ProgramError(f"a table has no column of {type_info!r}")


def type_information_of(type: LogicalType) -> TypeInformation:
    """The type that the values of a column have in a stream. Lengths, precision, NOT NULL and marks
    do not count there: a stream's times have microseconds, and its decimals 38 digits. Raises
    ProgramError for a type that streams do not have.

    >>> type_information_of(DataTypes.DECIMAL(10, 2))
    Types.BIG_DEC()
    """
    if isinstance(type, DecimalType):
        return Types.BIG_DEC() if type.scale else Types.BIG_INT()
    if isinstance(type, ArrayType):
        return Types.LIST(type_information_of(type.element))
    if isinstance(type, MapType):
        return Types.MAP(type_information_of(type.key), type_information_of(type.value))
    if isinstance(type, RowType):
        return Types.ROW_NAMED(
            list(type.names), [type_information_of(each.type) for each in type.fields]
        )
    known = _INFORMATION.get(type.__class__)
    if known is None:
        raise ProgramError(f"{type} is a type of tables, and streams have none for it")
    return known


def stream_type(type: LogicalType | TypeInformation, where: str) -> TypeInformation:
    """The type that a cast or a literal of a stream asks for. Raises ProgramError where the stream
    would change what the type says: DECIMAL(10, 2) has two digits behind the point."""
    if isinstance(type, TypeInformation):
        return type
    if isinstance(type, DecimalType) and (type.precision, type.scale) not in {(38, 18), (38, 0)}:
        raise ProgramError(
            f"{where}: the decimals of a stream are DECIMAL(38, 18) or DECIMAL(38, 0), not "
            f"{type.text()}; round() sets the digits behind the point"
        )
    return type_information_of(type)

"""Maps the declared types (``Types``) to Arrow types and back. Only this file knows both."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flinkpy.common.typeinfo import (
    BasicTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from flinkpy.core.errors import ProgramError

_ARROW: dict[str, Any] = {
    "STRING": pa.string(),
    "CHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "BYTE": pa.int8(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BIG_DEC": pa.decimal128(38, 18),
    "BIG_INT": pa.decimal128(38, 0),
    "SQL_DATE": pa.date32(),
    "SQL_TIME": pa.time64("us"),
    "SQL_TIMESTAMP": pa.timestamp("us"),
    "INSTANT": pa.timestamp("us", "UTC"),
}


def arrow_type(type_info: TypeInformation) -> pa.DataType:
    """Arrow's type for a declared type. Raises ProgramError if there is none (pickled values).

    >>> arrow_type(Types.LIST(Types.INT()))
    ListType(list<item: int32>)
    """
    if isinstance(type_info, BasicTypeInfo):
        return _ARROW[type_info.name]
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        return (
            pa.binary()
            if type_info == Types.PRIMITIVE_ARRAY(Types.BYTE())
            else pa.list_(arrow_type(type_info.element_type))
        )
    if isinstance(type_info, MapTypeInfo):
        return pa.map_(arrow_type(type_info.key_type), arrow_type(type_info.value_type))
    if isinstance(type_info, RowTypeInfo):
        return pa.struct(list(arrow_schema(type_info)))
    if isinstance(type_info, TupleTypeInfo):
        return pa.struct(
            [pa.field(f"f{at}", arrow_type(each)) for at, each in enumerate(type_info.field_types)]
        )
    raise ProgramError(
        f"{type_info!r} has no column type: declare what the values are, such as Types.STRING()"
    )


def arrow_schema(type_info: RowTypeInfo) -> pa.Schema:
    """The schema of the columns that rows of this type become."""
    return pa.schema(
        [
            pa.field(name, arrow_type(each))
            for name, each in zip(type_info.field_names, type_info.field_types)
        ]
    )


def type_of_arrow(kind: pa.DataType) -> TypeInformation:
    """The declared type for an Arrow type; that of pickled values if there is none."""
    for name, known in _ARROW.items():
        if known == kind and name != "CHAR":
            found: TypeInformation = getattr(Types, name)()
            return found
    if pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return Types.STRING() if pa.types.is_large_string(kind) else type_of_arrow(kind.value_type)
    if pa.types.is_integer(kind):
        return Types.LONG()
    if pa.types.is_timestamp(kind):
        return Types.SQL_TIMESTAMP() if kind.tz is None else Types.INSTANT()
    if pa.types.is_decimal(kind):
        return Types.BIG_DEC()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return Types.LIST(type_of_arrow(kind.value_type))
    if pa.types.is_struct(kind):
        return row_type_of(kind)
    return Types.PICKLED_BYTE_ARRAY()


def row_type_of(fields: Any) -> TypeInformation:
    """The row type of a schema or a struct.

    >>> row_type_of(pa.schema([("a", pa.int64())]))
    Types.ROW_NAMED(['a'], [Types.LONG()])
    """
    listed = [
        fields.field(at)
        for at in range(len(fields) if isinstance(fields, pa.Schema) else fields.num_fields)
    ]
    return Types.ROW_NAMED(
        [field.name for field in listed], [type_of_arrow(field.type) for field in listed]
    )

"""Casts the blocks of one stream to its schema.

Arrow refuses to cast a struct that is null if one of its fields must not be null; such structs come
from every left join. So casts use types in which everything may be null (``nullable``), and
``relabelled`` then restores what the schema says about nulls."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def conformed(table: pa.Table, schema: pa.Schema) -> Any:
    """The table with exactly the schema's columns, in their order, cast where types differ. A
    missing column is null, because some blocks of a Ray Dataset have more columns than others.
    Raises ArrowInvalid for values that do not fit."""
    if table.schema.equals(schema):
        return table
    if not schema.names:
        return table.select([])  # a cast would lose the number of rows
    columns = [_column(table, field) for field in schema]
    if all(column.type.equals(field.type) for column, field in zip(columns, schema)):
        return pa.Table.from_arrays(columns, schema=schema)
    return relabelled(pa.Table.from_arrays(columns, names=schema.names), schema)


def _column(table: pa.Table, field: pa.Field) -> Any:
    at = table.schema.get_field_index(field.name)
    if at < 0:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    column = table.column(at)
    return column if column.type.equals(field.type) else column.cast(nullable(field.type))


def relabelled(table: pa.Table, schema: pa.Schema) -> Any:
    """The table under a schema that differs from its own only in what may be null."""
    batches = [pa.ipc.read_record_batch(batch.serialize(), schema) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, schema)


def nullable(kind: pa.DataType) -> Any:
    """The type, with everything inside it nullable. (Keys of maps never are.)

    >>> nullable(pa.list_(pa.field("item", pa.int32(), False)))
    ListType(list<item: int32>)
    """
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([nullable_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(nullable(kind.key_type), nullable_field(kind.item_field), kind.keys_sorted)
    for is_kind, make in ((types.is_list, pa.list_), (types.is_large_list, pa.large_list)):
        if is_kind(kind):
            return make(nullable_field(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(nullable_field(kind.value_field), kind.list_size)
    return kind


def nullable_field(field: pa.Field) -> Any:
    """The field, nullable at every depth."""
    return pa.field(field.name, nullable(field.type), True, field.metadata)

"""Blocks of one stream brought to its schema.

Arrow refuses to cast a struct that is null where it has a field that may not be, which is every left join's; so casts go by types that may be null
everywhere (``nullable``), and what the schema says of nulls is put back afterwards (``relabelled``).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def conformed(table: Any, schema: Any) -> Any:
    """The table with exactly these columns: in their order, cast where they differ. One it lacks is null: some blocks of a Ray Dataset have more
    columns than others. ArrowInvalid for values that do not fit."""
    if table.schema.equals(schema):
        return table
    if not schema.names:
        return table.select([])  # a cast would forget how many rows there are
    columns = [_column(table, field) for field in schema]
    if all(column.type.equals(field.type) for column, field in zip(columns, schema)):
        return pa.Table.from_arrays(columns, schema=schema)
    return relabelled(pa.Table.from_arrays(columns, names=schema.names), schema)


def _column(table: Any, field: Any) -> Any:
    at = table.schema.get_field_index(field.name)
    if at < 0:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    column = table.column(at)
    return column if column.type.equals(field.type) else column.cast(nullable(field.type))


def relabelled(table: Any, schema: Any) -> Any:
    """The table under a schema that differs from its own in what may be null only."""
    batches = [pa.ipc.read_record_batch(batch.serialize(), schema) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, schema)


def nullable(kind: Any) -> Any:
    """The type with everything inside it that may be null. (Keys of maps never are.)

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


def nullable_field(field: Any) -> Any:
    """The field as one that may be null, at every depth."""
    return pa.field(field.name, nullable(field.type), True, field.metadata)

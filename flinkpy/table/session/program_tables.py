"""Tables of what a program holds: rows, frames and streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.common.logical_types.logical_type import LogicalType, RowType
from flinkpy.core.errors import ProgramError
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.table.factories.batch_lengths import batch_rows
from flinkpy.table.factories.held_tables import hold

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream

Schema = LogicalType | Sequence[str] | None


def elements_table(elements: Iterable[Any], schema: Schema) -> CatalogTable:
    """Rows as a table. Raises ProgramError if their lengths or values do not fit."""
    import pyarrow as pa

    from flinkpy.columns.sql.arrays_of_values import array_of_values

    rows = [tuple(row) if _is_row(row) else (row,) for row in elements]
    if isinstance(schema, RowType):
        names: Sequence[str] = schema.names
    elif isinstance(schema, LogicalType):
        schema = RowType.of(("f0", schema))
        names = schema.names
    else:
        width = len(rows[0]) if rows else 0
        names = list(schema) if schema is not None else [f"_{at + 1}" for at in range(width)]
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise ProgramError(
                f"from_elements(): row {number} has {len(row)} values, and there are "
                f"{len(names)} columns"
            )
    columns = [[row[at] for row in rows] for at in range(len(names))]
    try:
        if isinstance(schema, RowType):
            arrays = [array_of_values(values, field.type) for values, field in zip(columns, schema)]
        else:
            arrays = [pa.array(values) for values in columns]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ProgramError(f"from_elements(): {error}") from error
    table = pa.Table.from_arrays(arrays, names=list(names))
    return arrow_rows(table, schema if isinstance(schema, RowType) else None)


def _is_row(value: object) -> bool:
    from flinkpy.common.types import Row

    return isinstance(value, (tuple, list, Row))


def arrow_rows(data: object, schema: Schema = None) -> CatalogTable:
    """What gives Arrow columns as a table, in SQL's types."""
    from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of, row_type_of_schema
    from flinkpy.connectors.memory.arrow_tables import table_of

    table = table_of(data)
    if schema is not None and not isinstance(schema, LogicalType):
        table = table.rename_columns(list(schema))
    row_type = schema if isinstance(schema, RowType) else row_type_of_schema(table.schema)
    table = table.rename_columns(list(row_type.names)).cast(arrow_schema_of(row_type))
    return hold(
        row_type,
        lambda env: env.from_arrow(table, batch_rows(env)),
        is_bounded=True,
        rows=table.num_rows,
    )


def stream_table(stream: DataStream) -> CatalogTable:
    """A stream as a table. Raises ProgramError for one whose columns are not known."""
    from flinkpy.columns.sql.arrow_of_logical import row_type_of_schema
    from flinkpy.datastream import DataStream
    from flinkpy.datastream.streams.recorded_program import endless_source

    if not isinstance(stream, DataStream):
        raise ProgramError(f"a table is made of a Table or a DataStream, this is {stream!r:.80}")
    columns = stream.recorded.as_columns("from_data_stream()")
    if columns.schema is None:
        raise ProgramError(
            "the columns of this stream are not known before it runs: declare them, for example "
            "with map_batches(..., schema=...)"
        )
    known = DataStream(stream.get_execution_environment(), columns)
    return hold(
        row_type_of_schema(columns.schema),
        lambda env: known,
        is_bounded=endless_source(columns.transformation) is None,
    )

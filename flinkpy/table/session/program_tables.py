"""Tables of what a program holds: rows, frames and streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flinkpy.columns import Expression
from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flinkpy.common.logical_types.allowed_casts import explicit_cast_allowed
from flinkpy.common.logical_types.logical_type import LogicalType, RowType
from flinkpy.common.types import RowKind
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.catalog.declared_tables import checked_table
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.sql_errors import did_you_mean
from flinkpy.sql.syntax.statements import ColumnDefinition, ComputedColumn, TableDefinition
from flinkpy.table.factories.batch_lengths import batch_rows
from flinkpy.table.factories.held_tables import hold
from flinkpy.table.schema import Schema

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream

RowSchema = LogicalType | Sequence[str] | None


def elements_table(elements: Iterable[Any], schema: RowSchema) -> CatalogTable:
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


def arrow_rows(data: object, schema: RowSchema = None) -> CatalogTable:
    """What gives Arrow columns as a table, in SQL's types."""
    from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of, row_type_of_schema
    from flinkpy.columns.values.conversion import without_views
    from flinkpy.connectors.memory.arrow_tables import table_of

    table = without_views(table_of(data))
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


def stream_table(
    stream: DataStream, fields: Sequence[object] = (), changes: ChangelogMode = INSERT_ONLY
) -> CatalogTable:
    """A stream as a table whose rows have these kinds. ``fields`` is a Schema, or expressions that
    choose and name columns. Raises ProgramError for a stream whose columns are not known, and for
    what does not fit."""
    from flinkpy.columns.sql.arrow_of_logical import row_type_of_schema
    from flinkpy.datastream import DataStream
    from flinkpy.datastream.streams.recorded_program import endless_source

    if not isinstance(stream, DataStream):
        raise refuse(f"a table is made of a Table or a DataStream, this is {stream!r:.80}")
    schema = fields[0] if len(fields) == 1 and isinstance(fields[0], Schema) else None
    if fields and schema is None:
        stream = stream.select(*_chosen(fields))
    columns = stream.recorded.as_columns("from_data_stream()", in_place=True)
    if columns.schema is None:
        raise refuse(
            "the columns of this stream are not known before it runs: declare them, for example "
            "with map_batches(..., schema=...)"
        )
    known = DataStream(stream.get_execution_environment(), columns)
    row_type = row_type_of_schema(columns.schema)
    declared = TableDefinition() if schema is None else schema.definition
    physical = [each for each in declared.columns if isinstance(each, ColumnDefinition)]
    if physical:
        row_type = RowType.of(*((each.name, each.type) for each in physical))
        known = _with_types(known, row_type)
    made = hold(
        row_type,
        lambda env: known,
        is_bounded=endless_source(columns.transformation) is None,
        has_event_time=True,
        changes=changes,
    )
    own = made.columns if not physical else ()
    return checked_table(
        replace(
            made,
            columns=(*own, *declared.columns),
            watermarks=declared.watermarks,
            primary_key=declared.primary_key,
        )
    )


def changelog_table(
    stream: DataStream, schema: Schema | None, changes: ChangelogMode | None
) -> CatalogTable:
    """A stream of changes as a table. Raises ProgramError for a mode whose rows replace others
    without a key that says which."""
    _check_mode("from_changelog_stream()", schema, changes)
    mode = ALL_CHANGES if changes is None else changes
    if mode != ALL_CHANGES:
        stream = _of_kinds(stream, mode)
    return stream_table(stream, () if schema is None else (schema,), mode)


def changelog_definition(schema: Schema | None, mode: ChangelogMode | None) -> TableDefinition:
    """What the rows of a table are written into, to become a stream."""
    _check_mode("to_changelog_stream()", schema, mode)
    definition = TableDefinition() if schema is None else schema.definition
    if definition.watermarks or any(isinstance(e, ComputedColumn) for e in definition.columns):
        raise refuse(
            "to_changelog_stream(): the target schema has columns, the metadata column 'rowtime' "
            "and a primary key; compute columns and declare watermarks in the table"
        )
    return definition


def _check_mode(call: str, schema: Schema | None, mode: ChangelogMode | None) -> None:
    for given, kind in ((schema, Schema), (mode, ChangelogMode)):
        if given is not None and not isinstance(given, kind):
            raise refuse(f"{call} takes a Schema and a ChangelogMode, this is {given!r:.80}")
    if mode is None or not replaces_by_key(mode):
        return
    if schema is None or schema.definition.primary_key is None:
        raise refuse(
            f"{call}: in the mode {mode} a row replaces the one of its key, so the schema needs a "
            "primary_key(...)"
        )


def replaces_by_key(mode: ChangelogMode) -> bool:
    """Whether rows come that replace others, which are not sent again."""
    return mode.contains(RowKind.UPDATE_AFTER) and not mode.contains(RowKind.UPDATE_BEFORE)


def _of_kinds(stream: DataStream, mode: ChangelogMode) -> DataStream:
    """The stream; the job fails if a row of another kind comes."""
    from flinkpy.datastream import DataStream
    from flinkpy.datastream.streams.recorded import copy_place
    from flinkpy.relational.row_by_row.checked_kinds import CheckedKinds

    columns = stream.recorded.as_columns("from_changelog_stream()", in_place=True)
    made = columns.apply_columns("Changelog", CheckedKinds(mode, columns.schema))
    copy_place(columns.transformation, made.transformation)
    return DataStream(stream.get_execution_environment(), made)


def _chosen(fields: Sequence[object]) -> list[Expression]:
    for each in fields:
        if not isinstance(each, Expression):
            raise refuse(
                "from_data_stream() takes a Schema, or expressions such as col('a').alias('b'); "
                f"this is {each!r:.80}"
            )
    return list(fields)  # type: ignore[arg-type]


def _with_types(stream: DataStream, wanted: RowType) -> DataStream:
    """The columns of these names in these types."""
    from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of
    from flinkpy.datastream import DataStream
    from flinkpy.datastream.streams.recorded import copy_place
    from flinkpy.relational.row_by_row.calc_operator import CalcOperator
    from flinkpy.sql.rex.coercion import cast
    from flinkpy.sql.rex.rex_nodes import RexInput
    from flinkpy.sql.rex.rex_programs import program_of

    columns = stream.recorded.as_columns("from_data_stream()")
    from flinkpy.columns.sql.arrow_of_logical import row_type_of_schema

    names, given = list(columns.schema.names), row_type_of_schema(columns.schema)
    projections = []
    for field in wanted:
        if field.name not in names:
            near = did_you_mean(field.name, names)
            raise refuse(f"the stream has no column {field.name!r}, which its Schema names{near}")
        at = names.index(field.name)
        have = given.fields[at].type
        if not explicit_cast_allowed(have, field.type):
            raise refuse(f"the column {field.name!r} is {have}, and cannot become {field.type}")
        projections.append(cast(RexInput(have, index=at), field.type))
    program = program_of(projections, None, built_in_functions(), names=names)
    made = columns.apply_columns("Cast", CalcOperator(program, arrow_schema_of(wanted)))
    copy_place(columns.transformation, made.transformation)
    return DataStream(stream.get_execution_environment(), made)

"""INSERT: columns of the query become columns of the table, by position, in the table's types."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from flinkpy.common.logical_types.logical_type import RowField
from flinkpy.sql.binding.proposals import proposal
from flinkpy.sql.binding.query_binder import QueryBinder
from flinkpy.sql.catalog.catalog_port import CatalogTable, ObjectPath
from flinkpy.sql.logical.logical_nodes import LogicalSink, input_of, project, row_of
from flinkpy.sql.rex.coercion import cast, stored
from flinkpy.sql.rex.rex_nodes import Rex, RexLiteral
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import Identifier
from flinkpy.sql.syntax.statements import ColumnDefinition, ComputedColumn, Insert, MetadataColumn


def bind_insert(queries: QueryBinder, insert: Insert) -> LogicalSink:
    """The query of an INSERT, and the table that it goes into."""
    path, table = _table(queries, insert)
    try:
        abilities = queries.context.connectors.sink_abilities(path, table)
    except ValidationError as error:
        raise ValidationError(error.problem, span=insert.table.span) from None
    if insert.overwrite and not abilities.takes_overwrite:
        raise ValidationError(
            f"INSERT OVERWRITE requires that the sink of {path} supports overwriting; use INSERT "
            "INTO",
            span=insert.table.span,
        )
    columns = [each for each in table.columns if _is_stored(each)]
    for column in columns:
        if isinstance(column, MetadataColumn) and _key(column) not in abilities.metadata:
            raise ValidationError(
                f"the column '{column.name}' of {path} is METADATA that its connector does not "
                f"write{proposal(_key(column), abilities.metadata)}; declare it VIRTUAL",
                span=insert.table.span,
            )
    fixed = dict(insert.partition)
    for name in fixed:
        if name not in table.partition_keys:
            raise ValidationError(
                f"'{name}' is no partition key of {path}{proposal(name, table.partition_keys)}"
            )
    targets = _targets(insert, columns, fixed, path)
    plan = queries.bind_query(insert.query, None)
    if plan.width != len(targets):
        raise ValidationError(
            f"Column types of query result and sink for {path} do not match. Cause: Different "
            f"number of columns: the query gives {plan.width} "
            f"({', '.join(plan.schema.names)}), the table takes {len(targets)} "
            f"({', '.join(targets)})",
            span=insert.query.span,
        )
    given: dict[str, Rex] = {name: input_of(plan, place) for place, name in enumerate(targets)}
    for name, literal in insert.partition:
        given[name] = RexLiteral(literal.type, value=literal.value, span=literal.span)
    values = [_value(each, given, insert, path) for each in columns]
    fields, metadata = _stored_columns(columns)
    return LogicalSink(
        row_of(fields),
        project(plan, values, [each.name for each in fields]),
        path,
        table,
        abilities.changes,
        insert.overwrite,
        tuple((name, literal.value) for name, literal in insert.partition),
        metadata,
    )


def _table(queries: QueryBinder, insert: Insert) -> tuple[ObjectPath, CatalogTable]:
    names = queries.context.names
    found = names.find_table(insert.table.parts)
    if found is None:
        near = proposal(insert.table.parts[-1], names.table_names())
        raise ValidationError(
            f"Cannot find table '{insert.table.text}'{near}", span=insert.table.span
        )
    path, table = found
    if not isinstance(table, CatalogTable):
        raise ValidationError(
            f"{path} is a view: it has no rows of its own, so nothing can be inserted",
            span=insert.table.span,
        )
    if insert.options:
        table = replace(table, options={**table.options, **dict(insert.options)})
    return path, table


def _is_stored(column: object) -> bool:
    if isinstance(column, MetadataColumn):
        return not column.is_virtual
    return not isinstance(column, ComputedColumn)


def _targets(
    insert: Insert, columns: Sequence[object], fixed: Collection[str], path: ObjectPath
) -> list[str]:
    names = [each.name for each in columns if isinstance(each, (ColumnDefinition, MetadataColumn))]
    if not insert.columns:
        return [each for each in names if each not in fixed]
    targets: list[str] = []
    for each in insert.columns:
        name = each.parts[-1]
        _check_target(name, each, names, targets, path)
        targets.append(name)
    return targets


def _check_target(
    name: str, at: Identifier, names: Sequence[str], targets: Sequence[str], path: ObjectPath
) -> None:
    if name not in names:
        raise ValidationError(
            f"Unknown target column '{name}' of {path}{proposal(name, names)}", span=at.span
        )
    if name in targets:
        raise ValidationError(f"Target column '{name}' is assigned more than once", span=at.span)


def _value(column: object, given: dict[str, Rex], insert: Insert, path: ObjectPath) -> Rex:
    assert isinstance(column, (ColumnDefinition, MetadataColumn))
    if column.name in given:
        return stored(given[column.name], column.type, column.name, insert.query.span)
    if not column.type.is_nullable:
        raise ValidationError(
            f"Column '{column.name}' of {path} has no default value and does not allow NULLs; "
            "give it a value",
            span=insert.table.span,
        )
    return cast(RexLiteral(column.type, value=None), column.type)


def _stored_columns(
    columns: Sequence[object],
) -> tuple[list[RowField], tuple[tuple[str, str], ...]]:
    """The fields of a table, and which of them are metadata under which key."""
    fields = []
    metadata = []
    for column in columns:
        assert isinstance(column, (ColumnDefinition, MetadataColumn))
        fields.append(RowField(column.name, column.type))
        if isinstance(column, MetadataColumn):
            metadata.append((column.name, _key(column)))
    return fields, tuple(metadata)


def _key(column: MetadataColumn) -> str:
    return column.key or column.name

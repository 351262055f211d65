"""A table as a relation: what its connector stores, then computed columns, then the watermark."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.common.logical_types.logical_type import (
    LocalZonedTimestampType,
    LogicalType,
    RowField,
    RowType,
    TimeAttribute,
    TimestampType,
)
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.binding.expression_binder import ExpressionBinder, Subqueries
from flinkpy.sql.binding.proposals import proposal
from flinkpy.sql.binding.scope import Scope
from flinkpy.sql.catalog.catalog_port import CatalogTable, ObjectPath, SourceAbilities
from flinkpy.sql.logical.logical_nodes import (
    LogicalNode,
    LogicalScan,
    LogicalWatermark,
    input_of,
    project,
    row_of,
)
from flinkpy.sql.rex.coercion import bare, cast
from flinkpy.sql.rex.relational_terms import SOURCE_WATERMARK
from flinkpy.sql.rex.rex_nodes import Rex
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import FunctionCall
from flinkpy.sql.syntax.statements import ComputedColumn, MetadataColumn, WatermarkDefinition


def bind_table(
    context: BindingContext, path: ObjectPath, table: CatalogTable, subqueries: Subqueries
) -> LogicalNode:
    """The rows of a table, with all of its columns in the order of the declaration."""
    abilities = context.connectors.source_abilities(path, table)
    if any(is_of_source(each) for each in table.watermarks) and not abilities.gives_watermarks:
        raise ValidationError(
            f"SOURCE_WATERMARK() is for tables whose source has watermarks of its own, and {path} "
            "has none: write an expression, such as ts - INTERVAL '5' SECOND"
        )
    return _bound(context, path, table, abilities, subqueries)


def is_of_source(watermark: WatermarkDefinition) -> bool:
    """Whether the watermarks of the source are taken."""
    strategy = watermark.strategy
    return isinstance(strategy, FunctionCall) and strategy.name.upper() == SOURCE_WATERMARK


def declared_columns(
    context: BindingContext, path: ObjectPath, table: CatalogTable, subqueries: Subqueries
) -> RowType:
    """All columns of a table that may be read, written or neither: its connector is asked only
    which metadata there are."""
    has_metadata = any(isinstance(column, MetadataColumn) for column in table.columns)
    abilities = (
        context.connectors.source_abilities(path, table) if has_metadata else SourceAbilities()
    )
    return _bound(context, path, table, abilities, subqueries).schema


def _bound(
    context: BindingContext,
    path: ObjectPath,
    table: CatalogTable,
    abilities: SourceAbilities,
    subqueries: Subqueries,
) -> LogicalNode:
    scan = _scan(path, table, abilities)
    if all(_is_plain(column, abilities) for column in table.columns):
        plan: LogicalNode = scan
    else:
        plan = _with_computed(context, scan, table, subqueries)
    for watermark in table.watermarks:
        plan = _with_watermark(context, plan, watermark, subqueries)
    return plan


def _scan(path: ObjectPath, table: CatalogTable, abilities: SourceAbilities) -> LogicalScan:
    fields = []
    metadata = []
    for column in table.columns:
        if isinstance(column, ComputedColumn):
            continue
        type = column.type
        if isinstance(column, MetadataColumn):
            key = column.key or column.name
            type = _metadata_type(column, key, abilities, path)
            metadata.append((column.name, key))
        fields.append(RowField(column.name, type))
    key_columns = table.primary_key.columns if table.primary_key is not None else ()
    fields = [
        replace(each, type=each.type.with_nullable(False)) if each.name in key_columns else each
        for each in fields
    ]
    return LogicalScan(row_of(fields), path, table, abilities, tuple(metadata))


def _metadata_type(
    column: MetadataColumn, key: str, abilities: SourceAbilities, path: ObjectPath
) -> LogicalType:
    if key not in abilities.metadata:
        raise ValidationError(
            f"Invalid metadata key '{key}' in column '{column.name}' of table {path}"
            f"{proposal(key, abilities.metadata) or '; its connector has no metadata'}"
        )
    return abilities.metadata[key]


def _is_plain(column: object, abilities: SourceAbilities) -> bool:
    if isinstance(column, MetadataColumn):
        return bare(abilities.metadata[column.key or column.name]) == bare(column.type)
    return not isinstance(column, ComputedColumn)


def _with_computed(
    context: BindingContext, scan: LogicalScan, table: CatalogTable, subqueries: Subqueries
) -> LogicalNode:
    binder = ExpressionBinder(context, Scope.of(scan, (scan.path.name,)), subqueries)
    columns: list[Rex] = []
    for column in table.columns:
        if isinstance(column, ComputedColumn):
            columns.append(_without_place(binder, column))
            continue
        value: Rex = input_of(scan, scan.schema.names.index(column.name))
        columns.append(cast(value, column.type) if isinstance(column, MetadataColumn) else value)
    return project(scan, columns, [each.name for each in table.columns])


def _without_place(binder: ExpressionBinder, column: ComputedColumn) -> Rex:
    try:
        return binder.bind(column.value)
    except ValidationError as error:  # its place is in the text of CREATE TABLE, not of the query
        raise ValidationError(
            f"Invalid expression for computed column '{column.name}': {error.problem}"
        ) from None


def _with_watermark(
    context: BindingContext,
    plan: LogicalNode,
    watermark: WatermarkDefinition,
    subqueries: Subqueries,
) -> LogicalNode:
    names = plan.schema.names
    name = watermark.column.parts[0]
    if len(watermark.column.parts) > 1 or name not in names:
        raise ValidationError(
            f"Invalid column '{watermark.column.text}' of a watermark{proposal(name, names)}"
        )
    rowtime = names.index(name)
    type = plan.schema.fields[rowtime].type
    binder = ExpressionBinder(context, Scope.of(plan, ()), subqueries)
    strategy = binder.bind(watermark.strategy)
    if not isinstance(type, (TimestampType, LocalZonedTimestampType)) or type.precision > 3:
        raise ValidationError(
            f"Invalid data type of time field for watermark definition: '{name}' is {bare(type)}, "
            "and must be TIMESTAMP(p) or TIMESTAMP_LTZ(p) with p from 0 to 3; write "
            f"{name} AS CAST(... AS TIMESTAMP(3)) as a computed column"
        )
    marked = replace(type, time_attribute=TimeAttribute.ROWTIME)
    return LogicalWatermark(
        _with_type(plan.schema, rowtime, marked), plan, rowtime, cast(strategy, type)
    )


def _with_type(row: RowType, index: int, type: LogicalType) -> RowType:
    fields = list(row.fields)
    fields[index] = replace(fields[index], type=type)
    return replace(row, fields=tuple(fields))

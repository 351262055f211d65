"""ALTER TABLE: a table and a statement give another table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.catalog.declared_tables import checked_table
from flinkpy.sql.sql_errors import ValidationError, proposed
from flinkpy.sql.syntax.query_tree import Identifier, SqlExpression
from flinkpy.sql.syntax.statements import (
    AlterDrop,
    AlterOptions,
    AlterRenameColumn,
    AlterSchema,
    AnyColumn,
    ColumnChange,
    ComputedColumn,
)
from flinkpy.sql.syntax.tree_walk import nodes_of


def with_options(table: CatalogTable, statement: AlterOptions) -> CatalogTable:
    """After ``SET (...)`` or ``RESET (...)``."""
    if "connector" in statement.reset:
        raise ValidationError("the option 'connector' cannot be reset: a table needs one")
    options = {**table.options, **dict(statement.options)}
    kept = {key: value for key, value in options.items() if key not in statement.reset}
    return replace(table, options=kept)


def with_changed_schema(table: CatalogTable, statement: AlterSchema) -> CatalogTable:
    """After ``ADD (...)`` or ``MODIFY (...)``."""
    is_add = statement.kind == "ADD"
    columns = list(table.columns)
    for change in statement.columns:
        columns = _added(columns, change) if is_add else _modified(columns, change)
    if is_add and statement.watermark is not None and table.watermarks:
        raise ValidationError("the table has a WATERMARK already: use MODIFY")
    if is_add and statement.primary_key is not None and table.primary_key is not None:
        raise ValidationError("the table has a PRIMARY KEY already: use MODIFY")
    if not is_add and statement.watermark is not None and not table.watermarks:
        raise ValidationError("the table has no WATERMARK yet: use ADD")
    if not is_add and statement.primary_key is not None and table.primary_key is None:
        raise ValidationError("the table has no PRIMARY KEY yet: use ADD")
    return checked_table(
        replace(
            table,
            columns=tuple(columns),
            watermarks=table.watermarks if statement.watermark is None else (statement.watermark,),
            primary_key=statement.primary_key or table.primary_key,
        )
    )


def _added(columns: list[AnyColumn], change: ColumnChange) -> list[AnyColumn]:
    if change.column.name in _names(columns):
        raise ValidationError(f"the table has a column {change.column.name!r} already: use MODIFY")
    return _placed(columns, change, len(columns))


def _modified(columns: list[AnyColumn], change: ColumnChange) -> list[AnyColumn]:
    """A column keeps its comment if the statement has none for it."""
    at = _place(columns, change.column.name)
    comment = change.column.comment or columns[at].comment
    change = replace(change, column=replace(change.column, comment=comment))
    return _placed(columns[:at] + columns[at + 1 :], change, at)


def _placed(columns: list[AnyColumn], change: ColumnChange, at: int) -> list[AnyColumn]:
    if change.first:
        at = 0
    elif change.after is not None:
        at = _place(columns, change.after) + 1
    return [*columns[:at], change.column, *columns[at:]]


def with_renamed_column(table: CatalogTable, statement: AlterRenameColumn) -> CatalogTable:
    """After ``RENAME a TO b``."""
    columns = list(table.columns)
    at = _place(columns, statement.column)
    if statement.new_column in _names(columns):
        raise ValidationError(f"the table has a column {statement.new_column!r} already")
    _refuse_used(table, statement.column, "renamed")
    columns[at] = replace(columns[at], name=statement.new_column)

    def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(statement.new_column if each == statement.column else each for each in names)

    key = table.primary_key
    return replace(
        table,
        columns=tuple(columns),
        primary_key=None if key is None else replace(key, columns=renamed(key.columns)),
        partition_keys=renamed(table.partition_keys),
    )


def with_dropped(table: CatalogTable, statement: AlterDrop) -> CatalogTable:
    """After ``DROP`` of columns, of the primary key or of the watermark."""
    if statement.primary_key and table.primary_key is None:
        raise ValidationError("the table has no PRIMARY KEY")
    if statement.watermark and not table.watermarks:
        raise ValidationError("the table has no WATERMARK")
    key = None if statement.primary_key else table.primary_key
    watermarks = () if statement.watermark else table.watermarks
    columns = list(table.columns)
    for name in statement.columns:
        del columns[_place(columns, name)]
    left = replace(table, columns=tuple(columns), primary_key=key, watermarks=watermarks)
    for name in statement.columns:
        if key is not None and name in key.columns:
            raise ValidationError(f"the column {name!r} cannot be dropped: the PRIMARY KEY has it")
        if name in table.partition_keys:
            raise ValidationError(f"the column {name!r} cannot be dropped: it is a partition key")
        _refuse_used(left, name, "dropped")
    return left


def _refuse_used(table: CatalogTable, name: str, what: str) -> None:
    for column in table.columns:
        if isinstance(column, ComputedColumn) and name in _names_in(column.value):
            raise ValidationError(
                f"the column {name!r} cannot be {what}: {column.name!r} is computed from it"
            )
    for watermark in table.watermarks:
        if name == watermark.column.parts[0] or name in _names_in(watermark.strategy):
            raise ValidationError(f"the column {name!r} cannot be {what}: the WATERMARK uses it")


def _names_in(expression: SqlExpression) -> set[str]:
    return {each.parts[0] for each in nodes_of(expression) if isinstance(each, Identifier)}


def _place(columns: list[AnyColumn], name: str) -> int:
    names = _names(columns)
    if name not in names:
        raise ValidationError(f"the table has no column {name!r}{proposed(name, names)}")
    return names.index(name)


def _names(columns: Iterable[AnyColumn]) -> list[str]:
    return [column.name for column in columns]

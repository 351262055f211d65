"""Scans and sinks of declared tables, without a planner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flinkpy.common.logical_types.logical_type import (
    BigIntType,
    DateType,
    DecimalType,
    DoubleType,
    IntType,
    LogicalType,
    RowType,
    TimestampType,
    VarCharType,
)
from flinkpy.sql.catalog.catalog_port import CatalogTable, ObjectPath
from flinkpy.sql.physical.physical_nodes import SinkNode, TableScan, ValuesNode
from flinkpy.sql.rex.rex_nodes import Rex
from flinkpy.sql.syntax.statements import ColumnDefinition
from flinkpy.table.factories.found_factories import FoundFactories
from flinkpy.testing import embedded_environment

PATH = ObjectPath("default_catalog", "default_database", "t")
STRING = VarCharType(2**31 - 1)
TYPES: dict[str, LogicalType] = {
    "id": BigIntType(),
    "n": IntType(),
    "name": STRING,
    "price": DecimalType(10, 2),
    "share": DoubleType(),
    "day": DateType(),
    "at": TimestampType(3),
}


def declared(
    columns: Sequence[str], options: dict[str, str], partition_keys: tuple[str, ...] = ()
) -> CatalogTable:
    """A table with some of the columns above."""
    parts = tuple(ColumnDefinition(name, TYPES[name]) for name in columns)
    return CatalogTable(parts, options, partition_keys=partition_keys)


def row_type(columns: Sequence[str]) -> RowType:
    return RowType.of(*((name, TYPES[name]) for name in columns))


def scanned(
    table: CatalogTable, columns: Sequence[str] | None = None, filters: tuple[Rex, ...] = ()
) -> Any:
    """The table's rows as Arrow columns."""
    names = [column.name for column in table.columns] if columns is None else list(columns)
    types = {column.name: column.type for column in table.columns}  # type: ignore[union-attr]
    schema = RowType.of(*((name, types[name]) for name in names))
    node = TableScan(schema, PATH, table, filters=filters)
    env = embedded_environment()
    return FoundFactories().scan(env, node).to_arrow()


def written(data: Any, table: CatalogTable) -> None:
    """Runs a job that writes Arrow columns into the table."""
    schema = RowType.of(*((column.name, column.type) for column in table.columns))  # type: ignore[union-attr]
    node = SinkNode(schema, ValuesNode(schema, ()), PATH, table)
    env = embedded_environment()
    FoundFactories().sink(env.from_arrow(data), node)
    env.execute("written")

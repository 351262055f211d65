"""A session for tests of the catalog: no parser, no binder."""

from __future__ import annotations

from collections.abc import Mapping

from flinkpy.common.logical_types.logical_type import (
    BigIntType,
    DayTimeIntervalType,
    IntType,
    LogicalType,
    RowField,
    RowType,
    TimestampType,
    VarCharType,
)
from flinkpy.sql.catalog.catalog_manager import CatalogManager
from flinkpy.sql.catalog.catalog_port import Catalog, CatalogTable, ObjectPath
from flinkpy.sql.catalog.ddl_execution import DdlExecution
from flinkpy.sql.catalog.in_memory_catalog import GenericInMemoryCatalog
from flinkpy.sql.catalog.statement_rows import StatementRows
from flinkpy.sql.functions.function_port import Function
from flinkpy.sql.syntax.query_tree import FunctionCall, Identifier, Query, SqlLiteral
from flinkpy.sql.syntax.statements import (
    ColumnDefinition,
    ComputedColumn,
    CreateTable,
    PrimaryKey,
    Statement,
    TableDefinition,
    WatermarkDefinition,
)

STRING = VarCharType(2**31 - 1)
INT = IntType()


class NoFunctions:
    """A registry with one name."""

    def find(self, name: str) -> Function | None:
        return None

    def absence(self, name: str) -> str | None:
        return None

    def names(self) -> list[str]:
        return ["UPPER"]


class IntegerTypes:
    """Says that whatever is computed is a BIGINT."""

    def type_of_query(self, query: Query) -> RowType:
        return RowType.of(("a", BigIntType()))

    def type_of_table(self, table: CatalogTable) -> RowType:
        def type_of(column: object) -> LogicalType:
            return BigIntType() if isinstance(column, ComputedColumn) else column.type  # type: ignore[attr-defined]

        return RowType(tuple(RowField(each.name, type_of(each)) for each in table.columns))


class InMemoryOnly:
    """Makes catalogs of one type; tables have the partitions that were added."""

    def __init__(self) -> None:
        self._partitions: set[str] = set()

    def made_catalog(self, name: str, options: Mapping[str, str]) -> Catalog:
        return GenericInMemoryCatalog(name)

    def partitions(self, path: ObjectPath, table: CatalogTable) -> list[str]:
        return sorted(self._partitions)

    def add_partition(
        self, path: ObjectPath, table: CatalogTable, values: Mapping[str, object]
    ) -> bool:
        self._partitions.add(str(values))
        return True

    def drop_partition(
        self, path: ObjectPath, table: CatalogTable, values: Mapping[str, object]
    ) -> bool:
        return False


class Session:
    """Runs trees of statements."""

    def __init__(self) -> None:
        self.manager = CatalogManager(NoFunctions())

    def run(self, statement: Statement, text: str = "") -> StatementRows:
        return DdlExecution(self.manager, IntegerTypes(), text, InMemoryOnly()).execute(statement)

    def rows(self, statement: Statement) -> list[tuple[object, ...]]:
        return list(self.run(statement).rows)


def name(text: str) -> Identifier:
    return Identifier(tuple(text.split(".")))


def bids(**changes: object) -> CreateTable:
    """A table with each kind of part."""
    definition = TableDefinition(
        (
            ColumnDefinition("auction", BigIntType()),
            ColumnDefinition("price", IntType()),
            ColumnDefinition("at", TimestampType(3)),
            ComputedColumn("twice", FunctionCall("*", (name("price"), SqlLiteral(2, INT)))),
        ),
        (
            WatermarkDefinition(
                name("at"), FunctionCall("-", (name("at"), SqlLiteral(4000, DayTimeIntervalType())))
            ),
        ),
        PrimaryKey(("auction",)),
    )
    parts: dict[str, object] = {
        "name": name("bids"),
        "definition": definition,
        "options": (("connector", "kafka"), ("properties.sasl.password", "wolf")),
    }
    return CreateTable(**{**parts, **changes})  # type: ignore[arg-type]

"""What the execution of DDL needs of binding: the types of queries and of computed columns."""

from __future__ import annotations

from typing import Protocol

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.syntax.query_tree import Query


class QueryTypes(Protocol):
    """Binding, as the catalog sees it. Raises ValidationError for names and types that do not
    fit."""

    def type_of_query(self, query: Query) -> RowType:
        """The type of its rows."""

    def type_of_table(self, table: CatalogTable) -> RowType:
        """All columns, also computed ones, with the marks of time attributes."""

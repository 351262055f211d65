"""The front of binding: a query or an INSERT in, its logical plan out."""

from __future__ import annotations

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.binding.expression_binder import ExpressionBinder
from flinkpy.sql.binding.insert_binder import bind_insert
from flinkpy.sql.binding.query_binder import QueryBinder
from flinkpy.sql.binding.scope import Relation, Scope
from flinkpy.sql.binding.table_binder import declared_columns
from flinkpy.sql.catalog.catalog_port import CatalogTable, ObjectPath
from flinkpy.sql.logical.logical_nodes import LogicalNode, LogicalSink
from flinkpy.sql.rex.rex_nodes import Rex
from flinkpy.sql.syntax.query_tree import Query, SqlExpression
from flinkpy.sql.syntax.statements import Insert


class Binder:
    """Gives the names of a statement their meaning, and every expression its type. Raises
    ValidationError with the place in the text."""

    def __init__(self, context: BindingContext) -> None:
        self._queries = QueryBinder(context)

    def query(self, query: Query) -> LogicalNode:
        """The plan of a query; the names of its columns are those of the result."""
        return self._queries.bind_query(query, None)

    def insert(self, insert: Insert) -> LogicalSink:
        """The plan of an INSERT."""
        return bind_insert(self._queries, insert)

    def declared_columns(self, path: ObjectPath, table: CatalogTable) -> RowType:
        """All columns of a declared table, with the marks of time attributes."""
        return declared_columns(self._queries.context, path, table, self._queries)

    def expression(self, expression: SqlExpression, row: RowType) -> Rex:
        """An expression over columns, such as that of a computed column in CREATE TABLE."""
        scope = Scope((Relation((), row.fields),))
        return ExpressionBinder(self._queries.context, scope, self._queries).bind(expression)

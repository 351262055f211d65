"""A table of a program: a query that has not run, at PyFlink's module path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.sql.syntax.query_tree import Query
from flinkpy.sql.syntax.statements import Insert, QueryStatement
from flinkpy.table.explain_detail import ExplainDetail
from flinkpy.table.session.statement_execution import StatementExecution
from flinkpy.table.session.table_paths import identifier_of
from flinkpy.table.session.table_session import TableSession
from flinkpy.table.table_result import TableResult

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from flinkpy.table.table_descriptor import TableDescriptor


class Table:
    """Made by ``sql_query``, ``from_path`` and their like. It is what a query says, and runs when
    its rows are asked for. In the text of another query its ``str`` is a name for it.

    >>> late = table_env.sql_query("SELECT * FROM flights WHERE dep_delay > 60")  # doctest: +SKIP
    >>> late.to_pandas()  # doctest: +SKIP
    """

    def __init__(self, session: TableSession, query: Query, text: str | None = None) -> None:
        self._session, self.query, self._text = session, query, text
        self._schema = session.type_of_query(query)
        self._name: str | None = None

    def get_schema(self) -> RowType:
        """The names and types of the columns."""
        return self._schema

    get_resolved_schema = get_schema

    def print_schema(self) -> None:
        """Prints the columns as Flink does."""
        print("(")
        print(",\n".join(f"  {field}" for field in self._schema))
        print(")")

    # -- running -----------------------------------------------------------------------------------

    def execute(self) -> TableResult:
        """Runs the query; the rows are fetched from the job."""
        return self._execution.execute(QueryStatement(self.query), self._text or "")

    def execute_insert(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> TableResult:
        """Runs the query; its rows go into a table."""
        insert = self.insert_into(table_path_or_descriptor, overwrite)
        return self._execution.execute(insert, "")

    def insert_into(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> Insert:
        """The INSERT of these rows, for a statement set."""
        if isinstance(table_path_or_descriptor, str):
            target = identifier_of(table_path_or_descriptor)
        else:
            target = self._session.unnamed_sink(table_path_or_descriptor.as_table(), self._schema)
        return Insert(target, self.query, overwrite=overwrite)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan as text."""
        return self._execution.explanation(QueryStatement(self.query))

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints what ``explain`` gives."""
        print(self.explain(*extra_details))

    def to_arrow(self) -> pa.Table:
        """All rows as a ``pyarrow.Table``."""
        return self.execute().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas frame."""
        return self.execute().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars frame."""
        return self.execute().to_polars()

    @property
    def _execution(self) -> StatementExecution:
        return StatementExecution(self._session)

    def __str__(self) -> str:
        """A name for it in the text of a query; it is registered when it is asked for."""
        if self._name is None:
            self._name = str(self._session.unnamed_view(self.query))
        return self._name

    def __repr__(self) -> str:
        return f"<Table ({', '.join(map(str, self._schema))})>"

"""Several INSERTs that run as one job, at PyFlink's module path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.core.errors import ProgramError
from flinkpy.sql.syntax.statements import Insert, StatementSetBlock
from flinkpy.table.explain_detail import ExplainDetail
from flinkpy.table.session.statement_execution import StatementExecution
from flinkpy.table.table_result import TableResult

if TYPE_CHECKING:
    from flinkpy.table.table import Table
    from flinkpy.table.table_descriptor import TableDescriptor


class StatementSet:
    """Made by ``create_statement_set``. A source that several of the INSERTs read is read once.

    >>> statements = table_env.create_statement_set()  # doctest: +SKIP
    >>> statements.add_insert_sql("INSERT INTO late SELECT ...")  # doctest: +SKIP
    >>> statements.execute().wait()  # doctest: +SKIP
    """

    def __init__(self, execution: StatementExecution) -> None:
        self._execution = execution
        self._inserts: list[Insert] = []

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Adds an INSERT. Raises ProgramError for another statement."""
        from flinkpy.sql.parsing.parse import parse_statement

        statement = parse_statement(stmt)
        if not isinstance(statement, Insert):
            raise ProgramError(f"add_insert_sql() takes an INSERT, this is {stmt!r:.80}")
        self._inserts.append(statement)
        return self

    def add_insert(
        self,
        target_path_or_descriptor: str | TableDescriptor,
        table: Table,
        overwrite: bool = False,
    ) -> StatementSet:
        """Adds the rows of a table, which go into the target."""
        self._inserts.append(table.insert_into(target_path_or_descriptor, overwrite))
        return self

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plans of all of them."""
        block = StatementSetBlock(tuple(self._inserts))
        return self._execution.explanation(block, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints what ``explain`` gives."""
        print(self.explain(*extra_details))

    def execute(self) -> TableResult:
        """Submits the job; the set is empty afterwards."""
        if not self._inserts:
            raise ProgramError("the statement set is empty: add an INSERT with add_insert_sql()")
        inserts, self._inserts = self._inserts, []
        return self._execution.insert(inserts)

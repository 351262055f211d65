"""What a statement answers, at PyFlink's module path."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from flinkpy.common.job_client import JobClient
from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.common.types import Row
from flinkpy.core.program.extras import imported
from flinkpy.sql.catalog.statement_rows import StatementRows
from flinkpy.table.result_kind import ResultKind
from flinkpy.table.results.html_tables import SHOWN_ROWS, html_table
from flinkpy.table.results.result_rows import LookedAtRows, ReadyRows, ResultRows
from flinkpy.table.results.tableau import MOST_WIDTH, CellTexts, Tableau

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class CloseableIterator:
    """The rows of a result, as they come. Closing it, or leaving its ``with`` block, cancels the
    job if it still runs."""

    def __init__(self, rows: ResultRows) -> None:
        self._rows, self._iterator = rows, rows.rows()

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        return next(self._iterator)

    def next(self) -> Row:
        """The next row. Raises StopIteration when there is none."""
        return next(self._iterator)

    def close(self) -> None:
        """No more rows are wanted."""
        self._rows.close()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TableResult:
    """Returned by ``execute_sql``. The rows can be read once.

    ``job`` is the job that the statement runs; ``has_kinds``: rows are shown with their kind."""

    def __init__(
        self,
        schema: RowType,
        rows: ResultRows,
        kind: ResultKind = ResultKind.SUCCESS_WITH_CONTENT,
        job: JobClient | None = None,
        *,
        has_kinds: bool = False,
        zone: str = "UTC",
        most_width: int = MOST_WIDTH,
    ) -> None:
        self._schema = schema
        self._rows = rows
        self._kind = kind
        self._job = job
        self._has_kinds = has_kinds
        self._cells = CellTexts(schema, has_kinds=has_kinds, zone=zone)
        self._tableau = Tableau.of_types(schema, has_kinds=has_kinds, most=most_width)

    @staticmethod
    def of_statement(answered: StatementRows) -> TableResult:
        """The result of a statement that ran no job."""
        kind = ResultKind.SUCCESS_WITH_CONTENT if answered.has_content else ResultKind.SUCCESS
        rows = ReadyRows(answered.rows, is_plain=answered.is_plain)
        made = TableResult(answered.schema, rows, kind)
        made._cells = CellTexts(answered.schema, null="")
        return made

    def get_job_client(self) -> JobClient | None:
        """The job of the statement; None if it runs none."""
        return self._job

    @property
    def has_kinds(self) -> bool:
        """Whether rows can change what came before: they are shown with their kind."""
        return self._has_kinds

    def get_result_kind(self) -> ResultKind:
        """Whether there is content to read."""
        return self._kind

    def get_resolved_schema(self) -> RowType:
        """The names and types of the columns."""
        return self._schema

    def wait(self, timeout_ms: int | None = None) -> None:
        """Waits until the job of an INSERT has ended, or the first row of a query is there. Raises
        JobExecutionError if the job failed, and RpcTimeoutError when the time is over."""
        if self._job is not None and isinstance(self._rows, ReadyRows):
            self._job._execution_result(None if timeout_ms is None else timeout_ms / 1000)

    def collect(self) -> CloseableIterator:
        """The rows, with their kinds.

        >>> with table_env.execute_sql("SELECT 1").collect() as rows:  # doctest: +SKIP
        ...     list(rows)
        """
        return CloseableIterator(self._rows)

    def print(self) -> None:
        """Prints the rows as Flink does, as they come."""
        if self._kind is ResultKind.SUCCESS:
            print("OK")
            return
        for line in self.lines():
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def lines(self) -> Iterator[str]:
        """The lines that ``print`` writes."""
        with CloseableIterator(self._rows) as rows:
            texts: Any = map(self._cells, rows)
            if isinstance(self._rows, ReadyRows):
                texts = list(texts)
                if self._rows.is_plain:
                    yield texts[0][0]
                    return
                yield from Tableau.of_rows(self._schema, texts).lines(texts)
            else:
                yield from self._tableau.lines(texts)

    def lines_of(self, rows: Iterable[Row]) -> Iterator[str]:
        """The lines of a table of these rows, without kinds."""
        texts = CellTexts(self._schema)
        return Tableau.of_types(self._schema, has_kinds=False).lines(map(texts, rows))

    def to_arrow(self) -> pa.Table:
        """All rows as a ``pyarrow.Table``; of rows that change, those that are left when the query
        has ended."""
        table: pa.Table = self._rows.arrow_table(self._schema)
        return table

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas frame."""
        from flinkpy.columns.values.pandas_frames import pandas_frame

        imported("pandas", "pandas", "to_pandas()")
        return pandas_frame(self.to_arrow(), "to_pandas()")

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars frame."""
        frame: pl.DataFrame = imported("polars", "polars", "to_polars()").DataFrame(self.to_arrow())
        return frame

    def _repr_html_(self) -> str:
        """In a notebook, the first rows; of rows that change, the first that are left, if the query
        ends, else the first changes. They can be read again; a query that has more goes on, and
        waits for its reader."""
        if self._kind is ResultKind.SUCCESS:
            return "OK"
        if not isinstance(self._rows, (ReadyRows, LookedAtRows)):
            self._rows = LookedAtRows(self._rows, SHOWN_ROWS + 1)
        ready = self._rows
        if isinstance(ready, ReadyRows):
            texts = list(map(self._cells, ready.rows()))
            if ready.is_plain:
                return f"<pre>{html.escape(texts[0][0])}</pre>"
            return html_table(self._schema, texts, has_kinds=self._has_kinds)
        texts = list(map(self._cells, ready.shown[:SHOWN_ROWS]))
        if ready.are_settled and self._has_kinds:
            texts = [cells[1:] for cells in texts]  # all are inserts
        note = f"the first {SHOWN_ROWS} rows" * (len(ready.shown) > SHOWN_ROWS)
        has_kinds = self._has_kinds and not ready.are_settled
        return html_table(self._schema, texts, note, has_kinds=has_kinds)

    def __repr__(self) -> str:
        return f"<TableResult: {', '.join(map(str, self._schema))}>"

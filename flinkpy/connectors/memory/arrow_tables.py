"""Arrow tables and pandas frames as columnar sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.connectors.memory.pieces import Pieces
from flinkpy.connectors.memory.ranges import InMemorySource
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.users_values import whole_number

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# Of columnar sources: long enough that a kernel's fixed cost does not matter, short enough to stay
# in the cache.
DEFAULT_BATCH_ROWS = 8192


def number_of_rows(batch_rows: object) -> int:
    """How many rows a batch of a source has; raises ProgramError for what is no whole number from 1
    on.

    >>> number_of_rows(4096)
    4096
    """
    number = whole_number(batch_rows)
    if number is None or number < 1:
        raise ProgramError(
            f"batch_rows= takes a number of rows from 1 on, this is {batch_rows!r:.80}"
        )
    return number


class ArrowSource(InMemorySource):
    """Reads the rows of a ``pyarrow.Table``, a ``RecordBatch``, or any object that offers an Arrow
    stream (``__arrow_c_stream__``: frames of Polars, DuckDB's relations), as column batches of
    ``batch_rows`` rows.

    At parallelism 1 the rows are in order; with more readers each gets a contiguous part. Raises
    ProgramError for other objects."""

    def __init__(self, data: object, batch_rows: int = DEFAULT_BATCH_ROWS) -> None:
        from flinkpy.columns.values.conversion import without_views

        table = without_views(table_of(data))
        doubled = [name for name in table.column_names if table.column_names.count(name) > 1]
        if doubled:
            raise ProgramError(f"two columns are called {doubled[0]!r}; give them different names")
        super().__init__(Pieces([table], [table.num_rows]))
        self._schema, self.batch_rows = table.schema, number_of_rows(batch_rows)

    @staticmethod
    def from_pandas(frame: pd.DataFrame, batch_rows: int = DEFAULT_BATCH_ROWS) -> ArrowSource:
        """Reads the rows of a pandas frame, without its index, as they are when this is called.
        Raises ProgramError if it is not a pandas frame or Arrow cannot convert it."""
        if not hasattr(frame, "columns") or not hasattr(frame, "index"):
            advice = "; from_arrow() takes it" if is_arrow_stream(frame) else ""
            raise ProgramError(
                f"from_pandas takes a pandas frame, this is a {type(frame).__name__}{advice}"
            )
        return ArrowSource(_table_of_pandas(frame), batch_rows)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def is_columnar(self) -> bool:
        return True

    def batch_of(self, piece: Any, start: int, end: int) -> Batch:
        return ColumnBatch(single_batch(piece.slice(start, end - start)))


def is_arrow_stream(data: object) -> bool:
    """Whether it is a table that offers its columns as an Arrow stream."""
    return (
        hasattr(data, "__arrow_c_stream__")
        and (hasattr(data, "schema") or hasattr(data, "columns"))
        and not isinstance(data, type)
    )


def _table_of_pandas(frame: Any) -> pa.Table:
    import pyarrow as pa

    from flinkpy.columns.values.inference import check_objects

    try:
        check_objects(frame)
        # A copy: Arrow shares the memory of numeric columns
        return pa.Table.from_pandas(frame.copy(), preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ProgramError(f"from_pandas: {'; '.join(map(str, error.args))}") from error


def table_of(data: object) -> pa.Table:
    """The data as a table. Raises ProgramError for what is none."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__name__ == "DataFrame" and type(data).__module__.partition(".")[0] == "pandas":
        return _table_of_pandas(data)
    if not hasattr(data, "__arrow_c_stream__") or isinstance(data, type):
        raise ProgramError(
            "from_arrow takes a pyarrow.Table or RecordBatch, or what gives an Arrow stream "
            "(__arrow_c_stream__), this is a "
            f"{type(data).__name__}"
        )
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ProgramError(
            f"from_arrow: the {type(data).__name__} cannot be read as an Arrow stream: {error}"
        ) from error


def single_batch(table: pa.Table) -> Any:
    """A short table as one record batch; copies only if the table has several chunks."""
    import pyarrow as pa

    batches = table.to_batches()
    if len(batches) == 1:
        return batches[0]
    combined = table.combine_chunks().to_batches()
    return combined[0] if combined else pa.RecordBatch.from_pylist([], schema=table.schema)

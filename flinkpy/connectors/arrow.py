"""Arrow tables and pandas frames as columnar sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.ranges import RangeReader, RangeSource, RangeSplit
from flinkpy.connectors.readers import SequentialReader
from flinkpy.connectors.source import ReaderContext, SourceReader
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

DEFAULT_BATCH_ROWS = 8192  # of columnar sources: long enough that a kernel's fixed cost vanishes, short enough to stay in the cache


class ArrowSource(RangeSource):
    """The rows of a ``pyarrow.Table`` or ``RecordBatch``, as column batches of ``batch_rows`` rows.

    In order at parallelism 1; with more readers each gets a contiguous part.
    """

    def __init__(self, data: pa.Table | pa.RecordBatch, batch_rows: int = DEFAULT_BATCH_ROWS) -> None:
        import pyarrow as pa

        from flinkpy.table.conversion import without_views

        table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        if not isinstance(table, pa.Table):
            raise ProgramError(f"from_arrow takes a pyarrow.Table or RecordBatch, this is a {type(data).__name__}")
        super().__init__(0, table.num_rows)
        self._table = without_views(table)
        self._batch_rows = batch_rows

    @staticmethod
    def from_pandas(frame: pd.DataFrame, batch_rows: int = DEFAULT_BATCH_ROWS) -> ArrowSource:
        """The rows of a pandas frame; its index is left out."""
        import pyarrow as pa

        if not hasattr(frame, "columns") or not hasattr(frame, "index"):
            raise ProgramError(f"from_pandas takes a pandas frame, this is a {type(frame).__name__}")
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ProgramError(f"from_pandas: {'; '.join(map(str, error.args))}") from error
        return ArrowSource(table, batch_rows)

    @property
    def schema(self) -> pa.Schema:
        return self._table.schema

    @property
    def is_columnar(self) -> bool:
        return True

    def create_reader(self, context: ReaderContext) -> SourceReader[RangeSplit]:
        slice_of, rows = self.slicer(), self._batch_rows
        return SequentialReader(context, lambda split: _TableReader(split, slice_of, rows))

    def slicer(self) -> Callable[[int, int], Batch]:
        table = self._table
        return lambda start, end: ColumnBatch(single_batch(table.slice(start, end - start)))


class _TableReader(RangeReader):
    """A range reader with a batch length of its own: the limit of row batches is too short for columns."""

    def __init__(self, split: RangeSplit, slice_of: Callable[[int, int], Batch], rows: int) -> None:
        super().__init__(split, slice_of)
        self._rows = rows

    def next_batch(self, limit: int) -> Batch | None:
        return super().next_batch(self._rows)


def single_batch(table: Any) -> Any:
    """A short table as one record batch; copies only where it spans chunks."""
    import pyarrow as pa

    batches = table.to_batches()
    if len(batches) == 1:
        return batches[0]
    combined = table.combine_chunks().to_batches()
    return combined[0] if combined else pa.RecordBatch.from_pylist([], schema=table.schema)

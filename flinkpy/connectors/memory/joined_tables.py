"""Tables that a program hands over to be joined with a stream: data in its memory, or a function
that loads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from flinkpy.common.types import Row
from flinkpy.connectors.memory.arrow_tables import is_arrow_stream, table_of
from flinkpy.connectors.memory.pieces import Pieces, opened
from flinkpy.core.errors import ProgramError
from flinkpy.formats.record_fields import RecordFields
from flinkpy.operators.columnar.table_join import JoinedTable, same_schema

if TYPE_CHECKING:
    import pyarrow as pa


class HeldTable(JoinedTable):
    """A table of the program's memory. Embedded, the subtasks read it in place; on Ray a large one
    is put into the object store once, and stays there as long as the program."""

    def __init__(self, data: object) -> None:
        table = static_table(data)
        self.schema = table.schema
        self._pieces = Pieces([table], [table.num_rows])
        self._pieces.is_asked_for_by_subtasks = True

    def load(self) -> pa.Table:
        import pyarrow as pa

        pieces = [
            self._pieces.fetch(number, lambda: None).result()
            for number in range(len(self._pieces.rows))
        ]
        return pa.concat_tables([static_table(opened(piece)) for piece in pieces])

    def __repr__(self) -> str:
        return f"<HeldTable of {len(self._pieces)} rows>"


class LoadedTable(JoinedTable):
    """What a function returns. It is called here, to know the columns, and in each subtask."""

    def __init__(self, function: Callable[[], Any], reload_s: float | None) -> None:
        self.function, self.reload_s = function, reload_s
        self.schema = static_table(function()).schema

    def load(self) -> pa.Table:
        return same_schema(static_table(self.function()), self.schema)

    def __repr__(self) -> str:
        return f"<LoadedTable of {self.function!r}>"


def static_table(data: object) -> pa.Table:
    """The table of a frame, of Arrow's data, or of a list of dicts or Rows. Raises ProgramError for
    anything else."""
    import pyarrow as pa

    from flinkpy.columns.values.conversion import without_views

    if isinstance(data, (list, tuple)):
        table = _of_records(data)
    elif (
        isinstance(data, pa.RecordBatch)
        or is_arrow_stream(data)
        or hasattr(data, "__arrow_c_stream__")
    ):
        table = without_views(table_of(data))
    else:
        raise ProgramError(
            "join_table() takes a frame of pandas or Polars, a pyarrow.Table, a list of dicts "
            "or Rows, a stream that ends, or a "
            f"function that returns one of these; this is a {type(data).__name__}"
        )
    doubled = [name for name in table.column_names if table.column_names.count(name) > 1]
    if doubled:
        raise ProgramError(
            f"join_table(): two columns of the table are called {doubled[0]!r}; give them "
            "different names"
        )
    return table


def _of_records(records: Any) -> pa.Table:
    import pyarrow as pa

    from flinkpy.columns.values.conversion import batch_of_columns

    plain = [
        record.as_dict()
        if isinstance(record, Row)
        else dict(record)
        if isinstance(record, Mapping)
        else record
        for record in records
    ]
    if not plain or not all(isinstance(record, Mapping) for record in plain):
        raise ProgramError(
            "join_table(): a list has one or more dicts or Rows with names, so that the "
            "columns are known; of an empty table give a "
            "pyarrow.Table with a schema"
        )
    fields = RecordFields(None, "table", "give all the same fields, None where there is none")
    names = fields.begin(plain[0]) or []
    return pa.Table.from_batches([batch_of_columns(dict(zip(names, fields.columns_of(plain))))])

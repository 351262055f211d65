"""The source and the sink of ``values``: rows with kinds, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.sql.arrays_of_values import array_of_values
from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.common.types import RowKind
from flinkpy.connectors.memory.arrow_tables import ArrowSource, single_batch
from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter
from flinkpy.table.factories.registered_rows import keep_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

_KIND = "$kind"


class ChangesSource(ArrowSource):
    """A table whose last column has the kinds of its rows."""

    @property
    def schema(self) -> Any:
        return self._schema.remove(len(self._schema) - 1)

    def batch_of(self, piece: Any, start: int, end: int) -> Batch:
        whole = single_batch(piece.slice(start, end - start))
        kinds = np.asarray(whole.column(_KIND))
        return ColumnBatch(whole.select(self.schema.names), None, kinds.astype(np.int8))


def changes_source(
    rows: Sequence[tuple[RowKind, tuple[Any, ...]]],
    declared: RowType,
    wanted: Iterable[str],
    batch_rows: int,
) -> ChangesSource:
    """Reads the wanted columns of rows of a declared type."""
    places = {name: at for at, name in enumerate(declared.names)}
    columns: dict[str, Any] = {}
    for name in wanted:
        at = places[name]
        columns[name] = array_of_values(
            [values[at] for _, values in rows], declared.fields[at].type
        )
    columns[_KIND] = pa.array([kind.value for kind, _ in rows], pa.int8())
    return ChangesSource(pa.table(columns), batch_rows)


class KeepingSink(Sink):
    """Keeps rows under the name of their table."""

    takes_kinds = True

    def __init__(self, table: str) -> None:
        self._table = table

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return _KeepingWriter(self._table)

    def __repr__(self) -> str:
        return f"KeepingSink({self._table})"


class _KeepingWriter(SinkWriter):
    def __init__(self, table: str) -> None:
        self._table = table

    def write_batch(self, batch: Batch) -> None:
        keep_rows(self._table, rows_of(batch))

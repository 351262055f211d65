"""Files that are read at once, outside of a source's task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from flinkpy.connectors.source_api.source import InputStatus, ReaderContext
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.elements import ColumnBatch

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.connectors.files.reading.column_source import ColumnFileSource

ROWS_AT_ONCE = 1 << 16


def whole_table(source: ColumnFileSource) -> Iterator[pa.RecordBatch]:
    """All rows of a source's files, in batches."""
    context = ReaderContext(0, 1, "", SYSTEM_CLOCK, _nothing, _nothing, _nothing, _nothing)
    reader = source.create_reader(context)
    reader.add_splits(list(source.splits(1)))
    reader.notify_no_more_splits()
    try:
        while True:
            given = reader.poll(ROWS_AT_ONCE)
            if isinstance(given, ColumnBatch):
                yield given.data
            elif given is InputStatus.END_OF_INPUT:
                return
    finally:
        reader.close()


def _nothing(*_: object) -> None:
    """There is no task to tell."""

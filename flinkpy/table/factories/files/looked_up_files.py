"""A table of files that is looked up: each subtask holds its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from flinkpy.connectors.files.paths import NoFilesError
from flinkpy.connectors.files.reading.whole_files import whole_table
from flinkpy.operators.columnar.table_join import JoinedTable
from flinkpy.sql.catalog.catalog_port import CatalogTable

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.connectors.files.reading.column_source import ColumnFileSource

ROWS_AT_ONCE = 1 << 16


class Files(Protocol):
    """Who knows what the options of a table say of its files."""

    def source(self, table: CatalogTable, columns: list[str], rows: int) -> ColumnFileSource: ...


class FilesTable(JoinedTable):
    """These columns of the files that are there when it is loaded."""

    def __init__(
        self, files: Files, table: CatalogTable, schema: pa.Schema, reload_s: float | None
    ) -> None:
        self.files = files
        self.table = table
        self.schema = schema
        self.reload_s = reload_s

    def load(self) -> pa.Table:
        import pyarrow as pa

        try:
            columns = list(self.schema.names)
            source = self.files.source(self.table, columns, ROWS_AT_ONCE)
        except NoFilesError:
            return self.schema.empty_table()
        read = pa.Table.from_batches(whole_table(source), source.schema)
        return read.cast(self.schema)

    def __repr__(self) -> str:
        return f"<FilesTable of {', '.join(self.schema.names)}>"

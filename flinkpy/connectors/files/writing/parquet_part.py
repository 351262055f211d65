"""Writes one Parquet file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.writing.columns_part import ColumnsPart
from flinkpy.connectors.files.writing.part_writer import OutputFile
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetPart(ColumnsPart):
    """One file, with a row group for each group of rows."""

    kind = "Parquet"

    def __init__(self, file: OutputFile, schema: pa.Schema | None, compression: str) -> None:
        super().__init__(file, schema)
        self._compression = compression
        self._writer: Any = None

    def _write_table(self, table: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            if self._writer is None:
                self._writer = pq.ParquetWriter(
                    self._file, self._schema, compression=self._compression
                )
            self._writer.write_table(table)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ProgramError(
                "Parquet has no columns of this schema "
                f"({self._schema.to_string(truncate_metadata=True)}): {error}"
            ) from error

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.close()

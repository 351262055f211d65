"""Writes one Avro container file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.columns.values.exact_casts import cast_exactly
from flinkpy.connectors.files.writing.avro.avro_types import avro_schema
from flinkpy.connectors.files.writing.columns_part import ColumnsPart
from flinkpy.connectors.files.writing.part_writer import OutputFile
from flinkpy.core.errors import ProgramError
from flinkpy.formats.avro.avro_schema import (
    AvroSchema,
    column_schema,
    record_type,
    require_fastavro,
)

if TYPE_CHECKING:
    import pyarrow as pa


class AvroPart(ColumnsPart):
    """One file. ``codec`` compresses its blocks."""

    kind = "Avro"

    def __init__(self, file: OutputFile, schema: pa.Schema, codec: str) -> None:
        super().__init__(file, schema)
        self._codec = codec
        self._writer: Any = None

    def _write_table(self, table: pa.Table) -> None:
        import pyarrow as pa

        if self._writer is None:
            found = avro_schema(self._schema)
            self._stored = column_schema(record_type(AvroSchema(found), "Avro"), "Avro")
            self._writer = require_fastavro().write.Writer(self._file, found, codec=self._codec)
        try:
            stored = pa.table(
                [
                    cast_exactly(column.combine_chunks(), field)
                    for column, field in zip(table.columns, self._stored)
                ],
                self._stored,
            )
        except pa.ArrowException as error:
            raise ProgramError(f"Avro cannot hold these values: {error}") from error
        for record in stored.to_pylist(maps_as_pydicts="strict"):
            self._writer.write(record)

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.flush()

"""How a part file is written: text lines, CSV, JSON lines or Parquet; each takes rows and columns."""

from __future__ import annotations

import csv
import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from flinkpy.common.serialization import BulkWriterFactory, Encoder
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa


class PartWriter(ABC):
    """Writes one part file."""

    @abstractmethod
    def write(self, batch: Batch) -> None: ...

    def flush(self) -> None:
        """Hands what was gathered to the operating system."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes written so far, but for what is still gathered."""

    @abstractmethod
    def close(self) -> None:
        """Ends the file properly."""


class FileFormat(BulkWriterFactory):
    """Makes part writers; picklable."""

    suffix: str

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        """The format for a stream of that declared type."""
        return self

    @abstractmethod
    def open(self, path: str) -> PartWriter:
        """Begins a file at ``path``."""


class _TextPart(PartWriter):
    """Batches that one function turns into text."""

    def __init__(self, path: str, charset: str, text_of: Callable[[Batch], str]) -> None:
        self._file = open(path, "w", encoding=charset, newline="", buffering=256 << 10)  # noqa: SIM115  (closed in close)
        self._text_of = text_of

    def write(self, batch: Batch) -> None:
        self._file.write(self._text_of(batch))

    @property
    def size(self) -> int:
        return int(self._file.buffer.tell())  # type: ignore[attr-defined]  # a BufferedWriter, of which the stub shows less

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class TextFormat(FileFormat):
    """``str(value)`` per line, or what ``encode`` makes of the value."""

    suffix = ".txt"

    def __init__(self, encode: Callable[[Any], str] = str, charset: str = "utf-8") -> None:
        self._encode, self._charset = encode, charset

    def open(self, path: str) -> PartWriter:
        encode = self._encode
        return _TextPart(path, self._charset, lambda batch: "".join([f"{encode(value)}\n" for value in rows_of(batch)]))


class EncodedFormat(FileFormat):
    """The bytes that an encoder makes of each value, line end and all."""

    def __init__(self, encoder: Encoder, suffix: str = "") -> None:
        self._encoder, self.suffix = encoder, suffix

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        return EncodedFormat(self._encoder.of_type(type_info), self.suffix)

    def open(self, path: str) -> PartWriter:
        return _BytesPart(path, self._encoder.encode)


class _BytesPart(PartWriter):
    def __init__(self, path: str, encode: Callable[[Any], bytes]) -> None:
        self._file = open(path, "wb", buffering=256 << 10)  # noqa: SIM115  (closed in close)
        self._encode = encode

    def write(self, batch: Batch) -> None:
        self._file.write(b"".join(map(self._encode, rows_of(batch))))

    @property
    def size(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class CsvFormat(FileFormat):
    """A row per record: tuples, lists, rows, dicts and dataclasses by their fields, anything else as a single field. ``columns`` makes
    the header line (column batches have names of their own)."""

    suffix = ".csv"

    def __init__(self, columns: Sequence[str] | None = None, delimiter: str = ",", header: bool = True) -> None:
        self._columns, self._delimiter, self._header = columns, delimiter, header

    def open(self, path: str) -> PartWriter:
        header_due = [self._header]

        def text_of(batch: Batch) -> str:
            out = io.StringIO()
            writer = csv.writer(out, delimiter=self._delimiter, lineterminator="\n")
            if header_due[0]:
                header_due[0] = False
                names = self._columns or (batch.data.schema.names if isinstance(batch, ColumnBatch) else _names_of(batch.values[0]))
                if names:
                    writer.writerow(names)
            writer.writerows(map(_fields_of, rows_of(batch)))
            return out.getvalue()

        return _TextPart(path, "utf-8", text_of)


class JsonLinesFormat(FileFormat):
    """A JSON value per line; dataclasses and column batches become objects. What JSON does not know (dates …) is written as its ``str``."""

    suffix = ".jsonl"

    def open(self, path: str) -> PartWriter:
        def text_of(batch: Batch) -> str:
            values = map(_plain, batch.values) if isinstance(batch, RowBatch) else batch.data.to_pylist()
            return "".join([json.dumps(value, default=str, ensure_ascii=False) + "\n" for value in values])

        return _TextPart(path, "utf-8", text_of)


class ParquetFormat(FileFormat):
    """Parquet. Column batches bring their schema; rows need dicts, dataclasses or tuples, and take ``schema`` or what the first batch shows
    (tuples get columns f0, f1 …)."""

    suffix = ".parquet"

    def __init__(self, schema: pa.Schema | None = None, compression: str = "zstd") -> None:
        self._schema, self._compression = schema, compression

    def open(self, path: str) -> PartWriter:
        return _ParquetPart(path, self._schema, self._compression)


class _ParquetPart(PartWriter):
    """Gathers batches to row groups of a useful length."""

    GROUP_ROWS = 128 << 10

    def __init__(self, path: str, schema: Any, compression: str) -> None:
        self._path, self._schema, self._compression = path, schema, compression
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._rows = 0

    def write(self, batch: Batch) -> None:
        data = batch.data if isinstance(batch, ColumnBatch) else self._columns_of(batch.values)
        if self._schema is None:
            self._schema = data.schema
        self._waiting.append(data)
        self._rows += data.num_rows
        if self._rows >= self.GROUP_ROWS:
            self._write_group()

    @property
    def size(self) -> int:
        return os.path.getsize(self._path) if self._writer is not None else 0

    def _columns_of(self, values: list[Any]) -> Any:
        import pyarrow as pa

        if self._schema is None:
            self._schema = pa.Table.from_pylist([_record_of(value, None) for value in values]).schema
        try:
            return pa.RecordBatch.from_pylist([_record_of(value, self._schema.names) for value in values], schema=self._schema)
        except pa.ArrowException as error:
            raise ProgramError(f"records do not fit the Parquet schema ({self._schema.names}): {error}; give the sink schema=") from error

    def _write_group(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, self._schema, compression=self._compression)
        self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        if self._waiting:
            self._write_group()
        if self._writer is not None:
            self._writer.close()


def _names_of(value: Any) -> Sequence[str] | None:
    plain = _plain(value)
    return list(plain) if isinstance(plain, dict) else None


def _plain(value: Any) -> Any:
    """Dataclasses and named rows as dicts, the rest as it is."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(value, "as_dict") and getattr(value, "_fields", None):
        return value.as_dict()
    return value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else value


def _fields_of(value: Any) -> Sequence[Any]:
    plain = _plain(value)
    if isinstance(plain, dict):
        return list(plain.values())
    if isinstance(plain, (str, bytes)) or not hasattr(plain, "__iter__"):
        return [plain]
    return list(plain)


def _record_of(value: Any, names: Sequence[str] | None) -> dict[str, Any]:
    plain = _plain(value)
    if isinstance(plain, dict):
        return plain
    fields = _fields_of(plain)
    return dict(zip(names if names is not None else [f"f{index}" for index in range(len(fields))], fields))

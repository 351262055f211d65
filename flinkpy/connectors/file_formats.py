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
from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation
from flinkpy.common.types import Row
from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch, ColumnBatch
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
    the header line, else the names of the first record. Records with names put their fields under these; other names go by position."""

    suffix = ".csv"

    def __init__(self, columns: Sequence[str] | None = None, delimiter: str = ",", header: bool = True) -> None:
        self._columns, self._delimiter, self._header = columns, delimiter, header

    def open(self, path: str) -> PartWriter:
        fields = _Fields(self._columns)
        header_due = [self._header]

        def text_of(batch: Batch) -> str:
            out = io.StringIO()
            writer = csv.writer(out, delimiter=self._delimiter, lineterminator="\n")
            values = rows_of(batch)
            names = fields.begin(values[0])
            if header_due[0]:
                header_due[0] = False
                if names:
                    writer.writerow(names)
            writer.writerows(map(fields.of, values))
            return out.getvalue()

        return _TextPart(path, "utf-8", text_of)


class _Fields:
    """The fields of records, in the order of one header."""

    def __init__(self, columns: Sequence[str] | None) -> None:
        self._names = None if columns is None else list(columns)
        self._given = columns is not None

    def begin(self, value: Any) -> list[str] | None:
        """The header; that of the first record, unless it was given."""
        if self._names is None:
            self._names = _names_of(value)
        return self._names

    def of(self, value: Any) -> Sequence[Any]:
        plain, names = _plain(value), self._names
        if not isinstance(plain, dict) or names is None or list(plain) == names:
            return _fields_of(plain)
        if plain.keys() <= set(names) or (self._given and plain.keys() >= set(names)):
            return [plain.get(name) for name in names]
        if self._given:
            return list(plain.values())
        raise ProgramError(f"{value!r:.100} has fields that the file's first record has not ({', '.join(map(str, names))}); "
                           "name all of them with CsvFormat(columns=[...])")


class JsonLinesFormat(FileFormat):
    """A JSON value per line; dataclasses, rows and column batches become objects. What JSON does not know (dates …) is written as its ``str``."""

    suffix = ".jsonl"

    def open(self, path: str) -> PartWriter:
        def text_of(batch: Batch) -> str:
            return "".join([json.dumps(_plain(value), default=_known_to_json, ensure_ascii=False) + "\n" for value in rows_of(batch)])

        return _TextPart(path, "utf-8", text_of)


class ParquetFormat(FileFormat):
    """Parquet. Column batches bring their schema; rows need dicts, dataclasses or tuples, and take ``schema``, their declared type, or what the first
    batch shows (tuples get columns f0, f1 …). With ``schema``, columns are picked by name and cast."""

    suffix = ".parquet"

    def __init__(self, schema: pa.Schema | None = None, compression: str = "zstd") -> None:
        self._schema, self._compression = schema, compression

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        if self._schema is not None or not isinstance(type_info, RowTypeInfo):
            return self
        from flinkpy.table.arrow_types import arrow_schema

        try:
            return ParquetFormat(arrow_schema(type_info), self._compression)
        except ProgramError:  # a field Arrow has no type for: the values have to show one
            return self

    def open(self, path: str) -> PartWriter:
        return _ParquetPart(path, self._schema, self._compression)


class _ParquetPart(PartWriter):
    """Gathers batches to row groups of a useful length."""

    GROUP_ROWS = 128 << 10

    def __init__(self, path: str, schema: Any, compression: str) -> None:
        self._path, self._schema, self._compression = path, schema, compression
        self._is_shown = schema is None  # by the first batch
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._rows = 0

    def write(self, batch: Batch) -> None:
        data = self._fitting(batch.data) if isinstance(batch, ColumnBatch) else self._columns_of(batch.values)
        self._waiting.append(data)
        self._rows += data.num_rows
        if self._rows >= self.GROUP_ROWS:
            self._write_group()

    def _fitting(self, data: Any) -> Any:
        if self._schema is None:
            self._schema = data.schema
        if data.schema.equals(self._schema):
            return data
        import pyarrow as pa

        from flinkpy.table.conversion import conformed

        try:
            if self._is_shown and len(data.schema) > len(self._schema):
                raise pa.ArrowInvalid(f"the first batch had {', '.join(self._schema.names)}, this one has {', '.join(data.schema.names)}")
            return conformed(data, self._schema)
        except pa.ArrowException as error:
            raise ProgramError(f"columns do not fit the Parquet schema: {error}; give the sink schema=") from error

    @property
    def size(self) -> int:
        return os.path.getsize(self._path) if self._writer is not None else 0

    def _columns_of(self, values: list[Any]) -> Any:
        import pyarrow as pa

        from flinkpy.table.conversion import array_of

        if self._schema is None:
            shown = [_shown(_record_of(value, None)) for value in values]
            names = dict.fromkeys(name for record in shown for name in record)
            self._schema = pa.schema([(name, pa.array([record.get(name) for record in shown]).type) for name in names])
        names = self._schema.names
        records = [_record_of(value, names) for value in values]
        if self._is_shown:
            for record in records:
                if not record.keys() <= set(names):
                    raise ProgramError(f"{record!r:.100} has fields that the first records have not ({', '.join(names)}); give the sink schema=")
        try:
            return pa.RecordBatch.from_arrays(
                [array_of([record.get(field.name) for record in records], field.type) for field in self._schema], schema=self._schema)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ProgramError(f"records do not fit the Parquet schema ({names}): {error}; give the sink schema=") from error

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


def _known_to_json(value: Any) -> Any:
    plain = _plain(value)
    return list(value) if isinstance(plain, Row) else str(value) if plain is value else plain


def _names_of(value: Any) -> list[str] | None:
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
    if names is not None and len(fields) > len(names):
        raise ProgramError(f"{value!r:.100} has {len(fields)} fields, the file {len(names)} columns: {', '.join(names)}")
    return dict(zip(names if names is not None else [f"f{index}" for index in range(len(fields))], fields))


def _shown(value: Any) -> Any:
    """The value in forms whose type Arrow can tell."""
    plain = _plain(value)
    if isinstance(plain, dict):
        return {name: _shown(each) for name, each in plain.items()}
    return list(map(_shown, plain)) if isinstance(plain, (list, tuple, Row)) else plain

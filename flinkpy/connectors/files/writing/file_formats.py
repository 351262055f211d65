"""The formats of part files: text lines, CSV, JSON lines, Parquet and Avro. Each writes rows and
columns."""

from __future__ import annotations

import codecs
import copy
import io
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal

from flinkpy.common.serialization import BulkWriterFactory, Encoder
from flinkpy.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from flinkpy.connectors.files.encodings import check_encoding
from flinkpy.connectors.files.paths import SUFFIXES
from flinkpy.connectors.files.writing.lines.csv_lines import CsvLines
from flinkpy.connectors.files.writing.lines.declared_records import DeclaredRecords
from flinkpy.connectors.files.writing.parquet_part import ParquetPart
from flinkpy.connectors.files.writing.part_writer import OutputFile
from flinkpy.connectors.files.writing.part_writer import PartWriter as PartWriter
from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.formats.record_fields import RecordFields
from flinkpy.formats.text_values import json_text

if TYPE_CHECKING:
    import pyarrow as pa


Compression = Literal["gzip", "bz2", "zstd", "lz4", "brotli"]
_NAME_ALL_COLUMNS = (
    "name all fields that records may have with CsvFormat(columns=[...]): those that a record does "
    "not have are empty"
)
_PARQUET_CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")


def compressed_suffix(compression: str | None) -> str:
    """What the names of files with this compression end in. Raises ProgramError for one that Arrow
    does not have.

    >>> compressed_suffix("gzip")
    '.gz'
    """
    if compression is None:
        return ""
    found = [suffix for suffix, name in SUFFIXES.items() if name == compression]
    if not found:
        raise ProgramError(
            f"compression is one of {', '.join(SUFFIXES.values())}, or None; this is "
            f"{compression!r:.80}"
        )
    return found[0]


class FileFormat(BulkWriterFactory):
    """Makes part writers; can be pickled."""

    suffix: str

    @property
    def can_be_concatenated(self) -> bool:
        """Whether several files, one behind the other, are one file of this format."""
        return True

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        """This format, adapted to a stream of that declared type."""
        return self

    def without_columns(self, names: Collection[str]) -> FileFormat:
        """This format, for records without these columns of its."""
        return self

    @abstractmethod
    def open(self, file: OutputFile) -> PartWriter:
        """Begins to write this new file."""


class _EncodedPart(PartWriter):
    """Writes batches that a function turns into bytes, compressed if ``compression`` says so."""

    def __init__(
        self, file: OutputFile, bytes_of: Callable[[Batch], bytes], compression: str | None = None
    ) -> None:
        self._file = file
        self._bytes_of = bytes_of
        self._compressed = compression is not None
        self._out: Any = file
        if compression is not None:
            import pyarrow as pa

            self._out = pa.CompressedOutputStream(file, compression)

    def write(self, batch: Batch) -> None:
        self._out.write(self._bytes_of(batch))

    @property
    def size(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        if not self._compressed:  # a compressor that is flushed often compresses badly
            self._file.flush()

    def close(self) -> None:
        try:
            if self._compressed:
                self._out.close()
        finally:
            self._file.close()


def _text_part(
    file: OutputFile, charset: str, text_of: Callable[[Batch], str], compression: str | None
) -> PartWriter:
    # writes the byte order mark of UTF-16 once
    encode = codecs.getincrementalencoder(charset)().encode

    def bytes_of(batch: Batch) -> bytes:
        try:
            return encode(text_of(batch))
        except UnicodeEncodeError as error:
            raise ProgramError(
                f"{error.object[error.start : error.end]!r:.40} cannot be written in "
                f"{charset}; "
                "name another encoding"
            ) from error

    return _EncodedPart(file, bytes_of, compression)


def _has_mark(encoding: str) -> bool:
    """Whether each file of this encoding begins with a byte order mark."""
    return bool("".encode(encoding))


class TextFormat(FileFormat):
    """One line per value: ``str(value)``, or what ``encode`` returns for it. ``compression`` is one
    of the names of Arrow's codecs, such as ``"gzip"``."""

    def __init__(
        self,
        encode: Callable[[Any], str] = str,
        charset: str = "utf-8",
        *,
        compression: Compression | None = None,
    ) -> None:
        check_encoding(charset)
        self._encode = encode
        self._charset = charset
        self._compression = compression
        self.suffix = ".txt" + compressed_suffix(compression)

    @property
    def can_be_concatenated(self) -> bool:
        return not _has_mark(self._charset)

    def open(self, file: OutputFile) -> PartWriter:
        encode = self._encode
        return _text_part(
            file,
            self._charset,
            lambda batch: "".join([f"{encode(value)}\n" for value in rows_of(batch)]),
            self._compression,
        )


class EncodedFormat(FileFormat):
    """The bytes that an encoder returns for each value, including any line end."""

    def __init__(self, encoder: Encoder, suffix: str = "") -> None:
        self._encoder, self.suffix = encoder, suffix

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        return EncodedFormat(self._encoder.of_type(type_info), self.suffix)

    def open(self, file: OutputFile) -> PartWriter:
        encode = self._encoder.encode
        return _EncodedPart(
            file, lambda batch: b"".join([encode(value) for value in rows_of(batch)])
        )


class CsvFormat(FileFormat):
    """CSV with one line per record. Tuples, lists, rows, dicts and dataclasses are written by
    field; any other value is a single field. ``columns`` are the header line; by default it has the
    field names of the first record. Fields of records with names go to the columns of those names,
    other fields, and f0, f1 and so on, to columns by position. A record with a field that is no
    column fails the job. A field that a record does not have is None if ``columns`` are given;
    without them it fails the job.

    None is written as ``null_value`` without quotes. The same text as a value, and empty text, is
    quoted, so that readers can tell them apart. ``quoting_style`` is ``"needed"`` or
    ``"all_valid"``, which quotes everything but None. A quote within quotes is doubled; with
    ``escape``, such as ``"\\\\"``, this character stands before it, and before itself. Bytes are
    written as Base64, nested values as JSON. ``compression`` is one of the names of Arrow's codecs,
    such as ``"gzip"``. Raises ProgramError for invalid arguments."""

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        delimiter: str = ",",
        header: bool = True,
        *,
        null_value: str = "",
        encoding: str = "utf-8",
        quoting_style: Literal["needed", "all_valid"] = "needed",
        compression: Compression | None = None,
        escape: str | None = None,
    ) -> None:
        if not isinstance(delimiter, str) or len(delimiter) != 1:
            raise ProgramError(f"CsvFormat: delimiter is one character, this is {delimiter!r:.80}")
        if not isinstance(null_value, str) or any(
            letter in null_value for letter in ('"', "\n", "\r", delimiter)
        ):
            raise ProgramError(
                "CsvFormat: null_value is text without quotes, line ends and delimiters, "
                f"this is {null_value!r:.80}"
            )
        _check_escape(escape, delimiter, null_value)
        if quoting_style not in ("needed", "all_valid"):
            raise ProgramError(
                'CsvFormat: quoting_style is "needed" or "all_valid", this is '
                f"{quoting_style!r:.80}"
            )
        check_encoding(encoding)
        self._columns = columns
        self._header = header
        self._encoding = encoding
        self._compression = compression
        if isinstance(columns, str):
            raise ProgramError(f"CsvFormat: columns are a list of names, this is {columns!r:.80}")
        if not isinstance(header, bool):
            raise ProgramError(f"CsvFormat: header is True or False, this is {header!r:.80}")
        self.suffix = ".csv" + compressed_suffix(compression)
        self._declared: TypeInformation | None = None  # of rows or tuples
        self._lines = CsvLines(delimiter, null_value, quoting_style == "all_valid", escape)

    @property
    def can_be_concatenated(self) -> bool:
        return not self._header and not _has_mark(self._encoding)

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        row_type = _row_type(type_info)
        if row_type is None:
            return self
        form = copy.copy(self)
        form._declared = type_info
        if form._columns is None:
            form._columns = list(row_type.field_names)
        return form

    def without_columns(self, names: Collection[str]) -> FileFormat:
        if self._columns is None or not set(names) & set(self._columns):
            return self
        form = copy.copy(self)
        form._columns = [name for name in self._columns if name not in names]
        return form

    def open(self, file: OutputFile) -> PartWriter:
        fields = RecordFields(self._columns, "CSV file", _NAME_ALL_COLUMNS)
        lines, exact = self._lines, _exact(self._declared)
        header_due = [self._header]

        def text_of(batch: Batch) -> str:
            if isinstance(batch, ColumnBatch) and batch.data.num_columns:
                columns = dict(zip(batch.data.schema.names, batch.data.columns))
                return header(columns) + lines.of_columns(
                    _present(fields.of_columns(columns), len(batch))
                )
            values = exact(rows_of(batch))
            return header(values[0]) + lines.of(list(map(fields.of, values)))

        def header(record: object) -> str:
            names = fields.begin(record)
            is_due, header_due[0] = header_due[0], False
            return lines.header(names) if is_due and names else ""

        return _text_part(file, self._encoding, text_of, self._compression)


def _check_escape(escape: str | None, delimiter: str, null_value: str) -> None:
    if escape is None:
        return
    if (
        not isinstance(escape, str)
        or len(escape.encode()) != 1
        or escape in (delimiter, '"', "\n", "\r")
    ):
        raise ProgramError(
            "CsvFormat: escape is one character that is not the delimiter, a quote or a line end, "
            f"or None; this is {escape!r:.80}"
        )
    if escape in null_value[1:] or null_value == escape:
        raise ProgramError(
            f"CsvFormat: null_value={null_value!r:.80} cannot be read back where {escape!r} "
            'escapes; it may begin with it, as "\\N" does'
        )


def _present(columns: Sequence[Any], rows: int) -> list[Any]:
    """The columns; of nulls, where one is None."""
    import pyarrow as pa

    return [pa.nulls(rows) if column is None else column for column in columns]


class JsonLinesFormat(FileFormat):
    """One JSON value per line; dataclasses, rows and the rows of column batches become objects.

    Values that JSON does not have are written as Flink and Spark do: bytes as Base64; NaN and
    infinities as ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``; dates, times and decimals as text.
    numpy's numbers become numbers. Sets, and objects without a text form, raise ProgramError.
    ``compression`` is one of the names of Arrow's codecs, such as ``"gzip"``."""

    def __init__(self, *, compression: Compression | None = None) -> None:
        self._compression = compression
        self._tuple_names: list[str] | None = None
        self._declared: TypeInformation | None = None  # of rows or tuples
        self.suffix = ".jsonl" + compressed_suffix(compression)

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        if _row_type(type_info) is None:
            return self
        form = copy.copy(self)
        form._declared = type_info
        if isinstance(type_info, TupleTypeInfo):
            form._tuple_names = list(RowTypeInfo(type_info.field_types).field_names)
        return form

    def open(self, file: OutputFile) -> PartWriter:
        exact = _exact(self._declared)
        return _text_part(
            file,
            "utf-8",
            lambda batch: _json_lines(batch, exact, self._tuple_names),
            self._compression,
        )


def _exact(type_info: TypeInformation | None) -> Callable[[list[Any]], list[Any]]:
    """What makes records those of their declared type."""
    if isinstance(type_info, (RowTypeInfo, TupleTypeInfo)):
        return DeclaredRecords(type_info).of
    return lambda records: records


def _json_lines(
    batch: Batch, exact: Callable[[list[Any]], list[Any]], tuple_names: list[str] | None
) -> str:
    if isinstance(batch, ColumnBatch) and batch.data.num_columns:
        from flinkpy.connectors.files.writing.lines.json_objects import json_lines

        try:
            return json_lines(batch.data)
        except (TypeError, ValueError):
            pass  # the rows tell which field cannot be written
    values = exact(rows_of(batch))
    if tuple_names is not None:
        values = [
            dict(zip(tuple_names, value)) if type(value) is tuple else value for value in values
        ]
    return "".join([json_text(value) + "\n" for value in values])


class ParquetFormat(FileFormat):
    """Parquet. Column batches have a schema. Rows must be dicts, dataclasses or tuples; their
    columns come from ``schema``, from the stream's declared type, or from the first row (tuples get
    columns f0, f1 …); then the first 131,072 rows show their types. Columns are matched by name and
    cast. A row with a field that is no column fails the job. A field that a row does not have is
    null if ``schema`` is given and does not say ``nullable=False``; otherwise it fails the job.

    No value is changed: integers mixed with fractions become a column of floats, and a value that
    does not fit its column fails the job. Nested rows become structs with the fields of all
    records. Nested dicts become maps, as in PyFlink and Spark, or structs if their values have no
    common type."""

    suffix = ".parquet"

    def __init__(self, schema: pa.Schema | None = None, compression: str = "zstd") -> None:
        import pyarrow as pa

        if schema is not None and not isinstance(schema, pa.Schema):
            raise ProgramError(
                'ParquetFormat: schema is a pyarrow schema, such as pa.schema([("n", '
                f"pa.int64())]); this is {schema!r:.80}"
            )
        if compression is not None and str(compression).lower() not in _PARQUET_CODECS:
            raise ProgramError(
                f"ParquetFormat: compression is one of {', '.join(_PARQUET_CODECS)}; this is "
                f"{compression!r:.80}"
            )
        self._schema, self._compression = schema, compression

    @property
    def can_be_concatenated(self) -> bool:
        return False

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        schema = _declared_schema(self._schema, type_info)
        return self if schema is self._schema else ParquetFormat(schema, self._compression)

    def without_columns(self, names: Collection[str]) -> FileFormat:
        return (
            self
            if self._schema is None
            else ParquetFormat(_schema_without(self._schema, names), self._compression)
        )

    def open(self, file: OutputFile) -> PartWriter:
        return ParquetPart(file, self._schema, self._compression)


class AvroFormat(FileFormat):
    """Avro container files. Their columns come from ``schema`` or from the records, as those of
    Parquet files do; all may be null that are not declared otherwise. ``codec`` compresses:
    ``"null"``, ``"deflate"``, ``"bzip2"``, ``"snappy"``, ``"zstandard"`` (the last two need
    packages of their own). Needs the extra ``flinkpy[avro]``.

    >>> FileSink("out", AvroFormat(codec="null"))  # doctest: +SKIP
    """

    suffix = ".avro"

    def __init__(
        self,
        schema: pa.Schema | None = None,
        codec: Literal["null", "deflate", "bzip2", "snappy", "zstandard"] = "deflate",
    ) -> None:
        if codec not in ("null", "deflate", "bzip2", "snappy", "zstandard"):
            raise ProgramError(
                f"codec is one of null, deflate, bzip2, snappy, zstandard; this is {codec!r:.80}"
            )
        from flinkpy.connectors.files.writing.avro.avro_types import avro_schema
        from flinkpy.formats.avro.avro_schema import require_fastavro

        try:
            require_fastavro().writer(io.BytesIO(), "int", [0], codec=codec)
        except ValueError as error:  # a codec whose package is not installed, which fastavro names
            raise ProgramError(f"write_avro(codec={codec!r}): {error}") from None
        if schema is not None:
            avro_schema(schema)  # raises an error for a type that Avro does not have
        self._schema, self._codec = schema, codec

    @property
    def can_be_concatenated(self) -> bool:
        return False

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        schema = _declared_schema(self._schema, type_info)
        return self if schema is self._schema else AvroFormat(schema, self._codec)

    def without_columns(self, names: Collection[str]) -> FileFormat:
        return (
            self
            if self._schema is None
            else AvroFormat(_schema_without(self._schema, names), self._codec)
        )

    def open(self, file: OutputFile) -> PartWriter:
        from flinkpy.connectors.files.writing.avro.avro_part import AvroPart

        return AvroPart(file, self._schema, self._codec)


def _schema_without(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([field for field in schema if field.name not in names], schema.metadata)


def _declared_schema(
    given: pa.Schema | None, type_info: TypeInformation | None
) -> pa.Schema | None:
    """The schema that was given, or that of the stream's declared type, or None: the values show
    it."""
    row_type = _row_type(type_info)
    if given is not None or row_type is None:
        return given
    from flinkpy.columns.values.arrow_types import arrow_schema

    try:
        return arrow_schema(row_type)
    except ProgramError:  # Arrow has no type for a field
        return None


def _row_type(type_info: TypeInformation | None) -> RowTypeInfo | None:
    """The declared type as that of a row: the fields of a tuple are f0, f1 and so on. None for
    values without fields."""
    return (
        RowTypeInfo(type_info.field_types)
        if isinstance(type_info, TupleTypeInfo)
        else type_info
        if isinstance(type_info, RowTypeInfo)
        else None
    )

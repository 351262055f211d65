"""The formats of part files: text lines, CSV, JSON lines and Parquet. Each writes rows and columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from flinkpy.common.serialization import BulkWriterFactory, Encoder
from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation
from flinkpy.connectors.part_files.csv_lines import CsvLines, check_encoding
from flinkpy.connectors.part_files.parquet_part import ParquetPart
from flinkpy.connectors.part_files.part_writer import PartWriter as PartWriter
from flinkpy.connectors.part_files.text_values import fields_of, json_text, plain
from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa


class FileFormat(BulkWriterFactory):
    """Makes part writers; can be pickled."""

    suffix: str

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        """This format, adapted to a stream of that declared type."""
        return self

    @abstractmethod
    def open(self, path: str) -> PartWriter:
        """Begins a file at ``path``."""


class _TextPart(PartWriter):
    """Writes batches that a function turns into text."""

    def __init__(self, path: str, charset: str, text_of: Callable[[Batch], str]) -> None:
        self._file = open(path, "w", encoding=charset, newline="", buffering=256 << 10)  # noqa: SIM115  (closed in close)
        self._text_of = text_of

    def write(self, batch: Batch) -> None:
        self._file.write(self._text_of(batch))

    @property
    def size(self) -> int:
        return int(self._file.buffer.tell())  # type: ignore[attr-defined]  # a BufferedWriter; the stub does not say so

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class TextFormat(FileFormat):
    """One line per value: ``str(value)``, or what ``encode`` returns for it."""

    suffix = ".txt"

    def __init__(self, encode: Callable[[Any], str] = str, charset: str = "utf-8") -> None:
        self._encode, self._charset = encode, charset

    def open(self, path: str) -> PartWriter:
        encode = self._encode
        return _TextPart(path, self._charset, lambda batch: "".join([f"{encode(value)}\n" for value in rows_of(batch)]))


class EncodedFormat(FileFormat):
    """The bytes that an encoder returns for each value, including any line end."""

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
    """CSV with one line per record. Tuples, lists, rows, dicts and dataclasses are written by field; any other value
    is a single field. ``columns`` are the header line; by default it has the field names of the first record. Fields
    of records with names go to the columns of those names, other fields to columns by position.

    None is written as ``null_value`` without quotes. The same text as a value, and empty text, is quoted, so that
    readers can tell them apart. ``quoting_style`` is ``"needed"`` or ``"all_valid"``, which quotes everything but
    None. Bytes are written as Base64, nested values as JSON. Raises ProgramError for invalid arguments.
    """

    suffix = ".csv"

    def __init__(self, columns: Sequence[str] | None = None, delimiter: str = ",", header: bool = True, *, null_value: str = "",
                 encoding: str = "utf-8", quoting_style: Literal["needed", "all_valid"] = "needed") -> None:
        if not isinstance(null_value, str) or any(letter in null_value for letter in ('"', "\n", "\r", delimiter)):
            raise ProgramError(f"CsvFormat: null_value is text without quotes, line ends and delimiters, this is {null_value!r:.80}")
        if quoting_style not in ("needed", "all_valid"):
            raise ProgramError(f'CsvFormat: quoting_style is "needed" or "all_valid", this is {quoting_style!r:.80}')
        check_encoding(encoding)
        self._columns, self._header, self._encoding = columns, header, encoding
        self._lines = CsvLines(delimiter, null_value, quoting_style == "all_valid")

    def open(self, path: str) -> PartWriter:
        fields, lines = _Fields(self._columns), self._lines
        header_due = [self._header]

        def text_of(batch: Batch) -> str:
            values = rows_of(batch)
            names = fields.begin(values[0])
            head = ""
            if header_due[0]:
                header_due[0] = False
                head = lines.header(names) if names else ""
            return head + lines.of(list(map(fields.of, values)))

        return _TextPart(path, self._encoding, text_of)


class _Fields:
    """Puts the fields of records into the order of the header."""

    def __init__(self, columns: Sequence[str] | None) -> None:
        self._names = None if columns is None else list(columns)
        self._given = columns is not None

    def begin(self, value: Any) -> list[str] | None:
        """The names in the header: the given ones, or those of the first record."""
        if self._names is None:
            record = plain(value)
            self._names = list(record) if isinstance(record, dict) else None
        return self._names

    def of(self, value: Any) -> Sequence[Any]:
        record, names = plain(value), self._names
        if not isinstance(record, dict) or names is None or list(record) == names:
            return fields_of(record)
        if record.keys() <= set(names) or (self._given and record.keys() >= set(names)):
            return [record.get(name) for name in names]
        if self._given:
            return list(record.values())
        raise ProgramError(f"{value!r:.100} has fields that the file's first record has not ({', '.join(map(str, names))}); "
                           "name all of them with CsvFormat(columns=[...])")


class JsonLinesFormat(FileFormat):
    """One JSON value per line; dataclasses, rows and the rows of column batches become objects.

    Values that JSON does not have are written as Flink and Spark do: bytes as Base64; NaN and infinities as
    ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``; dates, times and decimals as text. numpy's numbers become numbers.
    Sets, and objects without a text form, raise ProgramError.
    """

    suffix = ".jsonl"

    def open(self, path: str) -> PartWriter:
        return _TextPart(path, "utf-8", lambda batch: "".join([json_text(value) + "\n" for value in rows_of(batch)]))


class ParquetFormat(FileFormat):
    """Parquet. Column batches have a schema. Rows must be dicts, dataclasses or tuples; their columns come from
    ``schema``, from the stream's declared type, or from what the first 131,072 rows show (tuples get columns f0, f1
    …). With ``schema``, columns are selected by name and cast.

    No value is changed: integers mixed with fractions become a column of floats, and a value that does not fit its
    column fails the job. Nested rows become structs with the fields of all records. Nested dicts become maps, as in
    PyFlink and Spark, or structs if their values have no common type.
    """

    suffix = ".parquet"

    def __init__(self, schema: pa.Schema | None = None, compression: str = "zstd") -> None:
        self._schema, self._compression = schema, compression

    def of_type(self, type_info: TypeInformation | None) -> FileFormat:
        if self._schema is not None or not isinstance(type_info, RowTypeInfo):
            return self
        from flinkpy.columns.values.arrow_types import arrow_schema

        try:
            return ParquetFormat(arrow_schema(type_info), self._compression)
        except ProgramError:  # Arrow has no type for a field, so the values must show it
            return self

    def open(self, path: str) -> PartWriter:
        return ParquetPart(path, self._schema, self._compression)

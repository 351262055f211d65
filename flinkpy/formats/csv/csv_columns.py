"""CSV messages as columns.

A batch of messages is joined into lines for Arrow's CSV reader. What it refuses, and what it might
read in another way than rows do, is decoded one by one. Rows are the specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from flinkpy.columns.values.conversion import python_values, without_views
from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.errors import ProgramError
from flinkpy.formats.column_types import declared_type, schema_and_type, time_texts
from flinkpy.formats.csv.csv_cells import Dialect, cell_of
from flinkpy.formats.csv.csv_rows import CsvRowDeserializationSchema, csv_row_type
from flinkpy.formats.csv.csv_types import cell_parser, cell_writer
from flinkpy.formats.decoded_rows import ArrowDecoder
from flinkpy.formats.port import ColumnarEncoder
from flinkpy.formats.text_columns import csv_table


def dialect_of(
    where: str,
    delimiter: str,
    quote: str | None,
    escape: str | None,
    null_literal: str,
    array_delimiter: str,
    line_end: str = "\n",
) -> Dialect:
    """The checked dialect. Raises ProgramError for characters that cannot be told apart."""
    dialect = Dialect(delimiter, quote, escape, null_literal, array_delimiter, line_end)
    dialect.check(where)
    return dialect


class CsvColumnarDecoder(ArrowDecoder):
    """Lines of CSV as columns of a schema, or of a declared row type.

    >>> from flinkpy.common import Types
    >>> decoder = CsvColumnarDecoder(Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]))
    >>> decoder.decode([b"1,x", b',""']).to_pydict()
    {'a': [1, None], 'b': ['x', '']}
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        delimiter: str = ",",
        quote: str | None = '"',
        escape: str | None = None,
        null_literal: str = "",
        array_delimiter: str = ";",
    ) -> None:
        self.schema, found = schema_and_type(schema, "CsvColumnarDecoder")
        self._type = csv_row_type(found, "CsvColumnarDecoder")
        self._dialect = dialect_of(
            "CsvColumnarDecoder", delimiter, quote, escape, null_literal, array_delimiter
        )
        self._rows = CsvRowDeserializationSchema(self._type, self._dialect)
        self._columns = [
            _column_reader(field, each, self._dialect)
            for field, each in zip(self.schema, self._type.field_types)
        ]
        self._read_as = {f"{at}": read_as for at, (read_as, _) in enumerate(self._columns)}
        self._has_integers = any(map(pa.types.is_integer, self.schema.types))

    def _columns_by_arrow(self, messages: Sequence[bytes | None]) -> Sequence[Any] | None:
        block = _joined(messages) if None not in messages else None
        # Arrow has hexadecimal integers
        if block is None or (self._has_integers and b"0x" in block.lower()):
            return None
        table = self._read(block)
        if table.num_rows != len(messages):
            return None
        [batch] = table.combine_chunks().to_batches()
        return [convert(column) for column, (_, convert) in zip(batch.columns, self._columns)]

    def _read(self, block: bytes) -> Any:
        dialect = self._dialect
        options = arrow_csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote or False,
            escape_char=dialect.escape or False,
            newlines_in_values=True,
            ignore_empty_lines=False,
        )
        conversion = arrow_csv.ConvertOptions(
            column_types=self._read_as,
            null_values=[dialect.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=_TRUE,
            false_values=_FALSE,
        )
        reading = arrow_csv.ReadOptions(
            use_threads=False, block_size=len(block) + 1, column_names=list(self._read_as)
        )
        return csv_table(
            block, read_options=reading, parse_options=options, convert_options=conversion
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _decoder, (self._type, self.schema, self._dialect)


def _joined(messages: Sequence[bytes | None]) -> bytes | None:
    """The messages as lines; None if there are line ends inside them.

    If the reader finds as many rows as there are lines, no row goes beyond its message.
    """
    block = b"%b\n" % b"\n".join(messages)  # type: ignore[arg-type]  # none of them is None
    if block.count(b"\n") != len(messages) or b"\r" in block:
        lines = [
            message[:-2]
            if message.endswith(b"\r\n")
            else message[:-1]
            if message.endswith((b"\n", b"\r"))
            else message
            for message in messages
            if message is not None
        ]
        block = b"%b\n" % b"\n".join(lines)
        if block.count(b"\n") != len(messages) or b"\r" in block:
            return None
    # Arrow takes an empty line for nulls in all columns
    return None if block.startswith(b"\n") or b"\n\n" in block else block


_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]


def _decoder(type_info: object, schema: pa.Schema, dialect: Dialect) -> CsvColumnarDecoder:
    options: dict[str, Any] = dict(
        delimiter=dialect.delimiter,
        quote=dialect.quote,
        escape=dialect.escape,
        null_literal=dialect.null,
        array_delimiter=dialect.array_delimiter,
    )
    made = CsvColumnarDecoder(type_info, **options)
    return made if made.schema.equals(schema) else CsvColumnarDecoder(schema, **options)


def _column_reader(
    field: pa.Field, type_info: TypeInformation, dialect: Dialect
) -> tuple[Any, Callable[[Any], Any]]:
    """The type that Arrow reads the field as, and what makes the column of it."""
    kind = field.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return kind, lambda column: column
    if pa.types.is_floating(kind):
        return (
            pa.float64(),
            lambda column: column if pa.types.is_float64(kind) else column.cast(kind),
        )
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return pa.string(), lambda column: column.cast(kind)
    parse = cell_parser(type_info, dialect)
    return pa.string(), lambda column: array_of(
        [None if text is None else parse(text) for text in column.to_pylist()], kind, field.name
    )


_WRITTEN_BY_ARROW = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_null,
)


class CsvColumnarEncoder(ColumnarEncoder):
    """The rows of a batch as lines of CSV, as ``CsvRowSerializationSchema`` writes rows.

    >>> CsvColumnarEncoder(line_delimiter="").encode(
    ...     pa.RecordBatch.from_pydict({"a": [1, None], "b": ["x", "y, z"]})
    ... )
    [b'1,x', b',"y, z"']
    """

    def __init__(
        self,
        *,
        delimiter: str = ",",
        quote: str | None = '"',
        escape: str | None = None,
        null_literal: str = "",
        array_delimiter: str = ";",
        line_delimiter: str = "\n",
    ) -> None:
        self._dialect = dialect_of(
            "CsvColumnarEncoder",
            delimiter,
            quote,
            escape,
            null_literal,
            array_delimiter,
            line_delimiter,
        )

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        if not batch.num_columns:
            raise ProgramError("a line of CSV has at least one field, and the batch has no columns")
        batch = without_views(batch)
        cells = [
            self._cells(column, field.name) for field, column in zip(batch.schema, batch.columns)
        ]
        lines = (
            pc.binary_join_element_wise(*cells, self._dialect.delimiter)
            if len(cells) > 1
            else cells[0]
        )
        encoded: list[bytes] = (
            pc.binary_join_element_wise(lines, self._dialect.line_end, "")
            .cast(pa.binary())
            .to_pylist()
        )
        return encoded

    def _cells(self, column: pa.Array, name: str) -> Any:
        dialect, kind = self._dialect, column.type
        if pa.types.is_boolean(kind):
            texts = pc.if_else(column, "true", "false")
        elif pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
            texts = time_texts(column)
        elif any(is_a(kind) for is_a in _WRITTEN_BY_ARROW):
            texts = column.cast(pa.string())
        else:
            texts = self._one_by_one(column, name)
        special = "".join(
            letter
            for letter in (dialect.delimiter, dialect.quote, dialect.escape, "\r\n")
            if letter is not None
        )
        pattern = "".join(f"\\x{{{ord(letter):x}}}" for letter in special)
        doubtful = pc.or_(
            pc.match_substring_regex(texts, f"[{pattern}]|^#|^$"), pc.equal(texts, dialect.null)
        )
        if pc.any(doubtful).as_py():
            texts = self._quoted(texts, name)
        return texts.fill_null(dialect.null)

    def _quoted(self, texts: pa.Array, name: str) -> Any:
        try:
            return pa.array(
                [
                    None if text is None else cell_of(text, self._dialect)
                    for text in texts.to_pylist()
                ],
                pa.string(),
            )
        except ValueError as error:
            raise ProgramError(f"column {name!r} cannot be written as CSV: {error}") from error

    def _one_by_one(self, column: pa.Array, name: str) -> Any:
        write = cell_writer(declared_type(column.type), self._dialect)
        try:
            return pa.array([write(value) for value in python_values(column)], pa.string())
        except (ValueError, TypeError) as error:
            raise ProgramError(f"column {name!r} cannot be written as CSV: {error}") from error

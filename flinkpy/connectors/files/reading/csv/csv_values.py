"""Records of CSV as columns, by Arrow's reader."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyarrow import csv

from flinkpy.columns.values.exact_casts import cast_exactly
from flinkpy.connectors.files.reading.csv.csv_options import CsvOptions
from flinkpy.connectors.files.reading.merged_schemas import floats_for_numbers
from flinkpy.connectors.files.reading.record_ends import OpenRecord, line_feeds_in
from flinkpy.formats.text_columns import (
    as_text,
    changed,
    csv_table,
    decoded,
    first_text,
    in_microseconds,
    is_of_bytes,
    nulls_in_required,
    refuse_rounded,
    rounded,
    with_large_floats,
)

_WHOLE_BLOCK = 1 << 30
_TIME_OF_DAY = re.compile(r"\d\d:\d\d(:\d\d(\.\d+)?)?")
_BEGINS_A_MOMENT = re.compile(r"\d{4}-\d\d-\d\d")


class CsvParser:
    """Reads blocks of records of a file with these columns. ``schema`` says their types, ``wanted``
    which are read.

    ``refuses_rounded``: whether a column of floats refuses whole numbers that no float equals."""

    def __init__(
        self,
        options: CsvOptions,
        names: Sequence[str],
        schema: pa.Schema | None,
        wanted: Sequence[str] | None = None,
        *,
        refuses_rounded: bool = False,
    ) -> None:
        self._options = options
        self._names = list(names)
        self._schema = schema
        self._wanted = wanted
        self._refuses_rounded = refuses_rounded
        # Arrow's options for ``read``, which is called often where lines are broken
        self._reading: dict[str, Any] | None = None
        self._read_as = (
            None if schema is None else changed(as_text(schema, is_of_bytes), in_microseconds)
        )
        self._is_read_otherwise = schema is not None and not schema.equals(self._read_as)
        self._quotes = options.quotes
        self._escaped_null = (
            None if options.escape is None else _null_that_begins_with(options.escape, options)
        )
        self._comment = None
        if options.comment is not None:
            self._comment = re.compile(rb"(?m)^" + re.escape(options.comment.encode()) + rb".*\n?")

    def shown_schema(self, block: bytes, *, lenient: bool) -> pa.Schema:
        """The types that these records show; ``lenient``: without those of more or fewer fields."""
        if not self._names:
            return pa.schema([])
        shown = self._parse(block, self._names, None, None, lenient=lenient)
        if len(set(self._names)) < len(self._names):  # which is refused later, if both are wanted
            return shown.schema
        large = {name for batch in shown.to_batches() for name in with_large_floats(batch)}
        fields = []
        for field in shown.schema:
            kinds = self._preferred(
                field.name, shown[field.name], block, lenient, field.name in large
            )
            fields.append(
                field.with_type(
                    next(
                        (kind for kind in kinds if self._reads(block, field.name, kind, lenient)),
                        field.type,
                    )
                )
            )
        return pa.schema(fields)

    def _preferred(
        self, name: str, column: Any, block: bytes, lenient: bool, is_large: bool
    ) -> list[Any]:
        """The types that a column takes, if it can, in place of the one that Arrow shows: values
        are likely to follow that need them."""
        kind = column.type
        first = first_text(column) if pa.types.is_string(kind) else ""
        if pa.types.is_timestamp(kind):
            return [pa.timestamp("us", kind.tz)]
        if _BEGINS_A_MOMENT.match(first):
            return [pa.timestamp("us"), pa.timestamp("us", "UTC")]
        if pa.types.is_time(kind) or _TIME_OF_DAY.fullmatch(first):
            return [pa.time64("us")]
        if is_large:
            texts = self._parse(
                block, self._names, pa.schema([(name, pa.string())]), [name], lenient=lenient
            )[name]
            return [pa.decimal128(38, 0)] if next(rounded(texts), None) is not None else []
        return []

    def _reads(self, block: bytes, name: str, kind: pa.DataType, lenient: bool) -> bool:
        """Whether the column can be read as this type."""
        try:
            self._parse(block, self._names, pa.schema([(name, kind)]), [name], lenient=lenient)
        except pa.ArrowInvalid:
            return False
        return True

    def read(self, block: bytes) -> Any:
        """The records as a table. Raises ArrowInvalid if one of them is broken."""
        if isinstance(block, OpenRecord) and not self._options.is_comment(block):
            raise pa.ArrowInvalid("a quote is not closed up to the end of the file")
        if self._reading is None:
            self._reading = self._arrow_options(self._names, self._read_as, self._wanted)
        try:
            read = self._parse(block, self._names, self._read_as, self._wanted, self._reading)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(self._told(str(error))) from error
        wrong = (
            None
            if self._read_as is None
            else nulls_in_required(
                read.columns, [self._read_as.field(name) for name in read.schema.names]
            )
        )
        if wrong is not None:
            raise pa.ArrowInvalid(wrong)
        if (place := self._quotes.escaped_by_backslash(block)) is not None:
            shown = block[max(0, place - 20) : place + 20]
            raise pa.ArrowInvalid(
                "a field has text behind its closing quote, and a backslash before that: "
                f"{shown!r}; "
                "if backslashes escape quotes, give escape='\\\\'"
            )
        if not self._options.newlines_in_values:
            self._refuse_line_ends_in_quotes(block, read.num_rows)
        if self._refuses_rounded and (
            large := {name for batch in read.to_batches() for name in with_large_floats(batch)}
        ):
            as_texts = self._parse(
                block, self._names, pa.schema([(name, pa.string()) for name in large]), list(large)
            )
            for name in large:
                refuse_rounded(as_texts.column(name), name)
        return (
            pa.Table.from_batches([self._as_declared(batch) for batch in read.to_batches()])
            if self._is_read_otherwise
            else read
        )

    def _told(self, why: str) -> str:
        """What Arrow says, with the column's name in place of its number."""
        why = re.sub(
            r"In CSV column #(\d+): (CSV conversion error)?",
            lambda found: f"column {self._names[int(found[1])]!r}: {found[2] or ''}",
            why,
        )
        return (
            f"{why}; name the file's encoding with encoding=, such as 'latin-1'"
            if "invalid UTF8" in why
            else why
        )

    def _refuse_line_ends_in_quotes(self, block: bytes, rows: int) -> None:
        """Raises ArrowInvalid if a quoted field goes on behind its line. Then there are fewer rows
        than lines, or it is in the last line. So the quotes are searched only where there are not
        as many rows as lines."""
        quotes = self._quotes
        last = block[block.rfind(b"\n", 0, len(block) - 1) + 1 :]
        if (
            rows == line_feeds_in(block)
            and (b"\r" not in block or block.count(b"\r") == block.count(b"\r\n"))
            and quotes.are_within_lines(last)
        ):
            return
        if not quotes.are_within_lines(
            block if self._comment is None else self._without_comments(block)
        ):
            raise pa.ArrowInvalid(
                "a quoted field goes on behind the end of its line, which "
                "newlines_in_values=False rules out"
            )

    def _as_declared(self, batch: pa.RecordBatch) -> Any:
        """The batch with the types of the schema. Raises ArrowInvalid for a value that has none."""
        assert self._schema is not None, "only what is declared is read otherwise"
        for at, name in enumerate(batch.schema.names):
            field = self._schema.field(name)
            if pa.types.is_timestamp(field.type) and not field.type.equals(
                batch.schema.field(at).type
            ):
                batch = batch.set_column(at, field, cast_exactly(batch.column(at), field))
        return decoded(batch, self._schema)

    def texts(self, record: bytes) -> list[str | None]:
        """The fields of one record, however many there are."""
        record += b"\n"  # without a line end, Arrow counts no fields
        count = self._parse(record, None, None, None).num_columns
        names = [f"f{at}" for at in range(count)]
        row = self._parse(record, names, pa.schema([(name, pa.string()) for name in names]), None)
        return [column[0].as_py() for column in row.columns]

    def mended(self, record: bytes) -> Any:
        """A broken record as a batch of one row, with null for what is missing or not of its
        column's type. What is behind a quote that is not closed is missing."""
        opened = self._options.quotes.never_closed(record)
        try:
            fields = self.texts(record) if opened is None else self.texts(record[:opened])[:-1]
        except (pa.ArrowException, IndexError):
            fields = []
        assert self._schema is not None, "only records of a known schema are mended"
        values = dict(zip(self._names, fields))
        columns = [
            self._value(values.get(name), self._schema.field(name)) for name in self._wanted or ()
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(self._wanted or ()))

    def _value(self, text: str | None, field: pa.Field) -> Any:
        if text is not None:
            quoted = f'"{text.replace(chr(34), chr(34) * 2)}"\n'.encode()
            alone = CsvParser(
                self._options_of_one,
                [field.name],
                pa.schema([field]),
                [field.name],
                refuses_rounded=self._refuses_rounded,
            )
            try:
                return alone.read(quoted).column(0).combine_chunks()
            except pa.ArrowException:
                pass
        return pa.nulls(1, field.type)

    @property
    def _options_of_one(self) -> CsvOptions:
        return replace(self._options, quote_char='"', delimiter=";", comment=None, escape=None)

    def _parse(
        self,
        block: bytes,
        names: Sequence[str] | None,
        types: Any,
        wanted: Sequence[str] | None,
        options: dict[str, Any] | None = None,
        *,
        lenient: bool = False,
    ) -> Any:
        if self._comment is not None:
            block = self._without_comments(block)
        if self._escaped_null is not None:
            block = self._escaped_null.sub(rb"\1\2\2\3", block)
        # strip() would copy a block that is not empty
        if names is not None and (not block or (block.isspace() and not block.strip(b"\r\n"))):
            fields = (
                types if types is not None else pa.schema([(name, pa.null()) for name in names])
            )
            return pa.schema(
                [fields.field(name) for name in wanted or names if name in fields.names]
            ).empty_table()
        return csv_table(
            block, **(options or self._arrow_options(names, types, wanted, lenient=lenient))
        )

    def _arrow_options(
        self,
        names: Sequence[str] | None,
        types: Any,
        wanted: Sequence[str] | None,
        *,
        lenient: bool = False,
    ) -> dict[str, Any]:
        options = self._options
        return {
            "read_options": csv.ReadOptions(
                use_threads=False,
                block_size=_WHOLE_BLOCK,
                column_names=names,
                autogenerate_column_names=names is None,
            ),
            "parse_options": csv.ParseOptions(
                delimiter=options.delimiter,
                quote_char=options.quote_char or False,
                escape_char=options.escape or False,
                newlines_in_values=True,
                invalid_row_handler=(lambda row: "skip") if lenient else None,
            ),
            "convert_options": csv.ConvertOptions(
                column_types=types,
                include_columns=wanted,
                include_missing_columns=True,
                null_values=options.null_values,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                decimal_point=options.decimal_point,
            ),
        }

    def _without_comments(self, block: bytes) -> bytes:
        assert self._comment is not None, "asked only where there are comments"
        if self._options.quote_char is None or self._options.quote_char.encode() not in block:
            return self._comment.sub(b"", block)
        ends = self._options.ends.all(block).tolist()
        records = [block[start:end] for start, end in zip([0, *ends], ends)]
        return b"".join([record for record in records if not self._options.is_comment(record)])


def _null_that_begins_with(escape: str, options: CsvOptions) -> re.Pattern[bytes] | None:
    """Finds fields such as ``\\N``, the null of MySQL and Hive, of which Arrow would take only the
    N."""
    names = [
        re.escape(text[1:].encode())
        for text in options.null_values
        if text.startswith(escape) and len(text) > 1
    ]
    mark, delimiter = re.escape(escape.encode()), re.escape(options.delimiter.encode())
    return (
        re.compile(
            rb"(?m)(^|%b)(%b)((?:%b)\r?(?:%b|$))"
            % (delimiter, mark, b"|".join(names), rb"(?=%b)" % delimiter)
        )
        if names
        else None
    )


def type_for_both(one: pa.DataType, other: pa.DataType) -> Any:
    """The type of a column that is shown as these two: that of both in one block. None for truth
    values and whole numbers, where it depends on the values."""
    for date, moment in ((one, other), (other, one)):
        if pa.types.is_date32(date) and pa.types.is_timestamp(moment) and moment.tz is None:
            return moment
    if {one, other} == {pa.bool_(), pa.int64()}:
        return None
    return floats_for_numbers(one, other) or pa.string()

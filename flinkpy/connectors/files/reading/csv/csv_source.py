"""CSV files as column batches, read by Arrow block by block. Files are cut only where no quoted
field has line ends."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.paths import FileInfo, PathArgument
from flinkpy.connectors.files.reading.broken_lines import (
    OnBroken,
    check_on_error,
    lines_before,
    read_blocks,
    read_first,
    when_read,
)
from flinkpy.connectors.files.reading.column_source import Item, RowsSplit
from flinkpy.connectors.files.reading.csv.csv_options import CsvOptions, texts
from flinkpy.connectors.files.reading.csv.csv_values import CsvParser, type_for_both
from flinkpy.connectors.files.reading.csv.open_csv import (
    SHOWN_BYTES,
    Header,
    blocks_behind,
    is_utf8,
    open_utf8,
    read_header,
)
from flinkpy.connectors.files.reading.inferred_source import InferredFileSource
from flinkpy.connectors.files.reading.merged_schemas import floats_for_numbers
from flinkpy.connectors.files.reading.text_files import DEFAULT_SPLIT_BYTES, cut_for_readers
from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS
from flinkpy.connectors.source_api.source import ReaderContext
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa


class CsvSource(InferredFileSource):
    """Reads CSV files with a header line. Types are those that the beginnings of all files show, or
    with ``infer_all`` the whole files, unless ``schema`` (a ``pyarrow.schema``) gives them. A file
    may have fewer columns than another one: they are null there.

    An unquoted field whose text is one of ``null_values`` is null; a quoted field is text. With
    ``quote_char`` None, quotes have no meaning. ``on_error`` says what happens to a line with more
    or fewer fields, or with a value that is not of its column's type: it fails the job
    (``"fail"``), its wrong values are null (``"null"``), or it is left out (``"skip"``).

    With ``newlines_in_values`` False, every line end ends a record, and one within quotes makes its
    line broken. Then UTF-8 files that are not compressed are cut into parts of about
    ``split_bytes``, which are read in parallel."""

    takes_error_policy = True

    def __init__(
        self,
        paths: PathArgument,
        columns: list[str] | None = None,
        schema: pa.Schema | None = None,
        delimiter: str = ",",
        header: bool = True,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        *,
        null_values: Sequence[str] = ("",),
        encoding: str = "utf-8",
        quote_char: str | None = '"',
        column_names: Sequence[str] | None = None,
        skip_rows: int = 0,
        comment: str | None = None,
        newlines_in_values: bool = True,
        split_bytes: int = DEFAULT_SPLIT_BYTES,
        on_error: OnBroken = "fail",
        watch_interval_ms: int | None = None,
        infer_all: bool = False,
        escape: str | None = None,
        decimal_point: str = ".",
    ) -> None:
        if not header and schema is None and column_names is None:
            raise ProgramError(
                "a CSV file without a header line needs schema= or column_names=, which name "
                "its columns"
            )
        names = None if column_names is None else texts(column_names, "column_names=")
        if names is None and schema is not None and not header:
            names = tuple(schema.names)
        self._options = CsvOptions(
            delimiter,
            header,
            names,
            skip_rows,
            comment,
            texts(null_values, "null_values="),
            encoding,
            quote_char,
            newlines_in_values,
            escape,
            decimal_point,
        )
        self._infer_all = infer_all
        self._split_bytes, self._on_error = split_bytes, check_on_error(on_error, schema)
        super().__init__(paths, columns, schema, batch_rows, watch_interval_ms)

    def _shown_schemas(self, file: FileInfo, most_bytes: int) -> Generator[pa.Schema, None, None]:
        import pyarrow as pa

        try:
            header = read_header(file, self._options)
            parser = CsvParser(self._options, header.names, None)
            is_lenient = self._on_error != "fail"
            with closing(
                blocks_behind(header, file, self._options, block_bytes=min(SHOWN_BYTES, most_bytes))
            ) as blocks:
                first = next(blocks, (header.end, b""))  # also a file of only a header has columns
                for place, block in chain([first], blocks):
                    schema = read_first(
                        block,
                        self._options.ends.all,
                        lambda records: parser.shown_schema(records, lenient=is_lenient),
                        lambda: lines_before(open_utf8(file, self._options.encoding), place),  # noqa: B023  (called at once)
                    )
                    yield self._of_text(schema, file)
        except (pa.ArrowException, OSError) as error:
            raise ProgramError(f"cannot read {file.path} as Csv: {error}") from error

    def _common(self, one: pa.DataType, other: pa.DataType) -> Any:
        return (
            type_for_both(one, other)
            if self._on_error == "fail"
            else floats_for_numbers(one, other) or one
        )

    def _check_names(self, shown: list[tuple[FileInfo, pa.Schema]]) -> None:
        if self._wanted is not None:
            return
        most_file, most = max(shown, key=lambda each: len(each[1]))
        for file, schema in shown:
            others = [name for name in schema.names if name not in most.names]
            if others:
                absent = [name for name in most.names if name not in schema.names]
                raise ProgramError(
                    f"{file.path} has the columns {_named(others)}, and {most_file.path} has "
                    f"{_named(absent)} instead; give schema=, "
                    "or columns= with those to read"
                )

    def _of_text(self, schema: pa.Schema, file: FileInfo) -> pa.Schema:
        """The schema. Raises ProgramError for a column of bytes, which Arrow makes of values that
        are not text in this encoding."""
        import pyarrow as pa

        for field in schema:
            if pa.types.is_binary(field.type):
                raise ProgramError(
                    f"column {field.name!r} of {file.path} is no {self._options.encoding} "
                    "text; name the file's encoding with "
                    "encoding=, such as 'latin-1'"
                )
        return schema

    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]:
        if not file.size:
            return
        if self._options.newlines_in_values or not is_utf8(self._options.encoding):
            yield RowsSplit(file.path, file)
            return
        for part in cut_for_readers(file, self._split_bytes, parallelism):
            yield RowsSplit(part.split_id, file, lines=part)

    def _items_of(self, split: RowsSplit, context: ReaderContext) -> Iterator[Item]:
        """The batches of blocks of lines, as long as these are records; from there on those of
        blocks of records, for which all quotes are searched."""
        import pyarrow as pa

        file, options = split.file, self._options
        header = read_header(file, options)
        self._refuse_absent(header)
        if options.newlines_in_values and options.escape is None:
            by_lines = replace(options, newlines_in_values=False)
            parser = self._parser(by_lines, header)
            for place, block in blocks_behind(header, file, by_lines):
                try:
                    read = parser.read(block)
                except pa.ArrowException:
                    header = replace(header, end=place)
                    break
                yield from read.to_batches()
            else:
                return
        parser = self._parser(options, header)
        yield from read_blocks(
            blocks_behind(header, file, options, split.lines),
            file.path,
            options.ends.all,
            parser.read,
            parser.mended,
            lambda place: lines_before(open_utf8(file, options.encoding), place),
            when_read(self._on_error, context.diverts),
        )

    def _parser(self, options: CsvOptions, header: Header) -> CsvParser:
        return CsvParser(
            options,
            header.names,
            self._full_schema,
            self._in_files.names,
            refuses_rounded=self._is_shown,
        )

    def _refuse_absent(self, header: Header) -> None:
        import pyarrow as pa

        if self._is_shown and self._wanted is None:
            added = [name for name in header.names if name not in self._full_schema.names]
            if added:
                raise pa.ArrowInvalid(
                    f"the first files have no column {_named(added)}; give schema=, or "
                    "columns= with those to read"
                )
            return
        absent = [name for name in self._in_files.names if name not in header.names]
        if absent and header.names:
            raise pa.ArrowInvalid(
                f"no column {_named(absent)}; there are {', '.join(header.names)}"
            )


def _named(columns: Iterable[str]) -> str:
    return ", ".join(map(repr, columns))

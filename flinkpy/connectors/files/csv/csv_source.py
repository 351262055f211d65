"""CSV files as column batches, read by Arrow block by block. Files are not cut, because a quoted field may contain line
ends."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

from flinkpy.connectors.files.broken_lines import BrokenLine, OnError, Refused, check_on_error, read_around
from flinkpy.connectors.files.column_source import ColumnFileSource, Item, RowsSplit
from flinkpy.connectors.files.csv.csv_options import CsvOptions, texts
from flinkpy.connectors.files.csv.csv_records import RecordBlocks, lines_in
from flinkpy.connectors.files.csv.csv_values import CsvParser
from flinkpy.connectors.files.paths import FileInfo, PathArgument, open_binary, open_seekable
from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS
from flinkpy.connectors.source_api.source import ReaderContext
from flinkpy.core.errors import ProgramError
from flinkpy.formats.text_columns import with_large_floats

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 20
STREAMED_BYTES = 256 << 10  # the fastest for Arrow's own stream
LONGEST_RECORD = 1 << 28


class CsvSource(ColumnFileSource):
    """Reads CSV files with a header line. Types are those that the first block of the first file shows, unless
    ``schema`` (a ``pyarrow.schema``) gives them.

    An unquoted field whose text is one of ``null_values`` is null; a quoted field is text. With ``quote_char`` None,
    quotes have no meaning. ``on_error`` says what happens to a line with more or fewer fields, or with a value that is
    not of its column's type: it fails the job (``"fail"``), its wrong values are null (``"null"``), or it is left out
    (``"skip"``).
    """

    takes_error_policy = True

    def __init__(
        self, paths: PathArgument, columns: list[str] | None = None, schema: pa.Schema | None = None, delimiter: str = ",",
        header: bool = True, batch_rows: int = DEFAULT_BATCH_ROWS, *, null_values: Sequence[str] = ("",), encoding: str = "utf-8",
        quote_char: str | None = '"', column_names: Sequence[str] | None = None, skip_rows: int = 0, comment: str | None = None,
        on_error: OnError = "fail", watch_interval_ms: int | None = None,
    ) -> None:
        if not header and schema is None and column_names is None:
            raise ProgramError("a CSV file without a header line needs schema= or column_names=, which name its columns")
        names = None if column_names is None else texts(column_names, "column_names=")
        if names is None and schema is not None and not header:
            names = tuple(schema.names)
        self._options = CsvOptions(delimiter, header, names, skip_rows, comment, texts(null_values, "null_values="), encoding, quote_char)
        self._on_error = check_on_error(on_error)
        super().__init__(paths, columns, schema, batch_rows, watch_interval_ms)

    def _first_schema(self, file: FileInfo) -> pa.Schema:
        import pyarrow as pa

        try:
            with closing(_OpenCsv(file, self._options)) as opened:
                block = next(opened.blocks, b"")
                schema = CsvParser(self._options, opened.names, None).shown_schema(block, lenient=self._on_error != "fail")
        except (pa.ArrowException, OSError) as error:
            raise ProgramError(f"cannot read {file.path} as Csv: {error}") from error
        return self._of_text(schema, file)

    def _of_text(self, schema: pa.Schema, file: FileInfo) -> pa.Schema:
        """The schema. Raises ProgramError for a column of bytes, which Arrow makes of values that are not text in
        this encoding."""
        import pyarrow as pa

        for field in schema:
            if pa.types.is_binary(field.type):
                raise ProgramError(f"column {field.name!r} of {file.path} is no {self._options.encoding} text; name the file's encoding with "
                                   "encoding=, such as 'latin-1'")
        return schema

    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]:
        if file.size:
            yield RowsSplit(file.path, file)

    def _items_of(self, split: RowsSplit, context: ReaderContext) -> Iterator[Item]:
        """The batches of Arrow's own stream of the file. What it refuses is read again block by block, to find the lines."""
        import pyarrow as pa

        given = 0
        try:
            for batch in self._streamed(split.file):
                if self._is_shown and with_large_floats(batch):
                    break  # which may have been rounded
                yield batch
                given += batch.num_rows
            else:
                return
        except pa.ArrowException:
            pass
        for item in self._by_blocks(split.file, "divert" if context.diverts else self._on_error):
            if isinstance(item, BrokenLine) or given == 0:
                yield item
                continue
            before, given = min(given, item.num_rows), max(given - item.num_rows, 0)
            if before < item.num_rows:
                yield item.slice(before)

    def _streamed(self, file: FileInfo) -> Iterator[Any]:
        with closing(_OpenCsv(file, self._options)) as opened:
            self._refuse_absent(opened)
            names, behind_header = opened.names, opened.bytes_before
            if not opened.is_plain:
                raise pa_invalid("Arrow's stream has no such options")
        parser = CsvParser(self._options, names, self._full_schema, self._in_files.names)
        with closing(open_binary(file) if file.compression else open_seekable(file)) as stream:
            stream.read(behind_header)
            yield from parser.streamed(stream, min(BLOCK_BYTES, STREAMED_BYTES))

    def _by_blocks(self, file: FileInfo, on_error: str) -> Iterator[Item]:
        with closing(_OpenCsv(file, self._options)) as opened:
            self._refuse_absent(opened)
            parser = CsvParser(self._options, opened.names, self._full_schema, self._in_files.names, refuses_rounded=self._is_shown)
            ends, line = self._options.ends, opened.lines_before
            for block in opened.blocks:
                for found in read_around(block, ends.all, parser.read):
                    if not isinstance(found, Refused):
                        yield from found.to_batches()
                        continue
                    broken = found.broken(file.path, line)
                    if on_error == "fail":
                        raise pa_invalid(f"line {broken.line}: {broken.why}")
                    yield parser.mended(found.data) if on_error == "null" else broken
                line += lines_in(block)

    def _refuse_absent(self, opened: _OpenCsv) -> None:
        absent = [name for name in self._in_files.names if name not in opened.names]
        if absent and opened.names:
            raise pa_invalid(f"no column {', '.join(map(repr, absent))}; there are {', '.join(opened.names)}")
        if self._is_shown and self._wanted is None:
            added = [name for name in opened.names if name not in self._full_schema.names]
            if added:
                raise pa_invalid(f"the first file has no column {', '.join(map(repr, added))}; give schema=, or columns= with those to read")


def pa_invalid(message: str) -> Exception:
    """Arrow's error of a file that cannot be read."""
    import pyarrow as pa

    error: Exception = pa.ArrowInvalid(message)
    return error


class _OpenCsv:
    """A CSV file behind its header: the names of its columns, how many lines came before, and blocks of its records in
    UTF-8."""

    def __init__(self, file: FileInfo, options: CsvOptions) -> None:
        self._stream, self._options = open_binary(file), options
        source: Any = self._stream
        if codecs.lookup(options.encoding).name not in ("utf-8", "utf-8-sig", "ascii"):
            source = _Recoded(self._stream, options.encoding)
        blocks = iter(RecordBlocks(source, options.ends, BLOCK_BYTES, LONGEST_RECORD))
        self.names: Sequence[str] = options.column_names or ()
        try:
            first = next(blocks, b"")
            mark = len(codecs.BOM_UTF8) if first.startswith(codecs.BOM_UTF8) else 0
            first = first[mark:]
            start = self._behind_header(first)
        except BaseException:
            self.close()
            raise
        self.lines_before, self.bytes_before = lines_in(first[:start]), mark + start
        # Arrow has no comments, and its own stream needs UTF-8
        self.is_plain = source is self._stream and options.comment is None
        self.blocks: Iterator[bytes] = chain([first[start:]] if start < len(first) else (), blocks)

    def _behind_header(self, first: bytes) -> int:
        """Where the records begin in the first block. Reads the names of the columns before."""
        options, start = self._options, 0
        for _ in range(options.skip_rows):
            start = first.find(b"\n", start) + 1 or len(first)
        while options.header and start < len(first):
            end = start + options.ends.first(first[start:])
            record, start = first[start:end], end
            if record.strip(b"\r\n") and not (options.comment is not None and record.startswith(options.comment.encode())):
                names = CsvParser(options, (), None).texts(record if record.endswith((b"\n", b"\r")) else record + b"\n")
                self.names = self.names or [name or "" for name in names]
                break
        return start

    def close(self) -> None:
        self._stream.close()


class _Recoded:
    """A stream of text in another encoding as UTF-8."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._stream, self._decode = stream, codecs.getincrementaldecoder(encoding)().decode
        self._done = False

    def read(self, size: int) -> bytes:
        import pyarrow as pa

        while not self._done:
            read = self._stream.read(max(size, 1))
            self._done = not read
            try:
                text = self._decode(read, final=self._done)
            except UnicodeDecodeError as error:
                raise pa.ArrowInvalid(f"{error.object[error.start:error.end]!r} is no {error.encoding} text; name the file's encoding with "
                                      "encoding=") from None
            if text:
                return text.encode()
        return b""

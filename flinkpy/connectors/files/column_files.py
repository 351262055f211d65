"""Parquet, CSV and JSON-lines files as column batches, read by Arrow.

All files of a source are read with the schema of the first file, or the given schema, so all batches of the stream
are alike. Parquet files are cut at row groups, JSON-lines files at line ends, and CSV files not at all, because a
quoted field may contain line ends.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.json_lines import parse_lines, refuse_rounded_numbers, shown_schema
from flinkpy.connectors.files.partition_folders import PartitionFolders
from flinkpy.connectors.files.paths import FileInfo, PathArgument, find_files, open_binary, open_seekable
from flinkpy.connectors.files.text_columns import as_text, decoded, is_of_bytes, refuse_rounded, with_large_floats
from flinkpy.connectors.files.text_files import DEFAULT_SPLIT_BYTES, FileSplit, LineBlocks, cut_file
from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS
from flinkpy.connectors.memory.ranges import cut
from flinkpy.connectors.part_files.csv_lines import check_encoding
from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.readers import SequentialReader, SplitReader
from flinkpy.connectors.source_api.source import Boundedness, ReaderContext, Source, SourceReader, SplitEnumerator, SplitEnumeratorContext
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

_CSV_BLOCK_BYTES = (1 << 20, 1 << 24, 1 << 28)  # tried one after the other: Arrow fails at a row longer than a block
SPLITS_PER_READER = 4  # at least, if a file has enough row groups: a faster reader can then take more


@dataclass(frozen=True)
class RowsSplit:
    """A part of a file, and how many of its rows have been read. ``groups`` are the row groups [first, last) of a
    Parquet file."""

    split_id: str
    file: FileInfo
    groups: tuple[int, int] | None = None
    lines: FileSplit | None = None  # byte range of a JSON-lines file
    rows_read: int = 0


class _BatchReader(SplitReader[RowsSplit]):
    """Cuts the record batches of an iterator to length. When it resumes, it skips the rows that were read before."""

    def __init__(self, split: RowsSplit, batches: Iterator[Any], rows: int) -> None:
        self._split, self._batches, self._rows = split, batches, rows
        self._read = self._last = split.rows_read
        self._batch: Any = None  # what is left of the last batch
        self._skip = split.rows_read

    def next_batch(self, limit: int) -> Batch | None:
        batch = self._batch if self._batch is not None else self._following()
        if batch is None:
            return None
        self._batch = batch.slice(self._rows) if batch.num_rows > self._rows else None
        given = batch.slice(0, self._rows) if self._batch is not None else batch
        self._last = self._read
        self._read += given.num_rows
        return ColumnBatch(given)

    def _following(self) -> Any:
        for batch in self._batches:
            if self._skip >= batch.num_rows:
                self._skip -= batch.num_rows
                continue
            batch, self._skip = batch.slice(self._skip) if self._skip else batch, 0
            return batch
        return None

    def snapshot(self) -> RowsSplit:
        return replace(self._split, rows_read=self._read)

    def position(self) -> str:
        groups, lines = self._split.groups, self._split.lines
        part = f" of row group {groups[0]}" if groups is not None else f" behind byte {lines.start}" if lines is not None else ""
        return f"{self._split.file.path}, row {self._last}{part}"

    def close(self) -> None:
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


class ColumnFileSource(Source[RowsSplit]):
    """What the sources of column files share: files, a schema, the wanted columns and the batch length."""

    has_timestamps = False

    def __init__(self, paths: PathArgument, columns: list[str] | None, schema: pa.Schema | None, batch_rows: int) -> None:
        if batch_rows < 1:
            raise ProgramError(f"batch_rows {batch_rows} is less than 1")
        if isinstance(columns, str) or (columns is not None and not columns):
            raise ProgramError(f"columns= takes a list of names, at least one; this is {columns!r}")
        import pyarrow as pa

        self._files = find_files(paths)
        self._batch_rows = batch_rows
        self._full_schema = schema if schema is not None else self._shown_schema()  # the columns of the files
        self._is_shown = schema is None
        self._folders = PartitionFolders(paths, self._files)
        full = pa.schema([*self._full_schema, *(field for field in self._folders.schema if field.name not in self._full_schema.names)])
        missing = [name for name in columns or [] if name not in full.names]
        if missing:
            raise ProgramError(f"{self._files[0].path} has no column {', '.join(map(repr, missing))}; it has {', '.join(full.names)}")
        names = full.names if columns is None else columns
        chosen, there = Counter(names), Counter(full.names)
        doubled = [name for name in chosen if chosen[name] > 1 or there[name] > 1]
        if doubled:
            raise ProgramError(f"{self._files[0].path}: two columns would be called {doubled[0]!r}; choose others with columns=")
        self._schema = pa.schema([full.field(name) for name in names])
        in_files = [field for field in self._schema if field.name in self._full_schema.names]
        self._in_files = self._schema if len(in_files) == len(self._schema) else pa.schema(in_files)

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        return self._schema

    @property
    def is_columnar(self) -> bool:
        return True

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def _shown_schema(self) -> pa.Schema:
        """The schema of the first file that is not empty. A column whose type it does not show, because there are
        only nulls or a header line, has the type from the next file that shows one."""
        import pyarrow as pa

        shown: pa.Schema | None = None
        for file in self._files:
            if file.size:
                schema = self._first_schema(file)
                if shown is None or all(pa.types.is_null(field.type) for field in shown):
                    shown = schema
                else:
                    shown = pa.schema([schema.field(field.name) if pa.types.is_null(field.type) and schema.names.count(field.name) == 1 else field
                                       for field in shown])
                if not any(pa.types.is_null(field.type) for field in shown):
                    return shown
        if shown is None:
            raise ProgramError(f"{self._files[0].path} is empty; its columns are not known, give schema=")
        return shown

    @abstractmethod
    def _first_schema(self, file: FileInfo) -> pa.Schema:
        """The schema that the file states, or that its beginning shows."""

    @abstractmethod
    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]: ...

    @abstractmethod
    def _batches_of(self, split: RowsSplit) -> Iterator[Any]: ...

    def create_enumerator(self, context: SplitEnumeratorContext[RowsSplit], checkpoint: Any = None) -> SplitEnumerator[RowsSplit]:
        def discover(parallelism: int) -> Iterator[RowsSplit]:
            return (split for file in self._files for split in self._splits_of(file, parallelism))

        return SplitQueue(context, discover, checkpoint, slow=True)

    def create_reader(self, context: ReaderContext) -> SourceReader[RowsSplit]:
        return SequentialReader(context, lambda split: _BatchReader(split, self._checked(split), self._batch_rows))

    def _checked(self, split: RowsSplit) -> Iterator[Any]:
        """The batches of the split; if Arrow cannot read them, raises ProgramError with the file's name."""
        import pyarrow as pa

        from flinkpy.columns.values.conversion import conformed

        try:
            for batch in self._batches_of(split):
                read = batch if batch.schema.equals(self._in_files) else conformed(batch, self._in_files)
                yield read if self._in_files is self._schema else self._with_folders(read, split.file, batch.num_rows)
        except (pa.ArrowException, OSError) as error:
            kind = type(self).__name__.removesuffix("Source")
            raise ProgramError(f"cannot read {split.file.path} as {kind}: {error}{self._advice(split.file)}") from error

    def _advice(self, file: FileInfo) -> str:
        return "; the types are those of the first file, give schema= for others" if self._is_shown and file != self._files[0] else ""

    def _with_folders(self, read: Any, file: FileInfo, rows: int) -> Any:
        """The columns of the file, and those from the names of its folders."""
        import pyarrow as pa

        said = self._folders.columns(file.path, rows)
        return pa.RecordBatch.from_arrays(
            [read.column(name) if name in self._in_files.names else said[name] for name in self._schema.names], schema=self._schema)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._files)} files: {', '.join(self._schema.names)})"


class ParquetSource(ColumnFileSource):
    """Reads Parquet files. ``columns`` are those to read, by default all; other columns are not read from disk.
    ``schema`` gives their types if files differ; by default they are those of the first file.

    The constructor raises ProgramError if there is no such file or column.

    >>> ParquetSource("flights.parquet", columns=["carrier", "dep_delay"])  # doctest: +SKIP
    """

    def __init__(self, paths: PathArgument, columns: list[str] | None = None, batch_rows: int = DEFAULT_BATCH_ROWS, *,
                 schema: pa.Schema | None = None) -> None:
        super().__init__(paths, columns, schema, batch_rows)

    def _first_schema(self, file: FileInfo) -> pa.Schema:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(open_seekable(file)) as parquet:
                return parquet.schema_arrow.remove_metadata()
        except pa.ArrowException as error:
            raise ProgramError(f"{file.path} is no Parquet file: {error}") from error

    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(open_seekable(file)) as parquet:
            # With many row groups a split has several, because each split opens the file again.
            pieces = max(SPLITS_PER_READER * parallelism, file.size // DEFAULT_SPLIT_BYTES)
            for part in cut(0, parquet.num_row_groups, pieces):
                yield RowsSplit(f"{file.path}#{part.split_id}", file, (part.start, part.end))

    def _batches_of(self, split: RowsSplit) -> Iterator[Any]:
        import pyarrow.parquet as pq

        first, last = split.groups or (0, 0)
        with pq.ParquetFile(open_seekable(split.file), pre_buffer=True) as parquet:
            yield from parquet.iter_batches(batch_size=self._batch_rows, row_groups=list(range(first, last)), columns=self._in_files.names)


class CsvSource(ColumnFileSource):
    """Reads CSV files with a header line. Types are those that the first block of the first file shows, unless
    ``schema`` (a ``pyarrow.schema``) gives them. A later value that does not fit raises an error that names the file.

    An unquoted field whose text is one of ``null_values`` is null; a quoted field is text. With ``quote_char`` None,
    quotes have no meaning.
    """

    def __init__(
        self, paths: PathArgument, columns: list[str] | None = None, schema: pa.Schema | None = None, delimiter: str = ",",
        header: bool = True, batch_rows: int = DEFAULT_BATCH_ROWS, *, null_values: Sequence[str] = ("",), encoding: str = "utf-8",
        quote_char: str | None = '"',
    ) -> None:
        if not header and schema is None:
            raise ProgramError("a CSV file without a header line needs schema=, which names its columns")
        if not isinstance(delimiter, str) or len(delimiter.encode()) != 1:
            raise ProgramError(f"a CSV file's delimiter is one character, this is {delimiter!r:.80}")
        if isinstance(null_values, str) or not all(isinstance(each, str) for each in null_values):
            raise ProgramError(f"null_values= takes a list of texts, this is {null_values!r:.80}")
        if quote_char is not None and (not isinstance(quote_char, str) or len(quote_char.encode()) != 1):
            raise ProgramError(f"a CSV file's quote_char is one character or None, this is {quote_char!r:.80}")
        check_encoding(encoding)
        self._delimiter, self._header = delimiter, header
        self._null_values, self._encoding, self._quote_char = list(null_values), encoding, quote_char
        self._given = schema
        super().__init__(paths, columns, schema, batch_rows)

    def _first_schema(self, file: FileInfo) -> pa.Schema:
        import pyarrow as pa

        for block_bytes in _CSV_BLOCK_BYTES:
            try:
                with self._open(file, None, block_bytes) as reader:
                    return self._of_text(reader.schema, file)
            except pa.ArrowException as error:
                if not _needs_longer_blocks(error, block_bytes):
                    raise ProgramError(f"cannot read {file.path} as Csv: {error}") from error
        return pa.schema([])

    def _of_text(self, schema: pa.Schema, file: FileInfo) -> pa.Schema:
        """The schema. Raises ProgramError for a column of bytes, which Arrow makes of values that are not text in
        this encoding."""
        import pyarrow as pa

        for field in schema:
            if pa.types.is_binary(field.type):
                raise ProgramError(f"column {field.name!r} of {file.path} is no {self._encoding} text; name the file's encoding with encoding=, "
                                   "such as 'latin-1'")
        return schema

    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]:
        if file.size:
            yield RowsSplit(file.path, file)

    def _batches_of(self, split: RowsSplit) -> Iterator[Any]:
        import pyarrow as pa

        given = 0
        read_as, checked = as_text(self._full_schema, is_of_bytes), set[str]()
        for block_bytes in _CSV_BLOCK_BYTES:
            passed = 0
            try:
                with self._open(split.file, read_as, block_bytes) as reader:
                    for batch in reader:
                        skip = min(given - passed, batch.num_rows)
                        passed += batch.num_rows
                        if passed > given:
                            given = passed
                            if self._is_shown and (large := set(with_large_floats(batch)) - checked):
                                self._refuse_rounded(split.file, sorted(large), block_bytes)
                                checked |= large
                            yield decoded(batch.slice(skip), self._full_schema)
                return
            except pa.ArrowInvalid as error:
                if "invalid UTF8" in str(error):
                    raise pa.ArrowInvalid(f"{error}; name the file's encoding with encoding=") from error
                if not _needs_longer_blocks(error, block_bytes):
                    raise

    def _refuse_rounded(self, file: FileInfo, names: list[str], block_bytes: int) -> None:
        """Reads these columns of the file again as text, and raises an error if a number was rounded."""
        import pyarrow as pa

        with self._open(file, pa.schema([(name, pa.string()) for name in names]), block_bytes, names) as reader:
            for batch in reader:
                for name in names:
                    refuse_rounded(batch.column(name), name)

    def _open(self, file: FileInfo, schema: pa.Schema | None, block_bytes: int, columns: list[str] | None = None) -> Any:
        from pyarrow import csv

        stream = open_binary(file) if file.compression else open_seekable(file)
        names = None if self._header or self._given is None else self._given.names
        return csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=block_bytes, column_names=names, encoding=self._encoding),
            parse_options=csv.ParseOptions(delimiter=self._delimiter, quote_char=self._quote_char or False, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=schema, include_columns=columns or (self._in_files.names if schema is not None else None), null_values=self._null_values,
                strings_can_be_null=True, quoted_strings_can_be_null=False,
            ),
        )


def _needs_longer_blocks(error: Exception, block_bytes: int) -> bool:
    """Whether Arrow failed at a row longer than a block, so that the file should be read with longer ones."""
    return "block" in str(error) and block_bytes < _CSV_BLOCK_BYTES[-1]


class JsonLinesSource(ColumnFileSource):
    """Reads files with one JSON object per line. The schema is the one that the first block of the first file shows,
    unless it is given. A field that first appears later raises an error that names it.
    """

    def __init__(
        self, paths: PathArgument, columns: list[str] | None = None, schema: pa.Schema | None = None, batch_rows: int = DEFAULT_BATCH_ROWS,
        split_bytes: int = DEFAULT_SPLIT_BYTES,
    ) -> None:
        self._split_bytes = split_bytes
        super().__init__(paths, columns, schema, batch_rows)

    def _first_schema(self, file: FileInfo) -> pa.Schema:
        import pyarrow as pa

        blocks = LineBlocks(FileSplit("", file, 0, None), 1 << 20)
        try:
            found = blocks.next()
            if found is None:
                raise ProgramError(f"{file.path} is empty; its columns are not known, give schema=")
            return shown_schema(found[1])
        except pa.ArrowException as error:
            raise ProgramError(f"cannot read {file.path} as JsonLines: {error}") from error
        finally:
            blocks.close()

    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]:
        size = max(64 << 10, min(self._split_bytes, -(-file.size // parallelism)))
        for part in cut_file(file, size):
            yield RowsSplit(part.split_id, file, lines=part)

    def _batches_of(self, split: RowsSplit) -> Iterator[Any]:
        if split.lines is None:
            return
        blocks = LineBlocks(split.lines, 1 << 20)
        try:
            while (found := blocks.next()) is not None:
                read = parse_lines(found[1], self._full_schema)
                if self._is_shown:
                    refuse_rounded_numbers(found[1], read.select(self._in_files.names))
                yield from read.to_batches()
        finally:
            blocks.close()

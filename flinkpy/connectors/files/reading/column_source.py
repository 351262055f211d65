"""What sources of column files share. All files of a source are read with one schema, so all
batches of the stream are alike."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flinkpy.common.types import listed
from flinkpy.connectors.files.partition_folders import PartitionFolders
from flinkpy.connectors.files.paths import FileInfo, NoFilesError, PathArgument, at_home, find_files
from flinkpy.connectors.files.reading.broken_lines import BrokenLine
from flinkpy.connectors.files.reading.file_metadata import metadata_schema, with_metadata
from flinkpy.connectors.files.reading.text_files import FileSplit
from flinkpy.connectors.files.reading.value_ranges import ValueRange, can_be_pushed, may_be_true
from flinkpy.connectors.files.reading.watched_files import FileWatcher, files_by_now
from flinkpy.connectors.memory.arrow_tables import number_of_rows
from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.readers import SequentialReader, SplitReader
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.files.file_systems import StoreError, is_without_answer, told

if TYPE_CHECKING:
    import pyarrow as pa


SCHEMAS_AT_ONCE = 16  # are read concurrently, as each may be a request to an object store


_MOST_LEVELS = 60  # Arrow's messages have 64, with those around the column


@dataclass(frozen=True)
class RowsSplit:
    """A part of a file, and how many of its rows have been read, and how many broken lines have
    been told. ``groups`` are the row groups [first, last) of a Parquet file."""

    split_id: str
    file: FileInfo
    groups: tuple[int, int] | None = None
    lines: FileSplit | None = None  # byte range of a JSON-lines file
    rows_read: int = 0
    broken_told: int = 0


@dataclass(frozen=True)
class SkippedRows:
    """Rows that are in the file but need not be read. They count as read, so a position means the
    same whatever is skipped."""

    count: int


Item = Any  # a record batch, SkippedRows or a BrokenLine, in the order of the file


class _BatchReader(SplitReader[RowsSplit]):
    """Cuts the record batches of an iterator to length, and tells of its broken lines. When it
    resumes, it passes over what was read and told before."""

    def __init__(
        self, split: RowsSplit, items: Iterator[Item], rows: int, tell: Callable[[BrokenLine], None]
    ) -> None:
        self._split = split
        self._items = items
        self._rows = rows
        self._tell = tell
        self._read = self._last = split.rows_read
        self._told = split.broken_told
        self._batch: Any = None  # what is left of the last batch
        self._rows_before, self._broken_before = split.rows_read, split.broken_told

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
        for item in self._items:
            if isinstance(item, BrokenLine):
                self._tell_once(item)
                continue
            rows = item.count if isinstance(item, SkippedRows) else item.num_rows
            if self._rows_before >= rows:
                self._rows_before -= rows
                continue
            before, self._rows_before = self._rows_before, 0
            if isinstance(item, SkippedRows):
                self._read += rows - before
                continue
            return item.slice(before) if before else item
        return None

    def _tell_once(self, line: BrokenLine) -> None:
        if self._broken_before:
            self._broken_before -= 1
            return
        self._told += 1
        self._tell(line)

    def snapshot(self) -> RowsSplit:
        return replace(self._split, rows_read=self._read, broken_told=self._told)

    def position(self) -> str:
        groups, lines = self._split.groups, self._split.lines
        part = (
            f" of row group {groups[0]}"
            if groups is not None
            else f" behind byte {lines.start}"
            if lines is not None
            else ""
        )
        return f"{self._split.file.path}, row {self._last}{part}"

    def close(self) -> None:
        close = getattr(self._items, "close", None)
        if close is not None:
            close()


class ColumnFileSource(Source[RowsSplit]):
    """What the sources of column files share: files, a schema, the wanted columns and the batch
    length."""

    has_timestamps = False
    interleaves_splits = False
    _filter: Any = None  # an expression; rows for which it is not true need not be read
    _metadata: tuple[tuple[str, str], ...] = ()  # columns of what is known of each row's file

    def __init__(
        self,
        paths: PathArgument,
        columns: list[str] | None,
        schema: pa.Schema | None,
        batch_rows: int,
        watch_interval_ms: int | None = None,
    ) -> None:
        batch_rows = number_of_rows(batch_rows)
        if isinstance(columns, str) or (columns is not None and not columns):
            raise ProgramError(f"columns= takes a list of names, at least one; this is {columns!r}")
        import pyarrow as pa

        if schema is not None and not isinstance(schema, pa.Schema):
            raise ProgramError(
                'schema= takes a pyarrow schema, such as pa.schema([("n", pa.int64())]); '
                f"this is {schema!r:.80}"
            )
        self._paths = at_home(paths)
        self._wanted = columns
        self._watch_interval_ms = watch_interval_ms
        try:
            self._files = find_files(paths)
        except NoFilesError as error:
            if watch_interval_ms is None:
                raise
            if schema is None:
                raise ProgramError(
                    f"{error} yet; give schema=, as there is no file that shows the columns"
                ) from None
            self._files = []
        self._batch_rows = batch_rows
        # the columns of the files
        self._full_schema = schema if schema is not None else self._shown_schema()
        self._is_shown = schema is None
        self._folders = PartitionFolders(paths, self._files, schema)
        said = [
            name
            for name in self._folders.schema.names
            if schema is not None and name in schema.names
        ]
        # the schema has columns that are in the names of folders; those may be in the files all the
        # same
        if said:
            there = self._first_schema(self._files[0]).names
            self._full_schema = pa.schema(
                [
                    field
                    for field in self._full_schema
                    if field.name not in said or field.name in there
                ]
            )
        full = pa.schema(
            [
                *self._full_schema,
                *(
                    field
                    for field in self._folders.schema
                    if field.name not in self._full_schema.names
                ),
            ]
        )
        missing = [name for name in columns or [] if name not in full.names]
        first = self._files[0].path if self._files else str(paths)
        if missing:
            raise ProgramError(
                f"{first} has no column {', '.join(map(repr, missing))}; it has "
                f"{listed(full.names)}"
            )
        names = full.names if columns is None else columns
        chosen, there = Counter(names), Counter(full.names)
        doubled = [name for name in chosen if chosen[name] > 1 or there[name] > 1]
        if doubled:
            raise ProgramError(
                f"{first}: two columns would be called {doubled[0]!r}; choose others with columns="
            )
        self._schema = pa.schema([full.field(name) for name in names])
        too_deep = next(
            (field.name for field in self._schema if _is_nested_beyond(field.type, _MOST_LEVELS)),
            None,
        )
        if too_deep is not None:
            raise ProgramError(
                f"{first}: column {too_deep!r} has more than {_MOST_LEVELS} levels of objects "
                "and lists within each other, and Arrow "
                "sends no more between processes; leave it out with "
                "columns=, or read the lines with read_text_file()"
            )
        self._has_required = not all(field.nullable for field in self._schema)
        in_files = [field for field in self._schema if field.name in self._full_schema.names]
        self._in_files = self._schema if len(in_files) == len(self._schema) else pa.schema(in_files)

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        if not self._metadata:
            return self._schema
        import pyarrow as pa

        return pa.schema([*self._schema, *metadata_schema(self._metadata)])

    @property
    def is_columnar(self) -> bool:
        return True

    @property
    def boundedness(self) -> Boundedness:
        return (
            Boundedness.BOUNDED
            if self._watch_interval_ms is None
            else Boundedness.CONTINUOUS_UNBOUNDED
        )

    def _shown_schema(self) -> pa.Schema:
        """The schema of all files together."""
        from flinkpy.connectors.files.reading.merged_schemas import merged_schema

        with ThreadPoolExecutor(SCHEMAS_AT_ONCE) as threads:
            schemas = list(threads.map(self._first_schema, self._files))
        if all(schema.equals(schemas[0]) for schema in schemas):
            return schemas[0]
        return merged_schema(
            ((file.path, schema) for file, schema in zip(self._files, schemas)),
            ProgramError,
            self._wanted,
        )

    @abstractmethod
    def _first_schema(self, file: FileInfo) -> pa.Schema:
        """The schema that the file states, or that its beginning shows."""

    @abstractmethod
    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]: ...

    @abstractmethod
    def _items_of(self, split: RowsSplit, context: ReaderContext) -> Iterator[Item]: ...

    def create_enumerator(
        self, context: SplitEnumeratorContext[RowsSplit], checkpoint: Any = None
    ) -> SplitEnumerator[RowsSplit]:
        if self._watch_interval_ms is not None:
            interval_s = self._watch_interval_ms / 1000
            return FileWatcher(
                context,
                lambda: files_by_now(self._paths),
                lambda file: self._splits_of(file, context.parallelism),
                interval_s,
                checkpoint,
            )

        return SplitQueue(context, self.splits, checkpoint, slow=True)

    def splits(self, parallelism: int) -> Iterator[RowsSplit]:
        """The parts of the files that were there when the source was made, for so many readers."""
        return (split for file in self._files for split in self._splits_of(file, parallelism))

    def create_reader(self, context: ReaderContext) -> SourceReader[RowsSplit]:
        def tell(line: BrokenLine) -> None:
            context.leave_out(line, line.why)

        return SequentialReader(
            context,
            lambda split: _BatchReader(
                split, self._rows_of(split, context), self._batch_rows, tell
            ),
        )

    def with_metadata(self, columns: Sequence[tuple[str, str]]) -> ColumnFileSource:
        """Gives columns of what is known of each row's file, too: pairs of a name and a key, such
        as ``file.path``."""
        source = copy.copy(self)
        source._metadata = tuple(columns)
        return source

    def filtered(self, expression: Any) -> ColumnFileSource:
        """Uses the filter for what the names of folders say, and what a Parquet file says of its
        row groups."""
        if not can_be_pushed(expression, self._schema):
            return self
        source = copy.copy(self)
        source._filter = expression if self._filter is None else self._filter & expression
        return source

    def told_apart_by(self) -> Any:
        """Its state is found again when the filter behind it has changed."""
        return {name: value for name, value in vars(self).items() if name != "_filter"}

    def _rows_of(self, split: RowsSplit, context: ReaderContext) -> Iterator[Item]:
        items = self._checked(split, context)
        return with_metadata(items, self._metadata, split.file) if self._metadata else items

    def _checked(self, split: RowsSplit, context: ReaderContext) -> Iterator[Item]:
        """The batches of the split; if Arrow cannot read them, raises ProgramError with the file's
        name."""
        import pyarrow as pa

        from flinkpy.columns.values.conversion import conformed
        from flinkpy.formats.text_columns import nulls_in_required

        if self._filter is not None and not self._may_match(split.file):
            return
        try:
            for item in self._items_of(split, context):
                if isinstance(item, (BrokenLine, SkippedRows)):
                    yield item
                    continue
                read = (
                    item if item.schema.equals(self._in_files) else conformed(item, self._in_files)
                )
                if (
                    self._has_required
                    and (wrong := nulls_in_required(read.columns, self._in_files)) is not None
                ):
                    raise pa.ArrowInvalid(wrong)
                yield (
                    read
                    if self._in_files is self._schema
                    else self._with_folders(read, split.file, item.num_rows)
                )
        except (pa.ArrowException, OSError) as error:
            kind = type(self).__name__.removesuffix("Source")
            if is_without_answer(error):
                raise StoreError(
                    f"cannot read {split.file.path} as {kind}: {told(error, split.file.store)}"
                ) from error
            raise ProgramError(
                f"cannot read {split.file.path} as {kind}: "
                f"{error}{self._advice(split.file, str(error))}"
            ) from error

    def _may_match(self, file: FileInfo) -> bool:
        """Whether the values in the names of the file's folders may pass the filter."""
        in_folders = [name for name in self._schema.names if name not in self._in_files.names]
        if not in_folders:
            return True
        values = self._folders.scalars(file.path)
        return may_be_true(
            self._filter, {name: ValueRange.of_one(values[name].as_py()) for name in in_folders}
        )

    def _advice(self, file: FileInfo, why: str) -> str:
        """What to change if a value is not of the type of its column."""
        if "lose data" in why and "timestamp[" in why:
            return "; declare it with more digits of a second, such as TIMESTAMP(6) in SQL"
        return ""

    def _with_nulls(self, batch: pa.RecordBatch) -> Any:
        """The columns that a file has, and nulls for those that it does not have."""
        if batch.num_columns == len(self._in_files):
            return batch
        import pyarrow as pa

        columns = [
            batch.column(field.name)
            if field.name in batch.schema.names
            else pa.nulls(batch.num_rows, field.type)
            for field in self._in_files
        ]
        return pa.RecordBatch.from_arrays(columns, names=self._in_files.names)

    def _with_folders(self, read: Any, file: FileInfo, rows: int) -> Any:
        """The columns of the file, and those from the names of its folders."""
        import pyarrow as pa

        said = self._folders.columns(file.path, rows)
        return pa.RecordBatch.from_arrays(
            [
                read.column(name) if name in self._in_files.names else said[name]
                for name in self._schema.names
            ],
            schema=self._schema,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._files)} files: {', '.join(self._schema.names)})"


def _is_nested_beyond(kind: pa.DataType, levels: int) -> bool:
    """Whether structs, lists and maps lie within each other in more than so many levels."""
    parts = [kind.field(at).type for at in range(kind.num_fields)]
    return bool(parts) and (
        not levels or any(_is_nested_beyond(part, levels - 1) for part in parts)
    )

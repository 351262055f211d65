"""Parquet files as column batches; and, by name, the sources of all other column files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.paths import FileInfo, PathArgument, open_seekable
from flinkpy.connectors.files.reading.avro_source import AvroSource
from flinkpy.connectors.files.reading.column_source import (
    ColumnFileSource,
    Item,
    RowsSplit,
    SkippedRows,
)
from flinkpy.connectors.files.reading.csv.csv_source import CsvSource
from flinkpy.connectors.files.reading.json_source import JsonLinesSource
from flinkpy.connectors.files.reading.text_files import DEFAULT_SPLIT_BYTES
from flinkpy.connectors.files.reading.value_ranges import ValueRange, may_be_true
from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS
from flinkpy.connectors.memory.ranges import cut
from flinkpy.connectors.source_api.source import ReaderContext
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AvroSource", "CsvSource", "JsonLinesSource", "ParquetSource"]

# at least, if a file has enough row groups: a faster reader can then take more
SPLITS_PER_READER = 4
_DECODED_BYTES, _MOST_DECODED_ROWS = 4 << 20, 64 << 10  # at a time; with all the file's columns
SKIPPED_GROUPS = "numRowGroupsSkipped"


class ParquetSource(ColumnFileSource):
    """Reads Parquet files, which are cut at row groups. ``columns`` are those to read, by default
    all; other columns are not read from disk.

    Without ``schema`` the footers of all files are read when the program is built: there are the
    columns of all files, with the larger type where files have integers or floats of different
    sizes. A column that a file does not have is null in its rows. Raises ProgramError if there is
    no such file or column, and for types that do not go together.

    >>> ParquetSource("flights.parquet", columns=["carrier", "dep_delay"])  # doctest: +SKIP
    """

    def __init__(
        self,
        paths: PathArgument,
        columns: list[str] | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        *,
        schema: pa.Schema | None = None,
        watch_interval_ms: int | None = None,
    ) -> None:
        super().__init__(paths, columns, schema, batch_rows, watch_interval_ms)

    def _first_schema(self, file: FileInfo) -> pa.Schema:
        import pyarrow as pa

        try:
            with _opened(file) as parquet:
                return parquet.schema_arrow.remove_metadata()
        except pa.ArrowException as error:
            raise ProgramError(f"{file.path} is no Parquet file: {error}") from error

    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]:
        with _opened(file) as parquet:
            # With many row groups a split has several, because each split opens the file again.
            pieces = max(SPLITS_PER_READER * parallelism, file.size // DEFAULT_SPLIT_BYTES)
            for part in cut(0, parquet.num_row_groups, pieces):
                yield RowsSplit(f"{file.path}#{part.split_id}", file, (part.start, part.end))

    def _items_of(self, split: RowsSplit, context: ReaderContext) -> Iterator[Item]:
        first, last = split.groups or (0, 0)
        with _opened(split.file, pre_buffer=True) as parquet:
            there = parquet.schema_arrow
            names = [name for name in self._in_files.names if name in there.names]
            skips = self._filter is not None and self._can_be_read(there)

            def is_not_needed(group: int) -> bool:
                return skips and not self._may_match_group(parquet.metadata.row_group(group), there)

            for is_skipped, groups in groupby(range(first, last), is_not_needed):
                numbers = list(groups)
                if is_skipped:
                    context.count(SKIPPED_GROUPS, len(numbers))
                    yield SkippedRows(
                        sum(parquet.metadata.row_group(group).num_rows for group in numbers)
                    )
                    continue
                for batch in self._batches_of(parquet, split.file, numbers, names):
                    yield self._with_nulls(batch)

    def _batches_of(
        self, parquet: Any, file: FileInfo, groups: list[int], names: list[str]
    ) -> Iterator[Any]:
        from flinkpy.connectors.files.reading.int96 import exact_batches, has_int96

        rows = self._decoded_rows(parquet.metadata, groups)
        batches = parquet.iter_batches(batch_size=rows, row_groups=groups, columns=names)
        if not has_int96(parquet.schema):
            yield from batches
            return
        with _opened(
            file, pre_buffer=True, coerce_int96_timestamp_unit="ns", metadata=parquet.metadata
        ) as other:
            coarse, fine = parquet.schema_arrow, other.schema_arrow
            twice = [name for name in names if not coarse.field(name).equals(fine.field(name))]
            also = other.iter_batches(batch_size=rows, row_groups=groups, columns=twice)
            yield from exact_batches(batches, also, self._in_files) if twice else batches

    def _decoded_rows(self, metadata: Any, groups: list[int]) -> int:
        """How many rows are decoded at a time, which are cut into batches then: each time costs
        something for every column."""
        sizes = [metadata.row_group(group) for group in groups]
        rows = sum(group.num_rows for group in sizes)
        size = sum(group.total_byte_size for group in sizes)
        fitting: int = _DECODED_BYTES * rows // max(size, 1)
        return max(self._batch_rows, min(_MOST_DECODED_ROWS, fitting))

    def _can_be_read(self, there: Any) -> bool:
        """Whether no value of this file is refused because it does not fit its column: then rows
        may be left out without a change."""
        from flinkpy.connectors.files.reading.merged_schemas import common_type

        in_both = [field for field in self._in_files if field.name in there.names]
        # None for integers read as floats
        return all(
            common_type(field.type, there.field(field.name).type) == field.type for field in in_both
        )

    def _may_match_group(self, group: Any, there: Any) -> bool:
        ranges = {
            name: ValueRange(only_nulls=True)
            for name in self._in_files.names
            if name not in there.names
        }
        for at in range(group.num_columns):
            column = group.column(at)
            name = column.path_in_schema
            read_as_it_is = (
                name in there.names
                and name in self._in_files.names
                and there.field(name).type.equals(self._in_files.field(name).type)
            )
            if read_as_it_is and column.is_stats_set:
                ranges[name] = _range_of(column.statistics, group.num_rows)
        return may_be_true(self._filter, ranges)


def _opened(file: FileInfo, *, coerce_int96_timestamp_unit: str = "us", **options: Any) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        open_seekable(file), coerce_int96_timestamp_unit=coerce_int96_timestamp_unit, **options
    )


def _range_of(statistics: Any, rows: int) -> ValueRange:
    nulls = statistics.null_count if statistics.has_null_count else None
    low, high = (statistics.min, statistics.max) if statistics.has_min_max else (None, None)
    return ValueRange(low, high, only_nulls=nulls == rows, no_nulls=nulls == 0)
